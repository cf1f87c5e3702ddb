//! The runtime library, which travels inside the tool.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use thiserror::Error;
use threadbare_program::bounded;
use threadbare_trace::hash::fingerprint;

use crate::cache::cache;

const LIBRARY: &[u8] = include_bytes!(env!("THREADBARE_RUNTIME"));
/// The names that programs built with `gcc -fsanitize=thread` look for: `libtsan.so.0` up to gcc 10, `.so.2` since.
const NAMES: [&str; 2] = ["libtsan.so.2", "libtsan.so.0"];

/// The library could not be put where programs find it.
#[derive(Debug, Error)]
pub enum InstallError {
    #[error("cannot write the runtime library to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot make a directory for the runtime library: {0}")]
    NoCache(#[source] io::Error),
}

/// Puts the library into the user's cache, once for each version of it, and returns the directory.
pub fn install() -> Result<PathBuf, InstallError> {
    let directory = cache().map_err(InstallError::NoCache)?.join(format!("{:016x}", fingerprint(LIBRARY)));
    let new = write_library(&directory);
    if new.map_err(|source| InstallError::Write { path: directory.clone(), source })? {
        remove_unused(&directory);
    }
    Ok(directory)
}

/// Writes the library, unless it is there. Returns whether it was written.
fn write_library(directory: &Path) -> io::Result<bool> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut written = false;
    for name in NAMES {
        let path = directory.join(name);
        if bounded::read_regular(&path, LIBRARY.len() as u64).is_ok_and(|there| there == LIBRARY) {
            // Without the date it is only removed too early, some day.
            let _ = fs::File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now()));
            continue;
        }
        // Written beside and renamed, so that nobody ever loads half of it. Workers of one process start at the
        // same time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let new = directory.join(format!("{name}.{}.{count}", std::process::id()));
        let mut file = fs::File::create(&new)?;
        file.write_all(LIBRARY)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        written = true;
    }
    Ok(written)
}

/// Libraries of other versions are removed if they were not used for this long.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 3600);

/// Removes libraries of other versions beside `ours`, unless they are still in use. The tool sets the date of its
/// library when it uses it. The kernel does so when a program that was linked to it runs without the tool. A process that
/// has the library loaded keeps it, removed or not. Errors are ignored.
fn remove_unused(ours: &Path) {
    let others = ours.parent().and_then(|cache| fs::read_dir(cache).ok()).into_iter().flatten().flatten();
    for other in others {
        let name = other.file_name();
        let is_version = name.len() == 16 && name.to_string_lossy().chars().all(|c| c.is_ascii_hexdigit());
        let path = other.path();
        let unused = last_used(&path.join(NAMES[0])).is_some_and(|age| age > UNUSED);
        if is_version && unused && path != ours && other.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// How long ago a file was last read or dated.
fn last_used(path: &Path) -> Option<Duration> {
    let data = fs::metadata(path).ok()?;
    data.modified().ok()?.max(data.accessed().ok()?).elapsed().ok()
}
