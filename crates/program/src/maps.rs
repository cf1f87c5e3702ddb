//! Finds the loaded modules in the text of `/proc/PID/maps`.

use std::path::PathBuf;

/// A file that has code mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedFile {
    pub(crate) path: PathBuf,
    /// Its mappings as (address, offset in the file), by address.
    pub(crate) mappings: Vec<(u64, u64)>,
}

/// The files with at least one executable mapping. A file that is mapped only as data (locales, a program's own input) is
/// no module, nor is a mapping without a file, such as `[vdso]`.
pub(crate) fn mapped_files(maps: &str) -> Vec<MappedFile> {
    let mut files: Vec<(MappedFile, bool)> = Vec::new();
    for (start, executable, offset, path) in maps.lines().filter_map(mapping) {
        let path = PathBuf::from(path);
        // The mappings of one load of a file stand together.
        match files.last_mut().filter(|(file, _)| file.path == path) {
            Some((file, is_code)) => {
                file.mappings.push((start, offset));
                *is_code |= executable;
            }
            None => files.push((MappedFile { path, mappings: vec![(start, offset)] }, executable)),
        }
    }
    files.into_iter().filter(|(_, is_code)| *is_code).map(|(file, _)| file).collect()
}

/// One line: `start-end perms offset dev inode path`, when it names a file.
fn mapping(line: &str) -> Option<(u64, bool, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, _) = range.split_once('-')?;
    let (permissions, rest) = rest.split_once(' ')?;
    let (offset, _) = rest.split_once(' ')?;
    let path = line.get(line.find('/')?..)?;
    Some((
        u64::from_str_radix(start, 16).ok()?,
        permissions.contains('x'),
        u64::from_str_radix(offset, 16).ok()?,
        path.strip_suffix(" (deleted)").unwrap_or(path),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the choice of what is a module: paths with blanks count, data files and `[vdso]` do not.
    #[test]
    fn only_files_with_code_are_modules() {
        let text = "\
555555554000-555555555000 r--p 00000000 fe:00 17                         /home/a b/prog
555555555000-555555556000 r-xp 00001000 fe:00 17                         /home/a b/prog
7ffff7c00000-7ffff7d00000 r--p 00000000 fe:00 18                         /usr/lib/locale/locale-archive
7ffff7e00000-7ffff7e01000 r-xp 00000000 00:00 0                          [vdso]
7ffff7f00000-7ffff7f01000 rw-p 00000000 00:00 0
nonsense
";
        let expected = MappedFile {
            path: "/home/a b/prog".into(),
            mappings: vec![(0x555555554000, 0), (0x555555555000, 0x1000)],
        };
        assert_eq!(mapped_files(text), [expected]);
    }
}
