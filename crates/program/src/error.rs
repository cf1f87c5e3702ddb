//! What can be wrong with the files of a program.

use std::io;
use std::path::PathBuf;

/// Why a program could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("no such file: {}", path.display())]
    Missing { path: PathBuf },
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The reason is a fragment such as "it is built for another machine".
    #[error("{} is not an x86-64 ELF executable: {reason}", path.display())]
    NotAnExecutable { path: PathBuf, reason: String },
}
