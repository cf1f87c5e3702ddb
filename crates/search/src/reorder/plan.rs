//! A schedule as the turns of a plan.
//!
//! Turns say how far each thread goes and not where it then stands: what an anomaly makes of a variable may send a
//! thread another way as soon as it has happened.

use threadbare_trace::{Event, EventIndex, EventKind, Order, Policy, ThreadIndex, Turns};

use super::history::History;
use super::schedule::Target;

/// Once an anomaly has come about, its threads go on in the order in which they came into it. It may do harm only if the
/// right one goes on first.
pub fn first_goes_on(history: &History, target: &Target) -> Policy {
    let thread = |&event: &EventIndex| history.trace().thread(history.thread(event)).clone();
    let first = target.sequence.iter().map(thread).collect();
    Policy::Ordered(Order { first, ..Order::default() })
}

/// The turns that force a schedule: each event that a thread can stand before is one.
///
/// Turns name threads by the order of their creation, which is that of the schedule and not that of the trace.
pub fn turns(history: &History, schedule: &[EventIndex]) -> Vec<Turns> {
    let mut created = vec![ThreadIndex::MAIN; history.threads()];
    let mut last_created = ThreadIndex::MAIN;
    let mut picks = Vec::new();
    for &event in schedule {
        if is_stop(history, event) {
            picks.push(created[history.thread(event).index()]);
        }
        if let Some(child) = history.forked(event) {
            last_created = last_created.next();
            created[child.index()] = last_created;
        }
    }
    Turns::of(picks)
}

/// A thread can stand before the event: it is neither bookkeeping nor the second half of a wait.
fn is_stop(history: &History, event: EventIndex) -> bool {
    let Event { thread, kind, location, object, .. } = *history.event(event);
    let before = history.events_of(thread)[..history.local(event).index()].last();
    let first_half = before.map(|&before| history.event(before));
    let is_second_half = first_half.is_some_and(|first| {
        first.location == location
            && match (first.kind, kind) {
                (EventKind::Wait, EventKind::Unlock) | (EventKind::Wake, EventKind::Lock) => true,
                // A copy. What reads and then writes one variable may pause in between.
                (EventKind::Read, EventKind::Write) => first.object != object,
                _ => false,
            }
    });
    !kind.is_silent() && !is_second_half
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;
    use threadbare_trace::Trace;

    use super::*;

    fn trace(text: &str) -> Trace {
        import::std(text.as_bytes()).expect("the trace is well formed")
    }

    fn all_turns(trace: &Trace) -> Vec<(u32, u32)> {
        let history = History::new(trace.clone()).expect("it can be analysed");
        let schedule: Vec<EventIndex> = EventIndex::first(trace.events.len()).collect();
        turns(&history, &schedule).iter().map(|turns| (turns.thread.number(), turns.count)).collect()
    }

    /// Protects schedules that let threads be created in another order than they were.
    #[test]
    fn threads_are_numbered_as_the_schedule_creates_them() {
        let forks = "T0|fork(T1)|1\nT0|fork(T2)|1\nT1|fork(T3)|2\nT2|fork(T4)|2\nT3|w(x)|3\nT4|w(x)|4\n";
        let trace = trace(forks);
        let history = History::new(trace.clone()).expect("it can be analysed");
        let turns: Vec<u32> = turns(&history, &[0, 1, 3, 2, 4, 5].map(EventIndex::new))
            .iter()
            .map(|turns| turns.thread.number())
            .collect();
        assert_eq!(all_turns(&trace), [(0, 2), (1, 1), (2, 1), (3, 1), (4, 1)]);
        assert_eq!(turns, [0, 2, 1, 4, 3]);
    }

    /// Protects the count of turns where one of them is two events.
    #[test]
    fn both_halves_of_a_wait_are_one_turn() {
        let mut trace = trace("T0|acq(l)|1\nT0|w(c)|2\nT0|rel(l)|2\nT0|w(c)|2\nT0|acq(l)|2\nT0|rel(l)|3\n");
        assert_eq!(all_turns(&trace), [(0, 6)]);
        trace.events[1].kind = EventKind::Wait;
        trace.events[3].kind = EventKind::Wake;
        assert_eq!(all_turns(&trace), [(0, 4)]);
    }

    #[test]
    fn a_copy_is_one_turn_and_a_change_is_two() {
        assert_eq!(all_turns(&trace("T0|r(x)|1\nT0|w(y)|1\n")), [(0, 1)]);
        assert_eq!(all_turns(&trace("T0|r(x)|1\nT0|w(x)|1\n")), [(0, 2)]);
    }
}
