//! What the program reads on its standard input.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::Arc;

use crate::memory::anonymous_file;

/// The same bytes in every run, from the first to the last; nothing at all by default.
///
/// They are a copy, so that it does not matter what becomes of the file or the pipe that they came from. The
/// copy is a regular file, of which the runtime gives each run a position of its own.
#[derive(Clone, Debug, Default)]
pub struct Input(Option<Arc<File>>);

impl Input {
    pub fn new(bytes: &[u8]) -> io::Result<Input> {
        let mut file = anonymous_file(c"input")?;
        file.write_all(bytes)?;
        Ok(Input(Some(Arc::new(file))))
    }

    /// For a new process, which reads from the start.
    pub(crate) fn open(&self) -> io::Result<Stdio> {
        match &self.0 {
            None => Ok(Stdio::null()),
            Some(file) => Ok(File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?.into()),
        }
    }
}
