//! The directory for what the tool makes for itself: the runtime library and the facade, which are loaded and linked into
//! programs. Whoever can write there can run code as the user. So it is used only if it is the user's own and nobody else
//! can write to it or replace it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::process::getuid;

use crate::scratch::Scratch;

/// The cache of this process, once it has been chosen.
static CHOSEN: Mutex<Option<Cache>> = Mutex::new(None);

enum Cache {
    Lasting(PathBuf),
    /// No directory is safe, so this one is for this process alone.
    Temporary(Scratch),
}

/// The cache directory, which is there. It is the user's; where that cannot be used, one for the user in the directory
/// for temporary files; and where that belongs to somebody else, a new one that goes with this process.
pub fn cache() -> io::Result<PathBuf> {
    let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = match chosen.take() {
        Some(cache) => cache,
        None => match lasting_cache() {
            Some(directory) => Cache::Lasting(directory),
            None => Cache::Temporary(Scratch::new()?),
        },
    };
    let directory = match &cache {
        Cache::Lasting(directory) => directory.clone(),
        Cache::Temporary(directory) => directory.path().to_owned(),
    };
    *chosen = Some(cache);
    Ok(directory)
}

/// What was put into the cache goes with this process.
pub fn is_cache_temporary() -> bool {
    matches!(*CHOSEN.lock().unwrap_or_else(PoisonError::into_inner), Some(Cache::Temporary(_)))
}

fn lasting_cache() -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let configured = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
    let base = configured.or_else(|| Some(std::env::home_dir()?.join(".cache"))).filter(absolute);
    let users = base.map(|base| base.join("threadbare"));
    let in_temporary = std::env::temp_dir().join(format!("threadbare-{}", getuid().as_raw()));
    let has_plain_name = |path: &PathBuf| !path.to_string_lossy().contains([':', ';', ' ']);
    // The name becomes part of a list of directories.
    users
        .into_iter()
        .chain([in_temporary])
        .filter(has_plain_name)
        .find(|directory| make_private(directory).is_ok())
}

/// Makes the directory if it is not there, and checks that it is the user's own.
fn make_private(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A link is followed only where nobody else could have made it.
    let flags = libc::O_DIRECTORY | if is_shared(parent)? { libc::O_NOFOLLOW } else { 0 };
    let data = File::options().read(true).custom_flags(flags).open(directory)?.metadata()?;
    let is_ours = data.uid() == getuid().as_raw() && data.mode() & OTHERS_WRITE == 0;
    let can_be_replaced = is_shared(parent)? && !is_sticky(parent)?;
    if is_ours && !can_be_replaced { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

const OTHERS_WRITE: u32 = 0o022;

/// Others can make files there.
fn is_shared(directory: &Path) -> io::Result<bool> {
    let data = fs::metadata(directory)?;
    let is_trusted = data.uid() == 0 || data.uid() == getuid().as_raw();
    Ok(!is_trusted || data.mode() & OTHERS_WRITE != 0)
}

/// Others cannot rename or remove what is not theirs.
fn is_sticky(directory: &Path) -> io::Result<bool> {
    const STICKY: u32 = 0o1000;
    let data = fs::metadata(directory)?;
    Ok(data.mode() & STICKY != 0 && (data.uid() == 0 || data.uid() == getuid().as_raw()))
}
