//! Temporary directories, which go away with the tool or, if it is killed, with the next one.
//!
//! A living tool holds a lock on each of its directories. The kernel gives it back when the tool ends, however that
//! happens. So a directory of this name that can be locked is one that a dead tool has left.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// What the names of the directories begin with.
pub const PREFIX: &str = "threadbare-build.";

/// The directories of this process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that is removed when this value is dropped.
pub struct Scratch {
    directory: TempDir,
    /// Holds the lock.
    _lock: File,
}

impl Scratch {
    /// Makes a directory, and removes those that dead tools have left.
    pub fn new() -> io::Result<Scratch> {
        let parent = std::env::temp_dir();
        remove_left(&parent);
        loop {
            let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent)?;
            // Another tool that starts now may take it for one that was left, as long as it is not locked.
            if let Some(lock) = lock(directory.path())? {
                OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(directory.path().to_owned());
                return Ok(Scratch { directory, _lock: lock });
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != self.directory.path());
    }
}

/// Removes the directories of this process, which is about to end.
pub fn remove_all() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    for path in open.iter() {
        // What is still written there now is left to the next tool.
        let _ = fs::remove_dir_all(path);
    }
}

/// Locks a directory; `None` if somebody else has, or has removed it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    // SAFETY: takes numbers. The lock goes away with the file.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    let is_same = |there: fs::Metadata| file.metadata().is_ok_and(|ours| ours.ino() == there.ino());
    Ok(fs::symlink_metadata(path).is_ok_and(is_same).then_some(file))
}

/// Removes directories that dead tools of the same user have left. Errors are ignored: there will be a next tool.
fn remove_left(parent: &Path) {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = |data: fs::Metadata| data.is_dir() && data.uid() == user;
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&path).is_ok_and(is_ours)
            && let Ok(Some(_lock)) = lock(&path)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}
