//! Reading files that may have no end.
//!
//! A file name may lead to a device, a pipe or a sparse file of a terabyte. So everything is read up to a limit, and what
//! is longer is an error and not a file that was cut.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use thiserror::Error;

/// Why a file could not be read whole.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is larger than {}", size(*.0))]
    TooLarge(u64),
    #[error("it is not a regular file")]
    NotAFile,
}

/// `64 MiB`.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Reads a file, a pipe or a device of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_all(File::open(path)?, limit)
}

/// Reads a regular file of at most `limit` bytes. Nothing else is waited for or read from.
pub fn read_regular(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ReadError::NotAFile);
    }
    read_all(file, limit)
}

/// Reads all of an open file.
fn read_all(file: File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let length = file.metadata()?.len();
    if length > limit {
        return Err(ReadError::TooLarge(limit));
    }
    let mut bytes = Vec::new();
    // One byte more, so that the buffer need not grow to see the end.
    bytes.try_reserve(length as usize + 1).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    read_to_end(file, limit, bytes)
}

/// Reads to the end of what may be anything.
pub fn read_stream(stream: impl Read, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_to_end(stream, limit, Vec::new())
}

fn read_to_end(stream: impl Read, limit: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
    stream.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(ReadError::TooLarge(limit)) } else { Ok(bytes) }
}
