//! Files that were open at the first thread: each run has its own position in them.
//!
//! A fork shares descriptors, and with them the position in a file. So these files are opened anew in each run, at the
//! position that they had. What a run writes to files stays. A run that has written can therefore not be kept as a
//! snapshot, which [`opens`] notes.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::os::{descriptors, io, system};
use crate::schedule::carrier::Carrier;

#[derive(Clone, Copy)]
struct Position {
    descriptor: c_int,
    flags: c_int,
    offset: i64,
}

static POSITIONS: Carrier<Vec<Position>> = Carrier::new(Vec::new());

/// Notes where every regular file stands.
pub fn remember() {
    let positions = descriptors::all().into_iter().filter_map(position).collect();
    POSITIONS.with(|known| *known = positions);
}

fn position(descriptor: c_int) -> Option<Position> {
    let status = system::status(descriptor)?;
    let flags = system::fcntl(descriptor, libc::F_GETFL, 0) as c_int;
    // SAFETY: it only takes numbers.
    let offset = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    let regular = status.st_mode & libc::S_IFMT == libc::S_IFREG;
    // Appending needs no position; the program's output is such a file.
    let has_position = regular && flags >= 0 && flags & libc::O_APPEND == 0 && offset >= 0;
    has_position.then_some(Position { descriptor, flags, offset })
}

/// Gives this run positions of its own. A file that cannot be opened again stays shared.
pub fn separate() {
    for Position { descriptor, flags, offset } in POSITIONS.with(|positions| positions.clone()) {
        let Ok(path) = CString::new(format!("/proc/self/fd/{descriptor}")) else { continue };
        // SAFETY: the functions take numbers, and none of them changes memory.
        unsafe {
            let keep = system::fcntl(descriptor, libc::F_GETFD, 0) as c_int & libc::FD_CLOEXEC;
            let file = system::open(&path, flags & !(libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL));
            if file >= 0 {
                libc::lseek(file, offset, libc::SEEK_SET);
                system::dup3(file, descriptor, if keep == 0 { 0 } else { libc::O_CLOEXEC });
                system::close(file);
            }
        }
    }
}

/// A file is opened with these flags.
pub fn opens(flags: c_int) {
    if flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0 {
        io::goes_outside();
    }
}

/// A file is opened as a stream with this mode. Is it to be written to?
///
/// # Safety
/// `mode` is null or a string.
pub unsafe fn opens_as(mode: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let writes = !mode.is_null()
        && unsafe { CStr::from_ptr(mode) }.to_bytes().iter().any(|letter| b"wa+".contains(letter));
    if writes {
        io::goes_outside();
    }
    writes
}
