//! A sequence of locations, as the user gives it (section 3.1 of the paper).
//!
//! A [`Sequence`] is a list of [`Step`]s. A thread passes a location, or several threads stand before their locations at
//! the same time. A [`Waypoint`] is a location, with the thread that is meant and the functions it is called through, as
//! far as these are known.
//!
//! Sequences come in by four ways:
//!
//! | from | by |
//! |---|---|
//! | a text such as `account.c:40@a, deposit@b`, see [`through`] | [`str::parse`] |
//! | stack traces and reports of sanitizers, debuggers, Rust and Threadbare | [`report::read`] |
//! | warnings in SARIF, and the JSON of `gcc -fanalyzer` | [`sarif::read`], [`gcc_json::read`] |
//! | a file of sequences that are kept as tests | [`suite::Suite`] |
//!
//! [`warning::read`] tells which of the reports a file is. Readers take all of the text at once. Who calls them limits
//! how much that is.

pub mod file_pattern;
pub(crate) mod function_name;
pub mod gcc_json;
mod quote;
pub mod report;
pub mod sarif;
pub mod suite;
#[cfg(test)]
mod tests;
pub mod through;
pub mod warning;

use std::collections::BTreeSet;
use std::fmt;

use threadbare_trace::{Frame, ThreadId};

pub use file_pattern::FilePattern;
pub use suite::{Suite, Verdict};
pub use through::SequenceError;
use through::names;
pub use warning::Warning;

/// Locations in the order in which a run is to pass them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence {
    pub steps: Vec<Step>,
}

/// One entry of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A thread passes a location: it does what stands there.
    Pass(Waypoint),
    /// Threads stand before their locations at the same time, each of them another thread. There are at least two.
    Together(Vec<Waypoint>),
}

/// A location, the thread that is to be there, and how it got there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waypoint {
    pub place: Place,
    /// Any thread, if `None`.
    pub thread: Option<ThreadName>,
    /// Functions or calls that lead to the place, outermost first. Others may be in between.
    pub callers: Vec<Place>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// `account.c:40` or `account.c:40:7`. Lines and columns count from 1.
    Line { file: FilePattern, line: u32, column: Option<u32> },
    /// Any place in a function, named as in the source: `deposit` or `bank::deposit`. Never empty.
    Function(String),
}

/// Says which thread. Different names are different threads, the same name is the same thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadName {
    /// A thread by its path of creation.
    Id(ThreadId),
    /// A thread that is found during the run: a letter, then letters, digits and `_`, all ASCII.
    Variable(String),
}

impl Sequence {
    /// The waypoints of all steps, in order.
    pub fn waypoints(&self) -> impl Iterator<Item = &Waypoint> {
        self.steps.iter().flat_map(Step::waypoints)
    }

    /// The threads that are named.
    pub fn threads(&self) -> BTreeSet<&ThreadName> {
        self.waypoints().filter_map(|waypoint| waypoint.thread.as_ref()).collect()
    }

    /// The same locations, with any thread at each of them.
    ///
    /// A report may say more than it knows: a code flow that is written down as one thread's may need two.
    pub fn without_threads(&self) -> Sequence {
        self.map(|waypoint| Waypoint { thread: None, ..waypoint.clone() })
    }

    /// The same locations, however they are reached.
    ///
    /// A report may come from a build in which other functions were inlined, or have other names.
    pub fn without_callers(&self) -> Sequence {
        self.map(|waypoint| Waypoint { callers: Vec::new(), ..waypoint.clone() })
    }

    fn map(&self, change: impl Fn(&Waypoint) -> Waypoint) -> Sequence {
        let step = |step: &Step| match step {
            Step::Pass(waypoint) => Step::Pass(change(waypoint)),
            Step::Together(waypoints) => Step::Together(waypoints.iter().map(&change).collect()),
        };
        Sequence { steps: self.steps.iter().map(step).collect() }
    }
}

impl Step {
    /// One waypoint, or those of the group.
    pub fn waypoints(&self) -> &[Waypoint] {
        match self {
            Step::Pass(waypoint) => std::slice::from_ref(waypoint),
            Step::Together(waypoints) => waypoints,
        }
    }

    /// All of the waypoints at the same time; `None` if there are none.
    ///
    /// A thread is at one place. Of several waypoints with the same thread, the first is kept.
    pub fn together(waypoints: Vec<Waypoint>) -> Option<Step> {
        let mut named = BTreeSet::new();
        let mut is_first =
            |waypoint: &Waypoint| waypoint.thread.clone().is_none_or(|thread| named.insert(thread));
        let mut waypoints: Vec<Waypoint> =
            waypoints.into_iter().filter(|waypoint| is_first(waypoint)).collect();
        match waypoints.len() {
            0 | 1 => waypoints.pop().map(Step::Pass),
            _ => Some(Step::Together(waypoints)),
        }
    }
}

impl Waypoint {
    /// The place, in any thread and however it is reached.
    pub fn anywhere(place: Place) -> Waypoint {
        Waypoint { place, thread: None, callers: Vec::new() }
    }

    /// Whether a thread with this stack, innermost frame first, is at the place and came there through the callers.
    ///
    /// Which thread it is has to be asked elsewhere.
    pub fn matches(&self, stack: &[Frame]) -> bool {
        let Some((innermost, outer)) = stack.split_first() else { return false };
        let mut outer = outer.iter();
        self.place.matches(innermost)
            && self.callers.iter().rev().all(|caller| outer.any(|frame| caller.matches(frame)))
    }
}

impl Place {
    /// Whether the frame is at this place.
    pub fn matches(&self, frame: &Frame) -> bool {
        match self {
            Place::Function(name) => function_name::matches(name, &frame.function),
            Place::Line { file, line, column } => {
                frame.line == *line
                    && column.is_none_or(|column| frame.column == column)
                    && file.matches(&frame.file)
            }
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.steps)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Pass(waypoint) => waypoint.fmt(f),
            Step::Together(waypoints) => {
                f.write_str("{")?;
                write_list(f, waypoints)?;
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for Waypoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for caller in &self.callers {
            write!(f, "{caller} > ")?;
        }
        self.place.fmt(f)?;
        match &self.thread {
            Some(thread) => write!(f, "@{thread}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Function(name) => names::write_name(f, name, names::is_plain_function),
            Place::Line { file, line, column } => {
                names::write_name(f, file.as_str(), names::is_plain_file)?;
                write!(f, ":{line}")?;
                column.map_or(Ok(()), |column| write!(f, ":{column}"))
            }
        }
    }
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadName::Id(id) => id.fmt(f),
            ThreadName::Variable(name) => f.write_str(name),
        }
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(i, item)| match i {
        0 => item.fmt(f),
        _ => write!(f, ", {item}"),
    })
}
