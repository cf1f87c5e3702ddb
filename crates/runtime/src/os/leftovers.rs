//! Temporary files that a run leaves behind are removed.
//!
//! Every run has the same process id and draws the same random numbers, so all runs use the same file names. A file
//! that a failed run leaves would be in the way of the next. So each run notes the temporary files and directories that
//! it makes, in memory that it shares with its server. When the run is over, the server removes those that are still
//! there. It knows them by device and inode, so it removes nothing that was only moved there. Files outside the
//! directory for temporary files stay: they may be what the program is run for. Shared memory and semaphores with names
//! outlive every process, and are removed like temporary files.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::active;
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

/// The shared memory: how many bytes are in use, and entries: device, inode, and a path with a zero at its end.
#[repr(C)]
struct Notes {
    used: AtomicU64,
    entries: [u8; CAPACITY],
}

const CAPACITY: usize = (1 << 18) - 8;

static NOTES: Carrier<Option<&'static mut Notes>> = Carrier::new(None);
/// Where temporary files belong.
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// The device and inode of a file.
type Identity = [u64; 2];

/// In the server: makes the memory that is shared with the runs.
pub fn prepare() {
    // Not everything is temporary, whatever the environment says.
    let chosen = std::env::var_os("TMPDIR").map(PathBuf::from);
    let chosen = chosen.filter(|path| path.is_absolute() && path.parent().is_some());
    DIRECTORY.get_or_init(|| chosen.unwrap_or_else(|| PathBuf::from("/tmp")));
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let arguments = [0, size_of::<Notes>() as u64, access as u64, flags as u64, u64::MAX, 0];
    // SAFETY: a mapping of its own.
    let notes = unsafe { system::call(libc::SYS_mmap, arguments) };
    if notes > 0 {
        // SAFETY: all zeroes is an empty list. The mapping is as large as that, never unmapped, and named nowhere else.
        // A run writes there while its server waits for it.
        NOTES.with(|known| *known = Some(unsafe { &mut *(notes as *mut Notes) }));
    }
}

/// In a run: does `call`, which may create a file or directory at `path`. `succeeded` tells by the result whether it
/// did not fail. The call may change the path, as `mkstemp` does.
///
/// # Safety
/// `path` is null or a string.
pub unsafe fn creating<R: Copy>(
    path: *const c_char,
    call: impl FnOnce() -> R,
    succeeded: fn(R) -> bool,
) -> R {
    let may_be_new = active() && scheduler::is_running() && !path.is_null() && identity(path).is_none();
    let result = call();
    if may_be_new
        && succeeded(result)
        && let Some(identity) = identity(path)
    {
        // SAFETY: the caller's promise.
        note(unsafe { CStr::from_ptr(path) }, identity);
    }
    result
}

/// The same for shared memory and semaphores with names, which the kernel keeps as files. Those of semaphores have a
/// `prefix`.
///
/// # Safety
/// `name` is a string.
pub unsafe fn creating_shared<R: Copy>(
    prefix: &str,
    name: *const c_char,
    call: impl FnOnce() -> R,
    succeeded: fn(R) -> bool,
) -> R {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let name = name.strip_prefix(b"/").unwrap_or(name);
    let path = [SHARED.as_bytes(), b"/", prefix.as_bytes(), name, b"\0"].concat();
    // SAFETY: the path ends in a zero.
    unsafe { creating(path.as_ptr().cast(), call, succeeded) }
}

/// Where Linux has shared memory with names.
const SHARED: &str = "/dev/shm";

/// The file at this path; a link is not followed.
fn identity(path: *const c_char) -> Option<Identity> {
    // SAFETY: all zeroes is a status.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let (here, place) = (libc::AT_FDCWD as u64, (&raw mut status) as u64);
    let arguments = [here, path as u64, place, libc::AT_SYMLINK_NOFOLLOW as u64, 0, 0];
    // SAFETY: the kernel reads the path, or says that it cannot, and writes to a place of our own.
    (unsafe { system::call(libc::SYS_newfstatat, arguments) } == 0).then_some([status.st_dev, status.st_ino])
}

fn is_temporary(path: &Path) -> bool {
    let is_plain = !path.as_os_str().as_bytes().windows(4).any(|part| part == b"/../");
    is_plain
        && (path.starts_with(SHARED) || DIRECTORY.get().is_some_and(|directory| path.starts_with(directory)))
}

fn note(path: &CStr, identity: Identity) {
    if !is_temporary(Path::new(OsStr::from_bytes(path.to_bytes()))) {
        return;
    }
    let entry = [&identity.map(u64::to_ne_bytes).concat(), path.to_bytes_with_nul()].concat();
    NOTES.with(|notes| {
        let Some(notes) = notes else { return };
        let used = notes.used.load(Ordering::Relaxed) as usize;
        if let Some(place) = notes.entries.get_mut(used..used + entry.len()) {
            place.copy_from_slice(&entry);
            notes.used.store((used + entry.len()) as u64, Ordering::Release);
        }
    });
}

/// In the server: a run is over.
pub fn remove() {
    let entries = NOTES.with(|notes| {
        let notes = notes.as_mut()?;
        let used = notes.used.swap(0, Ordering::Acquire) as usize;
        notes.entries.get(..used).map(<[u8]>::to_vec)
    });
    let entries = entries.unwrap_or_default();
    let mut rest = entries.as_slice();
    while let Some((identity, path)) = first_entry(&mut rest) {
        let path = Path::new(path);
        // Most of them the run has removed itself.
        let Ok(status) = std::fs::symlink_metadata(path) else { continue };
        if !is_temporary(path) || [status.dev(), status.ino()] != identity {
            continue;
        }
        let _ = if status.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}

fn first_entry<'a>(rest: &mut &'a [u8]) -> Option<(Identity, &'a OsStr)> {
    let (device, after) = rest.split_first_chunk()?;
    let (inode, after) = after.split_first_chunk()?;
    let path = CStr::from_bytes_until_nul(after).ok()?.to_bytes();
    *rest = &after[path.len() + 1..];
    Some(([u64::from_ne_bytes(*device), u64::from_ne_bytes(*inode)], OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run may be killed while it writes: what is whole is read, and what is not is left.
    #[test]
    fn entries_are_read_one_by_one() {
        let entry =
            |identity: Identity, path: &[u8]| [&identity.map(u64::to_ne_bytes).concat(), path].concat();
        let bytes = [entry([1, 2], b"/tmp/one\0"), entry([3, 4], b"\0"), entry([5, 6], b"/tmp/cut")].concat();
        let mut rest = bytes.as_slice();
        assert_eq!(first_entry(&mut rest), Some(([1, 2], OsStr::new("/tmp/one"))));
        assert_eq!(first_entry(&mut rest), Some(([3, 4], OsStr::new(""))));
        assert_eq!(first_entry(&mut rest), None);
        assert_eq!(first_entry(&mut &bytes[..9]), None);
        assert_eq!(first_entry(&mut &[][..]), None);
    }
}
