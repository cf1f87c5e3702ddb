//! Writes files so that nobody ever sees half of one.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a new file beside `path` and then renames it. If the disk is full, no half file is left, and an older file stays
/// as it is. If `path` is there and is no regular file, such as `/dev/stdout`, it is written to directly.
pub fn write(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
        return fill(&mut File::options().write(true).open(path)?, content);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let readable = Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new()
        .permissions(readable)
        .tempfile_in(directory.unwrap_or(Path::new(".")))
        // The error of its own would name a file that nobody asked for.
        .map_err(|error| io::Error::from(error.kind()))?;
    fill(file.as_file_mut(), content)?;
    file.persist(&path)?;
    Ok(())
}

/// The same, and makes the directory first if it is not there.
pub fn write_into(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    write(path, content)
}

fn fill(file: &mut File, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(file);
    content(&mut buffered)?;
    buffered.flush()
}
