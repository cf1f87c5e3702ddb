//! Which variables can be part of an anomaly at all. Not in the paper, and computed before its search: most variables
//! of most programs are always accessed under one lock, by units of work that hold it all the way, and such variables
//! need no search.
//!
//! A unit of work is *sealed* if each of its variables has a lock that is held at every access to it, in every thread,
//! and that the unit holds from its first access to its last: nobody can access these variables meanwhile. An anomaly
//! takes a unit that is not sealed. So a variable is *exposed* if it has no such lock, or if it is in a unit that is not
//! sealed. This is decided for whole regions rather than for each unit, and may expose more than it has to.

use threadbare_trace::{EventIndex, ObjectIndex, ThreadIndex};

use crate::pattern::Pattern;
use crate::units::{Accesses, FUNCTION_WINDOW};
use threadbare_search::reorder::history::History;
use threadbare_search::reorder::lockset::Lockset;
use threadbare_search::reorder::region::{Region, Tier};
use threadbare_search::reorder::variable::Variable;

/// By variable: it may be part of an anomaly of one of `patterns`.
pub fn exposed(history: &History, accesses: &Accesses, patterns: &[Pattern]) -> Vec<bool> {
    if !patterns.iter().all(interrupts) {
        return vec![true; history.variables().count()];
    }
    let guards = guards(history, accesses);
    let mut exposed: Vec<bool> = guards.iter().map(|locks| locks.is_empty()).collect();
    for thread in ThreadIndex::first(history.threads()) {
        let accesses = accesses.of_thread(thread);
        expose_regions(history, &guards, accesses, &mut exposed);
        expose_passes(history, accesses, &mut exposed);
    }
    exposed
}

/// The pattern cannot be made of sealed units: some unit is interrupted by an access to one of its own variables. All
/// sides have the same variables, and units of no more than two accesses, as the argument above assumes.
fn interrupts(pattern: &Pattern) -> bool {
    let simple =
        pattern.sides.iter().all(|side| side.variables.len() == pattern.variables && side.shape.len() <= 2);
    let is_interrupted = |side: usize| {
        let first = pattern.order.iter().position(|&of| of == side);
        let last = pattern.order.iter().rposition(|&of| of == side);
        first.zip(last).is_some_and(|(first, last)| last - first > 1)
    };
    simple && (pattern.is_adjacent() || (0..pattern.sides.len()).any(is_interrupted))
}

/// By variable: the locks that exclude all others and are held at every access.
fn guards(history: &History, accesses: &Accesses) -> Vec<Vec<ObjectIndex>> {
    let locksets = history.locksets();
    let mut guards: Vec<Vec<ObjectIndex>> = vec![Vec::new(); history.variables().count()];
    // What was held at the last access: nearly always the same as at the next.
    let mut last: Vec<Option<Lockset>> = vec![None; guards.len()];
    for thread in ThreadIndex::first(history.threads()) {
        for &event in accesses.of_thread(thread) {
            let (variable, held) = (history.variable(event).index(), history.lockset(event));
            let exclusive = || locksets.held(held).iter().filter(|held| !held.shared).map(|held| held.lock);
            match last[variable] {
                Some(last) if last == held => {}
                Some(_) => guards[variable].retain(|&lock| exclusive().any(|held| held == lock)),
                None => guards[variable].extend(exclusive()),
            }
            last[variable] = Some(held);
        }
    }
    guards
}

/// Exposes the variables of regions in which some variable's lock is not held all the way.
fn expose_regions(
    history: &History,
    guards: &[Vec<ObjectIndex>],
    accesses: &[EventIndex],
    exposed: &mut [bool],
) {
    let mut kept: Vec<ObjectIndex> = Vec::new();
    for accesses in accesses.chunk_by(|a, b| history.region(*a) == history.region(*b)) {
        if history.region(accesses[0]) == Region::NONE {
            continue;
        }
        kept_all_the_way(history, accesses, &mut kept);
        let is_sealed = |event: &EventIndex| {
            let guards = &guards[history.variable(*event).index()];
            guards.iter().any(|lock| kept.contains(lock))
        };
        if !accesses.iter().all(is_sealed) {
            accesses.iter().for_each(|&event| exposed[history.variable(event).index()] = true);
        }
    }
}

/// The locks that are held from the first of these accesses to the last, and not given back in between.
fn kept_all_the_way(history: &History, accesses: &[EventIndex], kept: &mut Vec<ObjectIndex>) {
    let (first, last) = (accesses[0], accesses[accesses.len() - 1]);
    let thread = history.thread(first);
    kept.clear();
    kept.extend(history.locksets().held(history.lockset(first)).iter().map(|held| held.lock));
    let events = history.events_of(thread);
    // A lock that is taken on the way was not held at the first access.
    for &local in history.lock_events(thread, history.local(first), history.local(last)) {
        let given_back = history.event(events[local.index()]).object;
        kept.retain(|&lock| lock != given_back);
    }
}

/// Exposes the variables of units that are one only by their function: they give locks back on their way, or have none.
fn expose_passes(history: &History, accesses: &[EventIndex], exposed: &mut [bool]) {
    let mut expose = |a: EventIndex, b: EventIndex| {
        let variables: [Variable; 2] = [history.variable(a), history.variable(b)];
        let known = variables.iter().all(|&variable| exposed[variable.index()]);
        if !known && history.unit(a, b) == Some(Tier::Function) {
            variables.iter().for_each(|&variable| exposed[variable.index()] = true);
        }
    };
    let mut last_to_same: Vec<Option<EventIndex>> = vec![None; history.variables().count()];
    for (place, &event) in accesses.iter().enumerate() {
        let window = place.saturating_sub(FUNCTION_WINDOW)..place;
        let same = last_to_same[history.variable(event).index()].replace(event);
        accesses[window].iter().copied().chain(same).for_each(|earlier| expose(earlier, event));
    }
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;
    use threadbare_trace::{EventKind, Trace};

    use super::*;
    use crate::pattern;

    const FORKS: &str = "T0|fork(T1)|1\nT0|fork(T2)|1\n";

    /// A trace in STD, after the forks of T1 and T2.
    fn trace(operations: &str) -> Trace {
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "|2\n");
        import::std((FORKS.to_owned() + &lines.collect::<String>()).as_bytes()).expect("it is well formed")
    }

    /// The names of the exposed variables, of those that are accessed.
    fn names(trace: &Trace, patterns: &[Pattern]) -> String {
        let history = History::new(trace.clone()).expect("it can be analysed");
        let exposed = exposed(&history, &Accesses::of(&history), patterns);
        let mut names: Vec<&str> = Vec::new();
        for event in trace.events.iter().filter(|event| event.kind.is_access()) {
            if exposed[history.variables().variable(event).index()] {
                names.push(&trace.object(event.object).display);
            }
        }
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    }

    fn exposed_in(operations: &str) -> String {
        names(&trace(operations), &pattern::built_in())
    }

    #[test]
    fn a_variable_that_one_lock_guards_all_the_way_is_not_exposed() {
        let one = "T1:acq(l) T1:r(x) T1:w(x) T1:rel(l) T2:acq(l) T2:w(x) T2:rel(l)";
        assert_eq!(exposed_in(one), "");
    }

    #[test]
    fn a_variable_without_a_common_lock_is_exposed() {
        assert_eq!(exposed_in("T1:acq(l) T1:w(x) T1:rel(l) T2:acq(m) T2:w(x) T2:rel(m)"), "x");
        assert_eq!(exposed_in("T1:acq(l) T1:w(x) T1:rel(l) T2:w(x)"), "x");
    }

    /// Two units that both read may run at the same time.
    #[test]
    fn a_lock_held_for_reading_is_no_guard() {
        let mut trace = trace("T1:acq(l) T1:w(x) T1:rel(l) T2:acq(l) T2:w(x) T2:rel(l)");
        for event in &mut trace.events {
            event.kind = match event.kind {
                EventKind::Lock => EventKind::ReadLock,
                EventKind::Unlock => EventKind::ReadUnlock,
                kind => kind,
            };
        }
        assert_eq!(names(&trace, &pattern::built_in()), "x");
    }

    /// The unit is that of the outer lock; nobody else holds it.
    #[test]
    fn a_lock_that_is_given_back_in_the_unit_seals_nothing() {
        let inner = "T1:acq(u) T1:acq(l) T1:r(x) T1:rel(l) T1:acq(l) T1:w(x) T1:rel(l) T1:rel(u)";
        assert_eq!(exposed_in(&format!("{inner} T2:acq(l) T2:w(x) T2:rel(l)")), "x");
    }

    /// An atomic set is as exposed as its weakest member.
    #[test]
    fn a_variable_is_exposed_by_another_of_its_unit() {
        let sealed = "T1:acq(l) T1:w(x) T1:w(y) T1:rel(l) T2:acq(l) T2:w(x) T2:rel(l)";
        assert_eq!(exposed_in(&format!("{sealed} T2:acq(l) T2:w(y) T2:rel(l)")), "");
        assert_eq!(exposed_in(&format!("{sealed} T2:w(y)")), "x y");
    }

    /// What a user looks for may be made of units that nobody interrupts.
    #[test]
    fn a_pattern_without_interruption_exposes_everything() {
        let text = "[[pattern]]\nname = \"p\"\nkind = \"atomicity-violation\"\n\
                    T = \"a-b\"\nSV = \"s-s\"\nAR = \"u-v\"\nAT = \"w-w\"\n";
        let patterns = pattern::parse(text).expect("it is a pattern");
        let sealed = trace("T1:acq(l) T1:w(x) T1:rel(l) T2:acq(l) T2:w(x) T2:rel(l)");
        assert_eq!(names(&sealed, &patterns), "x");
    }
}
