//! Schedules in which a read sees another write than in the trace.
//!
//! They are made like those of an anomaly: the write and the read are a sequence to be brought about. Other threads that
//! would write in between are held back before they do, by being part of the sequence too. What is generated is checked
//! event by event, because the generator knows nothing of what is written in between. It ends with the read.

use threadbare_trace::{EventIndex, ThreadIndex};

use super::history::History;
use super::reads::Memory;
use super::schedule::{Generator, Reordering, Target};

/// A schedule that ends with `read`, which sees `write`, or what was there before the trace if that is `None`. `writes`
/// are all writes to the variable, in the order of the trace. If possible, the thread comes to the read as in the trace.
pub fn schedule(
    generator: &Generator,
    history: &History,
    read: EventIndex,
    write: Option<EventIndex>,
    writes: &[EventIndex],
) -> Option<Reordering> {
    let targets = targets(history, read, write, writes);
    let schedules = targets.iter().flat_map(|target| generator.schedules(target));
    let schedules = schedules.filter_map(|schedule| up_to(schedule, read));
    best(generator, history.thread(read), schedules.filter(|schedule| sees(history, schedule, read, write)))
}

/// The first schedule in which the thread goes the same way as in the trace, or else the first one.
pub fn best(
    generator: &Generator,
    thread: ThreadIndex,
    schedules: impl Iterator<Item = Reordering>,
) -> Option<Reordering> {
    let mut first = None;
    for schedule in schedules {
        if generator.keeps_way(&schedule, thread) {
            return Some(schedule);
        }
        first = first.or(Some(schedule));
    }
    first
}

/// What may bring it about, the least demanding first.
fn targets(
    history: &History,
    read: EventIndex,
    write: Option<EventIndex>,
    writes: &[EventIndex],
) -> Vec<Target> {
    let thread = |event: EventIndex| history.thread(event);
    let reader_is_writer = write.is_none_or(|write| thread(write) == thread(read));
    // The first write of each other thread that would hide what is to be seen. The two threads themselves go no further.
    let mut held_back: Vec<EventIndex> = Vec::new();
    for &other in writes.iter().filter(|&&other| write.is_none_or(|write| other > write)) {
        let is_part =
            thread(other) == thread(read) || write.is_some_and(|write| thread(write) == thread(other));
        if !is_part && !held_back.iter().any(|&known| thread(known) == thread(other)) {
            held_back.push(other);
        }
    }
    let pair: Vec<EventIndex> = write.filter(|_| !reader_is_writer).into_iter().chain([read]).collect();
    let alone: Vec<EventIndex> = pair.iter().chain(&held_back).copied().collect();
    let mut targets = Vec::new();
    if pair.len() > 1 {
        // The reader may have to come to stand before its read first, or the writer before its write.
        let reader_first = Target { stand: pair.iter().rev().copied().collect(), sequence: pair.clone() };
        targets.extend([Target::sequence(&pair), reader_first, Target::race(&pair)]);
    }
    if !held_back.is_empty() {
        targets.push(Target::sequence(&alone));
        targets.push(Target { stand: alone.clone(), sequence: alone });
    }
    targets
}

/// The schedule, to where `last` has happened.
fn up_to(mut schedule: Reordering, last: EventIndex) -> Option<Reordering> {
    let position = schedule.iter().position(|&event| event == last)?;
    schedule.truncate(position + 1);
    Some(schedule)
}

/// Whether `read`, the last event of the schedule, sees `write`.
fn sees(history: &History, schedule: &[EventIndex], read: EventIndex, write: Option<EventIndex>) -> bool {
    let mut memory = Memory::new(history);
    schedule.iter().take(schedule.len() - 1).for_each(|&event| memory.step(event));
    memory.last_write(read) == write
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use threadbare_formats::import;

    use super::*;
    use crate::reorder::reads::Reads;

    /// The lines of a schedule in which the read at line `read` sees the write at line `write`, or none if that is 0.
    fn schedule_of(operations: &str, read: u32, write: u32) -> Option<Vec<u32>> {
        let forks = "T0|fork(T1)|100\nT0|fork(T2)|101\nT0|fork(T3)|102\n";
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "\n");
        let text = forks.to_owned() + &lines.collect::<String>();
        let trace = import::std(text.as_bytes()).expect("the trace is well formed");
        let history = Arc::new(History::new(trace).expect("it can be analysed"));
        let label =
            |event: EventIndex| history.trace().location(history.event(event).location).frames[0].line;
        let events: Vec<EventIndex> = EventIndex::first(history.trace().events.len()).collect();
        let at = |line: u32| events.iter().copied().find(|&event| label(event) == line);
        let read = at(read).expect("there is such a read");
        let is_write =
            |&event: &EventIndex| history.writes(event) && history.variable(event) == history.variable(read);
        let writes: Vec<EventIndex> = events.iter().copied().filter(is_write).collect();
        let generator = Generator::new(Arc::clone(&history), Arc::new(Reads::of(&history)));
        let schedule = schedule(&generator, &history, read, at(write), &writes)?;
        let lines = schedule.into_iter().map(label);
        Some(lines.filter(|&line| line < 100).collect())
    }

    #[test]
    fn a_read_comes_before_all_writes() {
        let trace = "T1:w(x):1 T2:w(x):2 T3:r(x):3";
        assert_eq!(schedule_of(trace, 3, 0), Some(vec![3]));
        assert_eq!(schedule_of(trace, 3, 1), Some(vec![2, 1, 3]));
    }

    #[test]
    fn a_write_comes_after_those_that_would_hide_it() {
        let trace = "T3:w(x):1 T3:r(x):2 T1:w(x):3 T2:w(x):4";
        assert_eq!(schedule_of(trace, 2, 3), Some(vec![1, 3, 2]));
        assert_eq!(schedule_of(trace, 2, 4), Some(vec![1, 3, 4, 2]));
        assert_eq!(schedule_of(trace, 2, 0), None);
    }

    /// Protects against schedules that look right as long as nobody looks at the locks.
    #[test]
    fn what_a_lock_keeps_apart_is_not_seen() {
        let trace = "T1:acq(l):1 T1:w(x):2 T1:w(x):3 T1:rel(l):4 T2:acq(l):5 T2:r(x):6 T2:rel(l):7";
        assert_eq!(schedule_of(trace, 6, 2), None);
        assert_eq!(schedule_of(trace, 6, 0), Some(vec![5, 6]));
    }

    /// Held back before its lock, thread 2 would read y after it was written.
    #[test]
    fn a_thread_comes_to_its_read_as_in_the_trace() {
        let trace = "T2:acq(l):1 T2:r(y):2 T2:r(x):3 T2:rel(l):4 T1:w(y):5 T1:w(x):6";
        assert_eq!(schedule_of(trace, 3, 6), Some(vec![1, 2, 5, 6, 3]));
    }

    /// The thread's own write is inside of the lock, the other one is not.
    #[test]
    fn a_write_comes_into_a_critical_section() {
        let trace = "T1:w(x):1 T2:acq(l):2 T2:w(x):3 T2:r(x):4 T2:rel(l):5";
        assert_eq!(schedule_of(trace, 4, 1), Some(vec![2, 3, 1, 4]));
    }
}
