//! Traces for other tools: STD and CSV as the race detector RAPID reads them, and JSON for everything else.
//!
//! # STD
//!
//! One operation a line, `T<thread>|<operation>(<operand>)|<location>`:
//!
//! ```text
//! T0|fork(T1)|3
//! T1|acq(lock)|7
//! T1|w(accounts[1].amount)|8
//! T1|rel(lock)|9
//! T0|join(T1)|4
//! ```
//!
//! Thread and location are indices of the trace's tables; RAPID takes nothing but a number for a location. An
//! operand is the object's name, with `_` for each character that would end it early: white space, control
//! characters, `|`, `(`, `)` and `,`. Objects that would then share a name, or have none, have `#` and their
//! index appended, so that two objects are never one variable.
//!
//! # CSV
//!
//! The same operations, with a column per thread and no header; a line has one cell that is not empty. There
//! are no locations in it, and `fork` is called `start`:
//!
//! ```text
//! start(T1)
//! ,acq(lock)
//! ```
//!
//! # What STD and CSV can say
//!
//! They know reads, writes, locks, and the creation and joining of threads. Hence:
//!
//! - An atomic load is a read, a store a write, a read-modify-write a read and then a write; a failed
//!   compare-exchange only reads. Atomics therefore order nothing, and a tool that reports a race on one has
//!   seen two atomic accesses, not a bug.
//! - A read-write lock is a family of plain locks, one for each thread that ever takes its read side and one
//!   for writers. A reader takes its own, `lock#r1` for thread 1; a writer takes `lock` and then all the
//!   readers'. So writers exclude everyone and readers only writers, and no order between readers is made up,
//!   as it would be with one lock for all. (Leaving readers out would show races with writers that cannot
//!   be.)
//! - Only the outermost acquisition of a recursive lock is written, and its release. A release by a thread
//!   that does not hold the lock is left out, so every release has its acquisition.
//! - A condition wait is the release and acquisition of its mutex, which are events of their own in a trace.
//! - Operations that did not succeed, such as a try that found the lock taken, are left out.
//! - All else is left out: notifications, semaphores, barriers, once, futexes, fences, memory management.
//!   What they order looks unordered. `begin` and `end` are left out too: not every RAPID reads them.
//! - Objects are variables of their own even where they overlap in memory.
//!
//! # JSON
//!
//! One object a line: the run, each event, and the end, as [`json()`] describes.
//!
//! All three write in small pieces, so a file wants a [`BufWriter`](io::BufWriter) around it.

mod json;
mod operations;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use self::json::json;
use self::operations::{Operand, operations};
use threadbare_trace::Trace;

/// Writes the trace in RAPID's STD format.
pub fn std(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let names = names(trace);
    operations(trace, |operation| {
        write!(out, "T{}|{}(", operation.thread, operation.verb)?;
        write_operand(out, &names, operation.operand)?;
        writeln!(out, ")|{}", operation.location)
    })
}

/// Writes the trace in RAPID's CSV format.
pub fn csv(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let names = names(trace);
    operations(trace, |operation| {
        for _ in 0..operation.thread.number() {
            out.write_all(b",")?;
        }
        write!(out, "{}(", if operation.verb == "fork" { "start" } else { operation.verb })?;
        write_operand(out, &names, operation.operand)?;
        out.write_all(b")\n")
    })
}

fn write_operand(out: &mut impl Write, names: &[String], operand: Operand) -> io::Result<()> {
    match operand {
        Operand::Object(object) => out.write_all(names[object.index()].as_bytes()),
        Operand::ReadSide { object, thread } => write!(out, "{}#r{thread}", names[object.index()]),
        Operand::Thread(thread) => write!(out, "T{thread}"),
    }
}

/// A name for each object that no other has, in characters that STD and CSV allow.
fn names(trace: &Trace) -> Vec<String> {
    let clean: Vec<String> = trace.objects.iter().map(|object| sanitised(&object.display)).collect();
    let mut uses = std::collections::HashMap::new();
    for name in &clean {
        *uses.entry(name.as_str()).or_insert(0) += 1;
    }
    // A name that holds a `#` might be one that was made up for another object.
    let stands_alone = |name: &str| !name.is_empty() && !name.contains('#') && uses[name] == 1;
    clean
        .iter()
        .enumerate()
        .map(|(i, name)| if stands_alone(name) { name.clone() } else { format!("{name}#{i}") })
        .collect()
}

fn sanitised(name: &str) -> String {
    let ends_it = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '|' | '(' | ')' | ',');
    name.replace(ends_it, "_")
}
