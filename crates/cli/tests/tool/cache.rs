//! The runtime library in the user's cache.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{path, root, run, tool};

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

/// A hunt by a user without a home, who has `temporary` for temporary files.
fn hunt_without_home(temporary: &Path) {
    let source = root().join("subjects/c/wronglock.c");
    let out = tempfile::tempdir().expect("a directory");
    let mut hunt = tool(&["hunt", path(&source), "--budget", "5runs", "--out", path(out.path())]);
    hunt.env("HOME", "/dev/null").env_remove("XDG_CACHE_HOME").env("TMPDIR", temporary);
    let (stdout, stderr, code) = run(&mut hunt);
    assert!(code < 2, "{stdout}{stderr}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Protects from code that somebody else has put where the library is looked for: a directory that is not ours alone is
/// not touched, and the one that is made instead is gone at the end.
#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let user = rustix::process::getuid().as_raw();
    let name = format!("threadbare-{user}");
    let others = tempfile::tempdir().expect("a directory");
    type Plant = fn(&Path, &Path);
    let mut plants: Vec<Plant> = vec![
        |place, _| {
            fs::create_dir(place).expect("a directory");
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).expect("it is ours");
        },
        |place, others| symlink(others, place).expect("a link"),
        |place, _| drop(File::create(place).expect("a file")),
    ];
    if user == 0 {
        plants.push(|place, _| {
            fs::create_dir(place).expect("a directory");
            std::os::unix::fs::chown(place, Some(65534), None).expect("root can give it away");
        });
    }
    for plant in plants {
        let temporary = tempfile::tempdir().expect("a directory");
        // As /tmp is.
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o1777)).expect("it is ours");
        let place = temporary.path().join(&name);
        plant(&place, others.path());
        hunt_without_home(temporary.path());
        assert_eq!(names(temporary.path()), [&name[..]], "nothing else is left");
        assert!(!place.is_dir() || names(&place).is_empty(), "the directory was used");
    }
    assert!(names(others.path()).is_empty(), "the link was followed");
}

#[test]
fn a_user_without_a_home_has_a_private_cache() {
    let temporary = tempfile::tempdir().expect("a directory");
    hunt_without_home(temporary.path());
    let name = format!("threadbare-{}", rustix::process::getuid().as_raw());
    assert_eq!(names(temporary.path()), [&name[..]]);
    let mode = fs::metadata(temporary.path().join(name)).expect("the cache").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
