//! Open files: each run has its own position in them.
//!
//! Descriptors are shared across a fork, position included. So a file that was opened before the first thread
//! is opened anew in each run, at the place where it stood.

use std::ffi::{CString, c_int};

use crate::carrier::Carrier;
use crate::descriptors;

#[derive(Clone, Copy)]
struct Position {
    descriptor: c_int,
    flags: c_int,
    offset: i64,
}

static POSITIONS: Carrier<Vec<Position>> = Carrier::new(Vec::new());

/// Notes where every regular file stands.
pub fn remember() {
    *POSITIONS.get() = descriptors::all().into_iter().filter_map(position).collect();
}

fn position(descriptor: c_int) -> Option<Position> {
    // SAFETY: plain system calls on a descriptor, and a place for their result.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let regular =
            libc::fstat(descriptor, &mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG;
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        let offset = libc::lseek(descriptor, 0, libc::SEEK_CUR);
        // Appending needs no position; the program's output is such a file.
        (regular && flags >= 0 && flags & libc::O_APPEND == 0 && offset >= 0).then_some(Position {
            descriptor,
            flags,
            offset,
        })
    }
}

/// Gives this run positions of its own. A file that cannot be opened again stays shared.
pub fn separate() {
    for &Position { descriptor, flags, offset } in POSITIONS.get().iter() {
        let Ok(path) = CString::new(format!("/proc/self/fd/{descriptor}")) else { continue };
        // SAFETY: plain system calls; the new descriptor takes the place of the old one.
        unsafe {
            let keep = libc::fcntl(descriptor, libc::F_GETFD) & libc::FD_CLOEXEC;
            let file = libc::open(path.as_ptr(), flags & !(libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL));
            if file >= 0 {
                libc::lseek(file, offset, libc::SEEK_SET);
                libc::dup2(file, descriptor);
                libc::fcntl(descriptor, libc::F_SETFD, keep);
                libc::close(file);
            }
        }
    }
}
