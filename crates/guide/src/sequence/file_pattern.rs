//! Which source file is meant: `queue.rs`, `src/queue.rs`, `/home/me/queue.rs`, `src/**/queue.rs` or `*.c`.

/// A base name, the end of a path, a whole path, or a pattern with `*`, `?` and `**` in it. Never empty.
///
/// `*` and `?` stand for any characters and for one character within a part of a path, `**` for any number of parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePattern(String);

impl FilePattern {
    /// `None` for the empty text.
    pub fn new(text: impl Into<String>) -> Option<FilePattern> {
        let text = text.into();
        (!text.is_empty()).then_some(FilePattern(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It may mean several files.
    pub fn is_glob(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// The last part of the path.
    pub fn base_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the path, as the compiler recorded it, is meant.
    pub fn matches(&self, path: &str) -> bool {
        let (pattern, path_parts) = (parts(&self.0), parts(path));
        if self.0.starts_with('/') {
            return path.starts_with('/') && parts_match(&pattern, &path_parts);
        }
        // What is not a whole path may begin anywhere in one.
        let anywhere: Vec<&str> = std::iter::once("**").chain(pattern).collect();
        parts_match(&anywhere, &path_parts)
    }

    /// The files of the program that are meant. If none matches, those whose paths have the longest end in common with
    /// this one, which must be the base name at least: a report may come from a machine with other directories.
    pub fn closest<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let paths: Vec<&str> = paths.into_iter().collect();
        let matching: Vec<&str> = paths.iter().copied().filter(|path| self.matches(path)).collect();
        if !matching.is_empty() {
            return matching;
        }
        let own = parts(&self.0);
        let in_common = |path: &str| {
            let theirs = parts(path);
            own.iter().rev().zip(theirs.iter().rev()).take_while(|(a, b)| part_matches(a, b)).count()
        };
        let longest = paths.iter().map(|path| in_common(path)).max().unwrap_or(0);
        paths.into_iter().filter(|path| longest > 0 && in_common(path) == longest).collect()
    }
}

/// The parts of a path without `.`, and without `..` as far as there is a part before it to undo.
///
/// A leading `..` is left out too: it says nothing about where the file is.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    wildcard_matches(pattern, path, |part| *part == "**", |pattern, part| part_matches(pattern, part))
}

fn part_matches(pattern: &str, part: &str) -> bool {
    let (pattern, part): (Vec<char>, Vec<char>) = (pattern.chars().collect(), part.chars().collect());
    wildcard_matches(&pattern, &part, |c| *c == '*', |pattern, c| *pattern == '?' || pattern == c)
}

/// Matches items against a pattern in which some items stand for any number of them.
///
/// It goes back to the last of these only: what an earlier one could take, the last one can take too.
fn wildcard_matches<T>(
    pattern: &[T],
    items: &[T],
    is_any: impl Fn(&T) -> bool,
    is_equal: impl Fn(&T, &T) -> bool,
) -> bool {
    let (mut in_pattern, mut in_items) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    while in_items < items.len() {
        match pattern.get(in_pattern) {
            Some(wanted) if is_any(wanted) => {
                resume = Some((in_pattern + 1, in_items));
                in_pattern += 1;
            }
            Some(wanted) if is_equal(wanted, &items[in_items]) => {
                in_pattern += 1;
                in_items += 1;
            }
            _ => {
                let Some((after, start)) = resume else { return false };
                resume = Some((after, start + 1));
                (in_pattern, in_items) = (after, start + 1);
            }
        }
    }
    pattern[in_pattern..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> FilePattern {
        FilePattern::new(text).expect("it is not empty")
    }

    #[test]
    fn a_file_is_meant_by_its_name_the_end_of_its_path_or_a_pattern() {
        let path = "/home/me/project/src/queue.rs";
        for text in [
            "queue.rs",
            "src/queue.rs",
            "./src/queue.rs",
            "../src/queue.rs",
            path,
            "**/queue.rs",
            "*.rs",
            "project/**/*.rs",
            "src/que?e.rs",
            "/home/**/queue.rs",
            "src/old/../queue.rs",
        ] {
            assert!(pattern(text).matches(path), "{text}");
        }
        for text in ["ueue.rs", "rc/queue.rs", "/src/queue.rs", "queue", "*.c", "src/*/queue.rs", "queue.rs/"]
        {
            let is_directory = text.ends_with('/');
            assert_eq!(pattern(text).matches(path), is_directory, "{text}");
        }
    }

    #[test]
    fn a_path_from_another_machine_means_the_file_with_the_longest_common_end() {
        let here = ["/home/me/a/src/queue.c", "/home/me/a/tests/queue.c", "/home/me/a/src/main.c"];
        assert_eq!(pattern("/builds/7/src/queue.c").closest(here), [here[0]]);
        assert_eq!(pattern("/builds/queue.c").closest(here), [here[0], here[1]]);
        assert_eq!(pattern("tests/queue.c").closest(here), [here[1]]);
        assert!(pattern("/builds/other.c").closest(here).is_empty());
    }
}
