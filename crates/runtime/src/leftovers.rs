//! What a run leaves behind in the directory for temporary files.
//!
//! Every run has the same process id and draws the same random numbers, so it makes files of the same names. What one
//! of them leaves there, because it failed or was stopped, would be in the way of all that follow. So each notes what
//! it brings into being, in memory that it shares with its server, and the server removes what is still there
//! when the run is over. Whatever is elsewhere stays: it may be what the program is run for.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::{active, scheduler, system};

/// The shared memory: how many bytes are in use, and paths, each with a zero at its end.
#[repr(C)]
struct Notes {
    used: AtomicU64,
    paths: [u8; CAPACITY],
}

const CAPACITY: usize = (1 << 18) - 8;

static NOTES: AtomicPtr<Notes> = AtomicPtr::new(std::ptr::null_mut());

/// In the server: makes the memory that is shared with the runs.
pub fn prepare() {
    // SAFETY: a mapping of its own; all zeroes is an empty list.
    let notes = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Notes>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if notes != libc::MAP_FAILED {
        NOTES.store(notes.cast(), Ordering::Relaxed);
    }
}

fn notes() -> Option<&'static mut Notes> {
    // SAFETY: null, or mapped for good; a run writes there while its server waits for it.
    unsafe { NOTES.load(Ordering::Relaxed).as_mut() }
}

/// In a run: makes a call that may bring something into being at `path`. The call may complete the path.
pub fn creating<R>(path: *const c_char, call: impl FnOnce() -> R) -> R {
    let may_be_new = active() && scheduler::get().running && !path.is_null() && !exists(path);
    let result = call();
    if may_be_new && exists(path) {
        // SAFETY: the program's path, at which the kernel has just found something.
        note(unsafe { CStr::from_ptr(path) });
    }
    result
}

fn exists(path: *const c_char) -> bool {
    system::call(libc::SYS_access, [path as u64, libc::F_OK as u64, 0, 0, 0, 0]) == 0
}

fn note(path: &CStr) {
    let is_temporary = Path::new(OsStr::from_bytes(path.to_bytes())).starts_with(directory());
    let is_plain = !path.to_bytes().windows(4).any(|part| part == b"/../");
    let Some(notes) = notes().filter(|_| is_temporary && is_plain) else { return };
    let used = notes.used.load(Ordering::Relaxed) as usize;
    let bytes = path.to_bytes_with_nul();
    if let Some(place) = notes.paths.get_mut(used..used + bytes.len()) {
        place.copy_from_slice(bytes);
        notes.used.store((used + bytes.len()) as u64, Ordering::Release);
    }
}

/// Where temporary files belong.
fn directory() -> PathBuf {
    // SAFETY: the program's environment; only the carrier runs.
    let chosen = unsafe { libc::getenv(c"TMPDIR".as_ptr()) };
    if chosen.is_null() {
        return PathBuf::from("/tmp");
    }
    // SAFETY: a string of the environment.
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(chosen) }.to_bytes()))
}

/// In the server: a run is over.
pub fn remove() {
    let Some(notes) = notes() else { return };
    let used = notes.used.swap(0, Ordering::Acquire) as usize;
    let paths = notes.paths.get(..used).unwrap_or_default().split(|&byte| byte == 0);
    for path in paths.filter(|path| !path.is_empty()) {
        let path = Path::new(OsStr::from_bytes(path));
        // Most of them the run has removed itself.
        if std::fs::remove_file(path).is_err() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
