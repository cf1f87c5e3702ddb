//! Sequences that are kept as tests: what was found out once must stay so.
//!
//! # The text form
//!
//! [`Suite`] implements [`Display`](fmt::Display) and [`FromStr`] as one another's inverse:
//!
//! ```text
//! threadbare sequences 1
//!
//! # The two withdrawals that were lost in March.
//! sequence lost update
//! expect real
//! through account.c:40@a, account.c:40@b, account.c:41@a
//!
//! sequence closed while in use
//! expect not shown
//! through {close_all, queue.c:12}
//! ```
//!
//! The first line names the format and its version. A reader refuses a version that is newer than its own.
//!
//! A sequence begins with `sequence` and its name. Each name is there once. `expect` says what a run of the tool is to
//! conclude: `real`, `reached` or `not shown` (see [`Verdict`]). `through` is a sequence in the syntax of
//! [`--through`](super::through). A long one may be on several lines, each with `through` and some of its steps. Lines
//! that begin with `#` are comments, which belong to the sequence that follows. Empty lines mean nothing. In a name, a
//! backslash and control characters are escaped as in a quoted name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::quote::{read_escape, write_char};
use super::{Sequence, SequenceError};

/// The version that is written. Version 1 is the first.
pub const VERSION: u32 = 1;
const FIRST_LINE: &str = "threadbare sequences ";

/// The sequences of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suite {
    pub entries: Vec<Entry>,
    /// Comments after the last sequence, without their `#`.
    pub closing_comments: Vec<String>,
}

/// A sequence with its name and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Lines of comment before the sequence, without their `#`.
    pub comments: Vec<String>,
    pub name: String,
    pub expectation: Verdict,
    pub sequence: Sequence,
}

/// The answer to whether a program can be driven through a sequence, from the least to the most that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// No run is found that passes them.
    NotShown,
    /// A run passes the locations.
    Reached,
    /// A run passes the locations and fails.
    Real,
}

impl Verdict {
    pub const ALL: [Verdict; 3] = [Verdict::Real, Verdict::Reached, Verdict::NotShown];

    /// As it is written: `real`, `reached`, `not shown`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Real => "real",
            Verdict::Reached => "reached",
            Verdict::NotShown => "not shown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a text is not a suite, and in which line, counted from 1.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {message}")]
pub struct SuiteError {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}{VERSION}")?;
        for entry in &self.entries {
            writeln!(f)?;
            write_comments(f, &entry.comments)?;
            f.write_str("sequence ")?;
            write_title(f, &entry.name)?;
            writeln!(f, "\nexpect {}\nthrough {}", entry.expectation, entry.sequence)?;
        }
        if !self.closing_comments.is_empty() {
            writeln!(f)?;
        }
        write_comments(f, &self.closing_comments)
    }
}

fn write_comments(f: &mut fmt::Formatter<'_>, comments: &[String]) -> fmt::Result {
    comments.iter().try_for_each(|comment| writeln!(f, "#{comment}"))
}

/// Blanks at either end are escaped, since who edits a line may lose them.
fn write_title(f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
    let (start, end) = (title.len() - title.trim_start().len(), title.trim_end().len());
    title.char_indices().try_for_each(|(at, c)| write_char(f, c, at < start || at >= end))
}

fn read_title(mut text: &str) -> Result<String, String> {
    let mut title = String::with_capacity(text.len());
    while let Some((plain, escaped)) = text.split_once('\\') {
        title.push_str(plain);
        let (c, length) = read_escape(escaped)?;
        title.push(c);
        text = &escaped[length..];
    }
    title.push_str(text);
    Ok(title)
}

impl FromStr for Suite {
    type Err = SuiteError;

    fn from_str(text: &str) -> Result<Suite, SuiteError> {
        let mut reader = Reader::default();
        let mut lines = text.lines().zip(1..);
        let (first, _) = lines.next().unwrap_or_default();
        read_version(first).map_err(|message| SuiteError { line: 1, message })?;
        for (line, number) in lines {
            reader.line(line.trim(), number)?;
        }
        reader.finish_entry()?;
        Ok(Suite { entries: reader.entries, closing_comments: reader.comments })
    }
}

fn read_version(line: &str) -> Result<(), String> {
    let version = line.trim_end().strip_prefix(FIRST_LINE).and_then(|version| version.parse::<u32>().ok());
    match version {
        Some(1..=VERSION) => Ok(()),
        Some(0) | None => Err(format!("expected `{FIRST_LINE}{VERSION}`")),
        Some(version) => {
            Err(format!("the file has version {version}; this Threadbare reads versions up to {VERSION}"))
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    entries: Vec<Entry>,
    names: BTreeSet<String>,
    /// Comments that belong to what comes next.
    comments: Vec<String>,
    open: Option<Open>,
}

/// A sequence of which not all lines were read.
struct Open {
    /// The number of its first line.
    line: usize,
    comments: Vec<String>,
    name: String,
    expectation: Option<Verdict>,
    sequence: Sequence,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) -> Result<(), SuiteError> {
        if let Some(comment) = line.strip_prefix('#') {
            self.comments.push(comment.to_owned());
            return Ok(());
        }
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let done = match (key, &mut self.open) {
            ("", _) => Ok(()),
            ("sequence", _) => {
                let comments = std::mem::take(&mut self.comments);
                self.finish_entry()?;
                self.begin_entry(comments, value.trim_start(), number)
            }
            ("expect" | "through", None) => Err(format!("expected `sequence` and a name before `{key}`")),
            ("expect", Some(open)) => open.expect(value.trim_start()),
            ("through", Some(open)) => open.through(value),
            _ => Err(format!("expected `sequence`, `expect` or `through`, found `{key}`")),
        };
        done.map_err(|message| SuiteError { line: number, message })
    }

    fn begin_entry(&mut self, comments: Vec<String>, name: &str, line: usize) -> Result<(), String> {
        let name = read_title(name)?;
        if !self.names.insert(name.clone()) {
            return Err(format!("there are two sequences with the name `{name}`"));
        }
        self.open = Some(Open { line, comments, name, expectation: None, sequence: Sequence::default() });
        Ok(())
    }

    /// Closes the sequence that is open.
    fn finish_entry(&mut self) -> Result<(), SuiteError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let missing = |what: &str| SuiteError {
            line: open.line,
            message: format!("the sequence `{}` has no `{what}`", open.name),
        };
        let expectation = open.expectation.ok_or_else(|| missing("expect"))?;
        if open.sequence.steps.is_empty() {
            return Err(missing("through"));
        }
        let Open { comments, name, sequence, .. } = open;
        self.entries.push(Entry { comments, name, expectation, sequence });
        Ok(())
    }
}

impl Open {
    fn through(&mut self, value: &str) -> Result<(), String> {
        let more: Sequence = value.parse().map_err(|error: SequenceError| error.to_string())?;
        self.sequence.steps.extend(more.steps);
        Ok(())
    }

    fn expect(&mut self, value: &str) -> Result<(), String> {
        let Some(expectation) = Verdict::ALL.into_iter().find(|expectation| expectation.name() == value)
        else {
            return Err(format!("expected `real`, `reached` or `not shown`, found `{value}`"));
        };
        match self.expectation.replace(expectation) {
            None => Ok(()),
            Some(_) => Err("`expect` is there twice".to_owned()),
        }
    }
}
