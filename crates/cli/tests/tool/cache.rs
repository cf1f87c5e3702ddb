//! The runtime library in the user's cache.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::support::{root, run, tool};

/// A library that was last used so many days ago.
fn library(cache: &Path, name: &str, days: u64) -> PathBuf {
    let directory = cache.join("threadbare").join(name);
    fs::create_dir_all(&directory).expect("a directory can be made");
    let file = File::create(directory.join("libtsan.so.2")).expect("a file can be made");
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    file.set_times(FileTimes::new().set_modified(then).set_accessed(then)).expect("a file has times");
    directory
}

/// Protects the disk from libraries that pile up, and programs from losing the one they use.
#[test]
fn libraries_of_old_versions_are_removed_when_a_new_one_comes() {
    let cache = tempfile::tempdir().expect("a directory");
    let old = library(cache.path(), "0123456789abcdef", 100);
    let recent = library(cache.path(), "fedcba9876543210", 10);
    let others = library(cache.path(), "somebody-elses", 100);
    let source = root().join("subjects/c/wronglock.c");
    let mut hunt = tool(&["hunt", "--budget", "5runs"]);
    hunt.arg(&source).arg("--out").arg(cache.path().join("out")).env("XDG_CACHE_HOME", cache.path());
    let (stdout, stderr, code) = run(&mut hunt);
    assert!(code < 2, "{stdout}{stderr}");
    assert!(!old.exists(), "the old library is still there");
    assert!(recent.exists() && others.exists(), "a directory is gone that is in use, or not ours");
    let ours = fs::read_dir(cache.path().join("threadbare")).expect("the cache is there").count();
    assert_eq!(ours, 3, "one more than there were");
}
