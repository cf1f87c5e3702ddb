//! Sequences as text, for `--through`.
//!
//! ```text
//! account.c:40@a, account.c:70@b, deposit@a      locations in order; @a and @b are two different threads
//! main > transfer > account.c:52                 a location that is reached through these functions
//! {account.c:35, account.c:52}                   two threads stand before these at the same time
//! free_all between queue.c:10 and queue.c:12     in order 10, free_all, 12; 10 and 12 in one thread
//! init before worker                             the same as: init, worker
//! ```
//!
//! # The grammar
//!
//! ```text
//! sequence = element { "," element }
//! element  = waypoint "between" waypoint "and" waypoint
//!          | item { "before" item }
//! item     = waypoint | "{" waypoint "," waypoint { "," waypoint } "}"
//! waypoint = { place ">" } place [ "@" thread ]
//! place    = name ":" line [ ":" column ] | name
//! thread   = "0" { "." number } | letter { letter | digit | "_" }
//! ```
//!
//! A name with a line is a file: its base name, the end of its path, all of its path, or a pattern (see
//! [`FilePattern`]). A name without a line is a function.
//!
//! A name ends at a blank or at one of `, { } @ > "`, and a file's name at the `:` before its line. What stands in
//! brackets belongs to the name, as in `std::map<int, long>::at` and `main::{{closure}}`. Any other name, and a function
//! that is called `between`, `and` or `before`, is written in double quotes, with the escapes `\"`, `\\`, `\n`, `\r`,
//! `\t` and `\u{1b}`.
//!
//! A thread is a thread id as Threadbare prints it, or a variable. Different names are different threads. In
//! `A between B and C`, B and C are in the same thread and A is in another. Threads that are not named there are the
//! same two in all of the sequence.
//!
//! [`Sequence`] implements [`Display`](fmt::Display) as the inverse, without `between` and `before`.

mod between;
pub(super) mod names;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use threadbare_trace::ThreadId;

use super::quote::read_escape;
use super::{FilePattern, Place, Sequence, Step, ThreadName, Waypoint};
pub(super) use between::variables;
use between::{Element, in_order};
use names::{KEYWORDS, is_delimiter, is_file_name, is_variable, plain_name_length};

/// How much of a text is shown on either side of a mistake in it.
const SHOWN: usize = 30;

/// Why a text is not a sequence, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceError {
    /// A fragment such as "expected a location, found `,`".
    pub message: String,
    /// The bytes of the text that are wrong.
    pub range: Range<usize>,
    /// The text around the mistake, and the mistake marked below it.
    excerpt: String,
}

impl fmt::Display for SequenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.message, self.excerpt)
    }
}

impl std::error::Error for SequenceError {}

impl SequenceError {
    fn new(text: &str, range: Range<usize>, message: impl Into<String>) -> SequenceError {
        let before: String = text[..range.start].chars().rev().take(SHOWN).collect();
        let before: String = before.chars().rev().map(shown).collect();
        let wrong: String = text[range.clone()].chars().take(SHOWN).map(shown).collect();
        let after: String = text[range.end..].chars().take(SHOWN).map(shown).collect();
        let (blanks, marks) = (" ".repeat(before.chars().count()), "^".repeat(wrong.chars().count().max(1)));
        let excerpt = format!("  {before}{wrong}{after}\n  {blanks}{marks}");
        SequenceError { message: message.into(), range, excerpt }
    }
}

/// A character of a text that is shown in one line.
fn shown(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

impl FromStr for Sequence {
    type Err = SequenceError;

    fn from_str(text: &str) -> Result<Sequence, SequenceError> {
        let mut cursor = Cursor { text, at: 0 };
        let mut elements = vec![cursor.element()?];
        while cursor.take(',') {
            elements.push(cursor.element()?);
        }
        cursor.skip_blanks();
        if cursor.at < text.len() {
            return Err(cursor.unexpected("`,` or the end of the sequence"));
        }
        Ok(Sequence { steps: in_order(text, elements)? })
    }
}

/// The part of a text that is still to be read.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Passes a character, if it comes next.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Passes a keyword, if it comes next.
    fn take_keyword(&mut self, keyword: &str) -> bool {
        self.skip_blanks();
        let found = self.word_ahead() == keyword;
        if found {
            self.at += keyword.len();
        }
        found
    }

    /// The letters that come next.
    fn word_ahead(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(|c: char| c.is_whitespace() || is_delimiter(c)).unwrap_or(rest.len())]
    }

    fn error(&self, range: Range<usize>, message: impl Into<String>) -> SequenceError {
        SequenceError::new(self.text, range, message)
    }

    /// What comes next is not what was expected.
    fn unexpected(&self, expected: &str) -> SequenceError {
        let found = match self.word_ahead() {
            "" => self.peek().map(String::from).unwrap_or_default(),
            word => word.to_owned(),
        };
        let range = self.at..self.at + found.len();
        match found.as_str() {
            "" => self.error(range, format!("expected {expected}, found the end")),
            _ if self.word_ahead().contains("::") => {
                self.error(range, format!("expected {expected}; a name with `{{` in it is written in quotes"))
            }
            found => {
                let found: String = found.chars().take(SHOWN).map(shown).collect();
                self.error(range, format!("expected {expected}, found `{found}`"))
            }
        }
    }

    fn element(&mut self) -> Result<Element, SequenceError> {
        self.skip_blanks();
        let start = self.at;
        let mut steps = vec![self.item()?];
        if let [Step::Pass(inner)] = &steps[..]
            && self.take_keyword("between")
        {
            let first = self.waypoint()?;
            if !self.take_keyword("and") {
                return Err(self.unexpected("`and` and a second location"));
            }
            let outer = Box::new([first, self.waypoint()?]);
            return Ok(Element::Between { inner: inner.clone(), outer, range: start..self.at });
        }
        while self.take_keyword("before") {
            steps.push(self.item()?);
        }
        Ok(Element::Steps(steps))
    }

    fn item(&mut self) -> Result<Step, SequenceError> {
        self.skip_blanks();
        let start = self.at;
        if !self.take('{') {
            return self.waypoint().map(Step::Pass);
        }
        let mut waypoints = vec![self.waypoint()?];
        while self.take(',') {
            waypoints.push(self.waypoint()?);
        }
        if !self.take('}') {
            return Err(self.unexpected("`,` or `}`"));
        }
        let range = start..self.at;
        if waypoints.len() < 2 {
            return Err(self.error(range, "expected two locations or more in `{}`, one for each thread"));
        }
        let named: Vec<&ThreadName> =
            waypoints.iter().filter_map(|waypoint| waypoint.thread.as_ref()).collect();
        match named.iter().enumerate().find(|(i, thread)| named[..*i].contains(thread)) {
            Some((_, thread)) => {
                Err(self
                    .error(range, format!("thread `{thread}` cannot be at two locations at the same time")))
            }
            None => Ok(Step::Together(waypoints)),
        }
    }

    fn waypoint(&mut self) -> Result<Waypoint, SequenceError> {
        let mut callers = Vec::new();
        let mut place = self.place()?;
        while self.take('>') {
            callers.push(std::mem::replace(&mut place, self.place()?));
        }
        let thread = if self.take('@') { Some(self.thread()?) } else { None };
        Ok(Waypoint { place, thread, callers })
    }

    fn thread(&mut self) -> Result<ThreadName, SequenceError> {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
        let (name, range) = (&rest[..end], self.at..self.at + end);
        if name.is_empty() {
            return Err(self.unexpected("a thread after `@`, such as `0.1` or `a`"));
        }
        self.at = range.end;
        if is_variable(name) {
            return Ok(ThreadName::Variable(name.to_owned()));
        }
        match name.parse::<ThreadId>() {
            Ok(id) => Ok(ThreadName::Id(id)),
            Err(error) if name.starts_with(|c: char| c.is_ascii_digit()) => {
                Err(self.error(range, error.to_string()))
            }
            Err(_) => {
                Err(self.error(range, format!("`{name}` is not a thread, such as `0.1`, `a` or `writer`")))
            }
        }
    }

    fn place(&mut self) -> Result<Place, SequenceError> {
        self.skip_blanks();
        let start = self.at;
        let is_quoted = self.peek() == Some('"');
        let name = if is_quoted { self.quoted()? } else { self.plain_name()? };
        let range = start..self.at;
        if self.is_line_ahead() {
            let line = self.number("a line")?;
            let column = if self.is_line_ahead() { Some(self.number("a column")?) } else { None };
            let file = FilePattern::new(name).ok_or_else(|| self.error(range, "a file has a name"))?;
            return Ok(Place::Line { file, line, column });
        }
        if name.is_empty() {
            return Err(self.error(range, "a function has a name"));
        }
        if !is_quoted && KEYWORDS.contains(&name.as_str()) {
            return Err(self.error(
                range,
                format!("expected a location, found `{name}`; a function of this name is written in quotes"),
            ));
        }
        if !is_quoted && is_file_name(&name) {
            return Err(self.error(range, format!("expected a line after the file, such as `{name}:40`")));
        }
        Ok(Place::Function(name))
    }

    fn is_line_ahead(&self) -> bool {
        let after = self.rest().strip_prefix(':');
        after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// The number after the colon that comes next.
    fn number(&mut self, what: &str) -> Result<u32, SequenceError> {
        self.at += 1;
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let range = self.at..self.at + end;
        self.at = range.end;
        match rest[..end].parse() {
            Ok(0) => Err(self.error(range, format!("{what} is a number from 1"))),
            Ok(number) => Ok(number),
            Err(_) => Err(self.error(range, format!("`{}` is not {what}", &rest[..end]))),
        }
    }

    fn quoted(&mut self) -> Result<String, SequenceError> {
        let start = self.at;
        let mut name = String::new();
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(name),
                '\\' => {
                    let (c, length) = read_escape(self.rest())
                        .map_err(|message| self.error(self.at - 1..self.at, message))?;
                    self.at += length;
                    name.push(c);
                }
                c => name.push(c),
            }
        }
        Err(self.error(start..start + 1, "this quote is not closed"))
    }

    fn plain_name(&mut self) -> Result<String, SequenceError> {
        let start = self.at;
        match plain_name_length(self.rest()) {
            Ok(0) => Err(self.unexpected("a location, such as `account.c:40` or a function")),
            Ok(length) => {
                self.at += length;
                Ok(self.text[start..self.at].to_owned())
            }
            Err(at) => {
                let bracket = start + at..start + at + 1;
                Err(self.error(bracket, "this bracket is not closed; such a name is written in quotes"))
            }
        }
    }
}
