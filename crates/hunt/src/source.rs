//! Source files, each read once.

use std::cell::RefCell;
use std::collections::HashMap;

/// The lines of source files.
#[derive(Default)]
pub struct Source(RefCell<HashMap<String, Vec<String>>>);

impl Source {
    /// The line (from 1) without surrounding blanks; `None` if the file cannot be read or has fewer lines.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        let mut files = self.0.borrow_mut();
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            let text = std::fs::read(file).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect()
        });
        lines.get((line as usize).checked_sub(1)?).cloned()
    }
}
