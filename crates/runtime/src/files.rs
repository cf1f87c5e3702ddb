//! Open files: each run has its own position in them.
//!
//! Descriptors are shared across a fork, position included. So a file that was opened before the first thread
//! is opened anew in each run, at the place where it stood.

use std::ffi::{CString, c_int};

use threadbare_trace::wire::{MEMORY_FD, SOCKET_FD};

use crate::carrier::Carrier;

#[derive(Clone, Copy)]
struct Position {
    descriptor: c_int,
    flags: c_int,
    offset: i64,
}

static POSITIONS: Carrier<Vec<Position>> = Carrier::new(Vec::new());

/// The program's descriptors.
pub fn open_descriptors() -> Vec<c_int> {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let descriptors = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    descriptors.filter(|descriptor| !matches!(*descriptor, MEMORY_FD | SOCKET_FD)).collect()
}

/// Lets `made` take the place of each of `descriptors`, with their flags, and closes it. A negative number is a
/// descriptor that could not be made.
pub fn put_in_place(made: c_int, descriptors: &[c_int]) {
    if made < 0 {
        return;
    }
    for &descriptor in descriptors {
        // SAFETY: plain system calls on descriptors.
        unsafe {
            let keep = libc::fcntl(descriptor, libc::F_GETFD) & libc::FD_CLOEXEC;
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::dup2(made, descriptor);
            libc::fcntl(descriptor, libc::F_SETFD, keep);
            libc::fcntl(descriptor, libc::F_SETFL, flags);
        }
    }
    // SAFETY: our own descriptor, by the system call so that nothing else takes notice.
    unsafe { libc::syscall(libc::SYS_close, made) };
}

/// Notes where every regular file stands.
pub fn remember() {
    *POSITIONS.get() = open_descriptors().into_iter().filter_map(position).collect();
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
        // SAFETY: plain system calls.
        unsafe {
            let file = libc::open(path.as_ptr(), flags & !(libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL));
            libc::lseek(file, offset, libc::SEEK_SET);
            put_in_place(file, &[descriptor]);
        }
    }
}
