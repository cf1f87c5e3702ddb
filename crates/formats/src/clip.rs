//! A plan that showed something, in a form that a person can read and that survives a rebuild.
//!
//! # The text form
//!
//! [`Clip`] implements [`Display`](fmt::Display) and [`FromStr`](std::str::FromStr) as one another's inverse:
//!
//! ```text
//! threadbare clip 5
//! directory ..
//! target subjects/c/account_ring.c
//! compiler-argument -DFIXED
//! argument 2
//! input 0xaf63bd4c8601b7df input.txt
//! finding assertion
//! message assertion failed: `accounts[i].amount == 200`
//! seed 0
//! max-events 1000000
//! spurious-wakeups 2
//! outlasted-sleeps 1 1000000
//! guarded-heap
//!
//! [sites]
//! 0 main account_ring.c:60:5 pthread_create 0 | pthread_create(&thread, 0, transfer, 0);
//! 1 transfer account_ring.c:42:18 __tsan_write4 0 | to->amount = amount + 100;
//! 2 0x7ffff7e01234
//!
//! [tracked]
//! global accounts 0..80
//! heap @0 @1 8..16
//! stack 0.1 -48..-40
//! memory 0x7ffff0000000..0x7ffff0001000
//!
//! [watched]
//! @1
//!
//! [steps]
//! 0.1 until write @1 #2
//! 0 until ended
//!
//! [events]
//! 0 fork @0 thread 0.1
//! 0.1 begin
//! 0.1 write @1 accounts[1].amount
//! 0.1 unlock @2 lock
//! ```
//!
//! Blank lines, and lines whose first character is `#`, are for people and mean nothing, except that the
//! first line is always the head. Blanks around a line mean nothing either. The grammar of the others, with a
//! single blank wherever there is one below:
//!
//! ```text
//! head    = "threadbare clip " version
//! field   = "directory " text:path | "target " text | "compiler-argument " text | "argument " text
//!         | "input " number:fingerprint " " text:path
//!         | "finding " text | "message " text | "seed " number | "max-events " number
//!         | "spurious-wakeups " number | "outlasted-sleeps " number " " number:nanoseconds | "guarded-heap"
//! site    = index " " word:function " " word:file ":" line ":" column " " word:callee " " nth " | " text
//!         | index " " number:address
//! tracked = "global " word:symbol " " range | "heap " { "@" index " " } range
//!         | "stack " thread " " range | "memory " range
//! watched = "@" index
//! range   = number ".." number                          the first byte, and the one after the last
//! step    = thread " until " kind [ " @" index ] " #" occurrence | thread " until ended"
//! event   = thread " " kind [ " @" index ] [ " " text:object ]
//! ```
//!
//! - The fields come first, in any order, the arguments in theirs. All but arguments are there exactly once, and
//!   `input` at most once: without it, standard input is empty.
//!   `spurious-wakeups` at most once: without it, there are none. `outlasted-sleeps` likewise: how many sleeps may end
//!   though others could run, and how long such a sleep may be. `guarded-heap` at most once: freed memory is
//!   inaccessible.
//!   `directory` at most once: the directory that the program ran in and that the paths of target and input begin
//!   at, as seen from the clip's own. Without it, that is where `replay` is called.
//! - The sections come in the order above; one that is empty may be left out. Sites are numbered from 0, and
//!   `@1` is the site with number 1. Code without a name, in a stripped library say, is its address.
//! - `until write @1 #2` runs the thread until it is about to do its second write there; `until end #1` until
//!   it is about to end; `until ended` until it has.
//! - Numbers are decimal, or hexadecimal after `0x`.
//! - In a *text* all stands for itself but the backslash, which begins an escape: `\\`, `\n`, `\r`, `\t`,
//!   `\s` (a blank), `\u{…}` (a character by its number), `\@`, `\-`. Control characters, blanks at either
//!   end, and an `@` at the start of an object are written so. An empty text is nothing at all.
//! - A *word* is a text that has no blanks of its own. An empty one is written `-`, and `-` itself `\-`.
//!
//! # Old reader, new data
//!
//! A version that is not known is refused, and the error says which one this build reads. Fields, sections
//! and kinds that are not known are errors too, never skipped: a clip that is half understood would replay
//! something else. So whatever is added bumps [`VERSION`].
//!
//! Versions 1 to 4 are still read. Version 4 had no guarded heap. Version 3 had no watched places either. Versions 1 and 2 had no `directory` and no outlasted sleeps. Version 1 had no form for a site
//! that is an address: it wrote the address as the function, such as `0x7ffff7e01234`, and left all else empty.

mod parse;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

pub use self::parse::ClipError;
use self::text::{Object, Text, Word};
use threadbare_trace::{EventKind, Outlasting, Site, ThreadId, index_types};

/// The version of the text form.
pub const VERSION: u32 = 5;
/// The oldest version that is still read.
pub const OLDEST_VERSION: u32 = 1;

index_types! {
    /// An entry of a clip's list of sites.
    SiteIndex;
}

/// What `threadbare replay` follows: the program, the schedule that showed the finding, and every event that
/// is to be seen on the way. Code is named by [`Site`]s and memory by symbols, wherever they have names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// The directory of the run, relative to the clip's own; `None` if the clip does not say.
    pub directory: Option<String>,
    /// The program as it was given: an executable, or a C or C++ file.
    pub target: String,
    /// Further compiler arguments, when the target is a source file.
    pub compiler_arguments: Vec<String>,
    pub arguments: Vec<String>,
    /// What stood on standard input; `None` for nothing.
    pub input: Option<ClipInput>,
    /// The kind of finding, such as `assertion`.
    pub finding: String,
    /// The failure's own words.
    pub message: String,
    pub seed: u64,
    pub max_events: u64,
    /// Waits that may end without a notification.
    pub spurious: u32,
    /// Sleeps that may end though others could run.
    pub outlasting: Outlasting,
    /// Freed heap memory is inaccessible.
    pub guarded: bool,
    /// The places that the rest refers to by index.
    pub sites: Vec<ClipSite>,
    pub tracked: Vec<ClipExtent>,
    /// Places at which threads stop, whatever is done there.
    pub watched: Vec<SiteIndex>,
    pub steps: Vec<ClipStep>,
    pub events: Vec<ClipEvent>,
}

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipSite {
    Source(Site),
    /// Code without a name. The same address means the same code only in the same build.
    Address(u64),
}

/// A file that the program read as its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipInput {
    pub path: String,
    /// The [`fingerprint`](threadbare_trace::hash::fingerprint) of what was in it.
    pub fingerprint: u64,
}

/// Memory whose accesses are events, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipExtent {
    Global {
        symbol: String,
        offset: u64,
        len: u64,
    },
    /// In every block allocated at these calls, innermost first.
    Heap {
        calls: Vec<SiteIndex>,
        start: u64,
        len: u64,
    },
    Stack {
        thread: ThreadId,
        start: i64,
        len: u64,
    },
    Memory {
        start: u64,
        len: u64,
    },
}

/// Run a thread up to a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipStep {
    pub thread: ThreadId,
    pub until: ClipUntil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClipUntil {
    /// Before the thread's `occurrence`-th operation of this kind at this place; `site` is `None` for
    /// operations that have none, such as the end of a thread.
    Before {
        kind: EventKind,
        site: Option<SiteIndex>,
        occurrence: u32,
    },
    End,
}

/// An event to be seen. Values are not part of it: they may be addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipEvent {
    pub thread: ThreadId,
    pub kind: EventKind,
    pub site: Option<SiteIndex>,
    /// What a person calls the object; empty for none.
    pub object: String,
}

impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "threadbare clip {VERSION}")?;
        if let Some(directory) = &self.directory {
            writeln!(f, "directory{}", Text(directory))?;
        }
        writeln!(f, "target{}", Text(&self.target))?;
        for argument in &self.compiler_arguments {
            writeln!(f, "compiler-argument{}", Text(argument))?;
        }
        for argument in &self.arguments {
            writeln!(f, "argument{}", Text(argument))?;
        }
        if let Some(ClipInput { path, fingerprint }) = &self.input {
            writeln!(f, "input {fingerprint:#x}{}", Text(path))?;
        }
        writeln!(f, "finding{}", Text(&self.finding))?;
        writeln!(f, "message{}", Text(&self.message))?;
        writeln!(f, "seed {}", self.seed)?;
        writeln!(f, "max-events {}", self.max_events)?;
        if self.spurious > 0 {
            writeln!(f, "spurious-wakeups {}", self.spurious)?;
        }
        if self.outlasting != Outlasting::NONE {
            writeln!(f, "outlasted-sleeps {} {}", self.outlasting.sleeps, self.outlasting.longest)?;
        }
        if self.guarded {
            writeln!(f, "guarded-heap")?;
        }
        writeln!(f, "\n[sites]")?;
        for (index, site) in self.sites.iter().enumerate() {
            writeln!(f, "{index} {site}")?;
        }
        writeln!(f, "\n[tracked]")?;
        for extent in &self.tracked {
            writeln!(f, "{extent}")?;
        }
        if !self.watched.is_empty() {
            writeln!(f, "\n[watched]")?;
        }
        for site in &self.watched {
            writeln!(f, "@{site}")?;
        }
        writeln!(f, "\n[steps]")?;
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        writeln!(f, "\n[events]")?;
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

impl Clip {
    pub fn site(&self, site: SiteIndex) -> &ClipSite {
        &self.sites[site.index()]
    }
}

impl fmt::Display for ClipSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClipSite::Source(Site { function, file, line, column, text, callee, nth }) => {
                let (function, file, callee) = (Word(function), Word(file), Word(callee));
                write!(f, "{function} {file}:{line}:{column} {callee} {nth} |{}", Text(text))
            }
            ClipSite::Address(address) => write!(f, "{address:#x}"),
        }
    }
}

impl fmt::Display for ClipExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The end of a range may lie beyond 64 bits, so that any start and length can be written.
        let end = |start: i128, len: &u64| start + i128::from(*len);
        match self {
            ClipExtent::Global { symbol, offset, len } => {
                write!(f, "global {} {offset}..{}", Word(symbol), end((*offset).into(), len))
            }
            ClipExtent::Heap { calls, start, len } => {
                f.write_str("heap ")?;
                for call in calls {
                    write!(f, "@{call} ")?;
                }
                write!(f, "{start}..{}", end((*start).into(), len))
            }
            ClipExtent::Stack { thread, start, len } => {
                write!(f, "stack {thread} {start}..{}", end((*start).into(), len))
            }
            ClipExtent::Memory { start, len } => {
                write!(f, "memory {start:#x}..{:#x}", end((*start).into(), len))
            }
        }
    }
}

impl fmt::Display for ClipStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} until ", self.thread)?;
        match self.until {
            ClipUntil::Before { kind, site, occurrence } => {
                write_operation(f, kind, site)?;
                write!(f, " #{occurrence}")
            }
            ClipUntil::End => f.write_str("ended"),
        }
    }
}

impl fmt::Display for ClipEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.thread)?;
        write_operation(f, self.kind, self.site)?;
        write!(f, "{}", Object(&self.object))
    }
}

fn write_operation(f: &mut fmt::Formatter<'_>, kind: EventKind, site: Option<SiteIndex>) -> fmt::Result {
    f.write_str(kind.name())?;
    if let Some(site) = site {
        write!(f, " @{site}")?;
    }
    Ok(())
}
