//! The standard input of the tested program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::Arc;

use crate::memory::anonymous_file;

/// The standard input: the same bytes in every run. By default there are none.
///
/// The bytes are a copy, so a later change of their file makes no difference. The copy is a regular file, and the runtime
/// gives each run its own position in it.
#[derive(Clone, Debug, Default)]
pub struct Input(Option<Arc<File>>);

impl Input {
    pub fn new(bytes: &[u8]) -> io::Result<Input> {
        let mut file = anonymous_file(c"input")?;
        file.write_all(bytes)?;
        Ok(Input(Some(Arc::new(file))))
    }

    /// The file for a new process, which reads from the start.
    pub(crate) fn open(&self) -> io::Result<Stdio> {
        match &self.0 {
            None => Ok(Stdio::null()),
            Some(file) => Ok(File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?.into()),
        }
    }
}
