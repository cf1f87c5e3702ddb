//! The functions that a program calls to open a file: some paths lead elsewhere, and what is created is noted.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{files, leftovers, processors, randomness};
use crate::entry::intercept::intercept;

type Path = *const c_char;

/// What stands in for the file at a path.
enum StandIn {
    /// This descriptor.
    File(c_int),
    /// There is no such file.
    Nothing,
}

/// What stands in for the file at `path`, if anything.
///
/// # Safety
/// `path` is null or a string.
unsafe fn stand_in_for(path: Path) -> Option<StandIn> {
    // SAFETY: the caller's promise.
    let path = if path.is_null() { return None } else { unsafe { CStr::from_ptr(path) } };
    if randomness::is_device(path) {
        return Some(StandIn::File(randomness::file()));
    }
    processors::is_limit(path).then(|| {
        processors::no_limit();
        StandIn::Nothing
    })
}

macro_rules! open {
    ($($name:ident)+) => { intercept! { $(
        fn $name(path: Path, flags: c_int, mode: c_uint) -> c_int, calling open {
            // SAFETY: the program promises libc a string; one that cannot be read would fail in `open` too.
            match unsafe { stand_in_for(path) } {
                Some(StandIn::File(file)) => return file,
                Some(StandIn::Nothing) => return -1,
                None => files::opens(flags),
            }
            if flags & libc::O_CREAT == 0 {
                // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
                return unsafe { open(path, flags, mode) };
            }
            // SAFETY: the program promises libc a string, and `open` gets its arguments as they are.
            unsafe { leftovers::creating(path, || open(path, flags, mode), |file| file >= 0) }
        }
    )+ } };
}
open! { open open64 }

macro_rules! open_at {
    ($($name:ident)+) => { intercept! { $(
        fn $name(directory: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, calling open {
            files::opens(flags);
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            unsafe { open(directory, path, flags, mode) }
        }
    )+ } };
}
open_at! { openat openat64 }

macro_rules! fopen {
    ($($name:ident)+) => { intercept! { $(
        fn $name(path: Path, mode: *const c_char) -> *mut libc::FILE, calling open {
            // SAFETY: the program's strings; those that cannot be read would fail in `fopen` too. The descriptor is
            // our own.
            unsafe {
                match stand_in_for(path) {
                    Some(StandIn::File(file)) => libc::fdopen(file, c"r".as_ptr()),
                    Some(StandIn::Nothing) => std::ptr::null_mut(),
                    None if files::opens_as(mode) => {
                        leftovers::creating(path, || open(path, mode), |file| !file.is_null())
                    }
                    None => open(path, mode),
                }
            }
        }
    )+ } };
}
fopen! { fopen fopen64 }

/// Functions that change files, with arguments as they come in registers.
macro_rules! change {
    ($($name:ident($($arg:ident),*);)+) => { intercept! { $(
        fn $name($($arg: usize),*) -> usize, calling change {
            super::io::goes_outside();
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            unsafe { change($($arg),*) }
        }
    )+ } };
}

change! {
    chmod(path, mode);
    freopen(path, mode, stream);
    freopen64(path, mode, stream);
    ftruncate(file, length);
    ftruncate64(file, length);
    link(old, new);
    linkat(directory, old, other, new, flags);
    mkdirat(directory, path, mode);
    remove(path);
    rename(old, new);
    renameat(directory, old, other, new);
    renameat2(directory, old, other, new, flags);
    rmdir(path);
    shm_unlink(name);
    symlink(target, path);
    symlinkat(target, directory, path);
    tmpfile();
    tmpfile64();
    truncate(path, length);
    truncate64(path, length);
    unlink(path);
    unlinkat(directory, path, flags);
}

/// The same for those that may make a file or directory at `path`, and whose result tells whether they did.
macro_rules! create {
    ($($name:ident(path $(, $arg:ident)*) -> $result:ty, $succeeded:expr;)+) => { intercept! { $(
        fn $name(path: Path $(, $arg: usize)*) -> $result, calling create {
            super::io::goes_outside();
            // SAFETY: the program promises libc a string.
            unsafe { leftovers::creating(path, || create(path $(, $arg)*), $succeeded) }
        }
    )+ } };
}

create! {
    creat(path, mode) -> c_int, |file| file >= 0;
    creat64(path, mode) -> c_int, |file| file >= 0;
    mkdir(path, mode) -> c_int, |error| error == 0;
    mkdtemp(path) -> *const c_char, |made| !made.is_null();
    mkfifo(path, mode) -> c_int, |error| error == 0;
    mkostemp(path, flags) -> c_int, |file| file >= 0;
    mkostemp64(path, flags) -> c_int, |file| file >= 0;
    mkstemp(path) -> c_int, |file| file >= 0;
    mkstemp64(path) -> c_int, |file| file >= 0;
    mkstemps(path, suffix) -> c_int, |file| file >= 0;
}

// Memory and semaphores with names outlive whoever makes them.
intercept! {
    fn shm_open(name: Path, flags: c_int, mode: libc::mode_t) -> c_int, calling open {
        super::io::goes_outside();
        // SAFETY: the program promises libc a string.
        unsafe { leftovers::creating_shared("", name, || open(name, flags, mode), |file| file >= 0) }
    }

    fn sem_open(name: Path, flags: c_int, mode: libc::mode_t, value: c_uint) -> *mut c_void, calling open {
        super::io::goes_outside();
        // SAFETY: the program promises libc a string.
        unsafe {
            leftovers::creating_shared("sem.", name, || open(name, flags, mode, value), |opened| !opened.is_null())
        }
    }
}
