//! The directories whose files a clip may name.
//!
//! Whoever replays a clip trusts the project that the clip is about: its programs are what he wants to run. A project is
//! the directory in which the tool is called, or the repository around it; and the same for the clip's own place.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What shows that a directory is the root of a project.
const MARKERS: [&str; 5] = [".git", ".hg", ".jj", ".svn", "Cargo.lock"];
/// Where clips are written unless `--out` says otherwise. Its parent is where the hunt was.
const CLIPS: &str = "threadbare-out";

/// The projects that a clip may be about, as absolute paths without links.
pub struct Projects(Vec<PathBuf>);

impl Projects {
    /// Of a clip in the directory `clips`, for a user who is in `current`.
    pub fn of(current: &Path, clips: &Path) -> Projects {
        let (current, clips) = (current.canonicalize().ok(), clips.canonicalize().ok());
        let here = current.as_deref().map(|current| repository(current).unwrap_or(current));
        let around_clip = clips.as_deref().and_then(|clips| {
            let parent = || clips.parent().filter(|_| clips.file_name().is_some_and(|name| name == CLIPS));
            repository(clips).or_else(parent).filter(|&root| !is_home(root))
        });
        Projects(
            [here, around_clip]
                .into_iter()
                .flatten()
                .filter(|root| is_private(root))
                .map(Path::to_owned)
                .collect(),
        )
    }

    /// Whether a path that exists is inside, also after all links.
    pub fn contain(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| self.0.iter().any(|root| path.starts_with(root)))
    }
}

/// The nearest directory, upwards, that is the root of a repository of this user. Somebody else's may be in any directory
/// above, such as `/tmp`.
fn repository(directory: &Path) -> Option<&Path> {
    let is_root = |directory: &&Path| MARKERS.iter().any(|marker| directory.join(marker).exists());
    let root = directory.ancestors().take_while(|directory| !is_home(directory)).find(is_root)?;
    let owner = root.metadata().ok()?.uid();
    (owner == rustix::process::getuid().as_raw() && is_private(root)).then_some(root)
}

/// A home directory with a repository for its settings is not a project.
fn is_home(directory: &Path) -> bool {
    std::env::home_dir().is_some_and(|home| home.canonicalize().is_ok_and(|home| home == directory))
}

/// Not the root of the file system, and not a place where everybody can put files, such as `/tmp`.
fn is_private(directory: &Path) -> bool {
    const OTHERS_WRITE: u32 = 0o002;
    directory.parent().is_some() && directory.metadata().is_ok_and(|data| data.mode() & OTHERS_WRITE == 0)
}
