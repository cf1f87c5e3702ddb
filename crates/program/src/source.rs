//! Source files, each read once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::{bounded, unpoisoned};

/// More is no source that a person reads. The name comes from debug information or from a trace, and may be any.
const MAX_BYTES: u64 = 16 << 20;

/// A cache of source files by path; `None` stands for one that could not be read.
#[derive(Default)]
pub struct Sources {
    files: Mutex<HashMap<String, Option<Arc<[String]>>>>,
}

impl Sources {
    /// The line (from 1) without surrounding blanks; `None` if the file cannot be read or has fewer lines.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        Some(self.indented_line(file, line)?.trim().to_string())
    }

    /// The line as it stands in the file, with its indentation.
    pub(crate) fn indented_line(&self, file: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let mut files = unpoisoned(&self.files);
        if !files.contains_key(file) {
            files.insert(file.to_string(), read_lines(file));
        }
        files.get(file)?.as_ref()?.get(index).cloned()
    }
}

/// Reads a file that need not be UTF-8, so that a comment in Latin-1 does not hide the other lines.
fn read_lines(file: &str) -> Option<Arc<[String]>> {
    let bytes = bounded::read_regular(Path::new(file), MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect())
}
