//! The runtime library, which travels inside the tool.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

const LIBRARY: &[u8] = include_bytes!(env!("THREADBARE_RUNTIME"));
/// What programs linked by `gcc -fsanitize=thread` look for: `libtsan.so.0` up to gcc 10, `.so.2` since.
const NAMES: [&str; 2] = ["libtsan.so.2", "libtsan.so.0"];

/// The library could not be put where programs find it.
#[derive(Debug, Error)]
#[error("cannot write the runtime library to {path}: {source}")]
pub struct InstallError {
    path: PathBuf,
    source: io::Error,
}

/// Puts the library into the user's cache, once for each version of it, and returns the directory.
pub fn install() -> Result<PathBuf, InstallError> {
    let directory = cache().join(format!("{:016x}", fingerprint(LIBRARY)));
    write_library(&directory).map_err(|source| InstallError { path: directory.clone(), source })?;
    Ok(directory)
}

/// The cache directory of the user; one of our own where there is none, or where its name could not stand in
/// a list of directories.
pub fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    // SAFETY: asks for a number.
    let fallback = || std::env::temp_dir().join(format!("threadbare-{}", unsafe { libc::getuid() }));
    match base {
        Some(base) if base.is_absolute() && !base.to_string_lossy().contains([':', ';', ' ']) => {
            base.join("threadbare")
        }
        _ => fallback(),
    }
}

fn write_library(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // SAFETY: asks for a number.
    if fs::metadata(directory)?.uid() != unsafe { libc::getuid() } {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the directory belongs to another user"));
    }
    for name in NAMES {
        let path = directory.join(name);
        if fs::read(&path).is_ok_and(|there| there == LIBRARY) {
            continue;
        }
        // Written beside and renamed, so that nobody ever loads half of it.
        let new = directory.join(format!("{name}.{}", std::process::id()));
        let mut file = fs::File::create(&new)?;
        file.write_all(LIBRARY)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
    }
    Ok(())
}

/// FNV-1a: tells one build of the library from another.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
