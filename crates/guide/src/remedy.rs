//! What may be done so that a run gets past an obstacle: the same sequence with more demands.
//!
//! A branch goes the other way if it depends on a read that sees another value. There are three ways to that:
//! - A store of another thread comes before the read. The store and the read both become waypoints, and the reader stays
//!   before the read until it is their turn. So what the read sees is settled for all later attempts. Otherwise each of them
//!   would have to come upon it again, and a line behind many branches would hardly ever be reached.
//! - The read comes before the store that it saw.
//! - The read comes after the waypoints that the run passed later.
//!
//! Apart from branches, a thread may have gone past the waypoint before it was its turn. Then it stays before it.
//!
//! Apart from that, the next attempt may begin as the run did: its schedule is part of the remedy.
//!
//! A thread stays before an operation only as long as others can go. If it does the operation under locks, it stays before
//! it takes the first of them.

use std::collections::HashSet;
use std::ops::Range;

use threadbare_program::Program;
use threadbare_program::flow::Comparison;
use threadbare_search::reorder::lockset::{CriticalSection, Locksets};
use threadbare_trace::{
    Demand, Event, EventIndex, KeptBack, LocationIndex, ObjectName, ThreadIndex, Trace, Turns, Waypoint,
    WhichThread,
};

use crate::obstacle::Journey;

/// More demands on a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// More places to be passed, in their order.
    pub through: Vec<Waypoint>,
    /// They come after so many waypoints.
    pub passed: usize,
    pub put_off: Option<PutOff>,
    /// So many of the places were not come to in the run.
    pub unseen: usize,
    /// Accesses that are to be seen, whatever memory they are to: the addresses that they return to.
    pub watched: Vec<u64>,
    /// The schedule of the run up to where it is to go on otherwise.
    pub beginning: Vec<Turns>,
}

/// An operation that is to come later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOff {
    /// Its thread stays before it, or before the locks that it holds there.
    pub kept_back: KeptBack,
    /// The thread stays while one of these waypoints is the next. They are counted with those that are added.
    pub until: Range<usize>,
    /// The event with which the thread went on in the run.
    pub event: EventIndex,
}

/// How many remedies are named.
pub const MAX_REMEDIES: usize = 16;
/// How many stores may lead to a value.
const MAX_STEPS: usize = 12;
/// How many values of a variable are considered.
const MAX_STORES: usize = 5;

/// What a branch went by.
pub struct Decision<'d> {
    pub program: &'d Program,
    pub reads: &'d [EventIndex],
    /// Where such reads are made: the addresses that they return to.
    pub places: &'d [u64],
    /// How the branch compares what was read.
    pub comparison: Option<Comparison>,
}

/// What a read could see instead.
struct Store {
    /// The stores by other threads that lead there.
    by: By,
    /// The branch goes the other way then, if that is known.
    decides: Option<bool>,
}

enum By {
    /// These of the run.
    Done(Vec<EventIndex>),
    /// One at this place, which the run did not come to.
    Other(u64),
}

/// For threads that went past the next waypoint before it was their turn.
pub fn for_early(journey: &Journey<'_>) -> Vec<Remedy> {
    let (trace, passed) = (journey.trace, journey.passes.len());
    let Some(waypoint) = journey.next().filter(|next| next.demand == Demand::Pass) else { return Vec::new() };
    let locksets = Locksets::of(trace).unwrap_or_default();
    let is_at = |event: &Event| {
        let is_point = |location| waypoint.points.binary_search(&trace.location(location).address).is_ok();
        is_point(event.location) || trace.calls(event.location, event.stack).any(is_point)
    };
    let mut threads = HashSet::new();
    let mut remedies = Vec::new();
    for (index, event) in trace.indexed_events().collect::<Vec<_>>().into_iter().rev() {
        if journey.passed_before(index) < passed
            && journey.is_meant(event.thread)
            && !threads.contains(&event.thread)
            && is_at(event)
        {
            threads.insert(event.thread);
            remedies.extend(journey.put_off(&locksets, index, passed).map(Remedy::later));
        }
    }
    remedies.truncate(MAX_STORES);
    remedies
}

/// So that one of the reads that a branch went by sees something else.
pub fn for_reads(journey: &Journey<'_>, decision: &Decision<'_>) -> Vec<Remedy> {
    let locksets = Locksets::of(journey.trace).unwrap_or_default();
    let read = |&index: &EventIndex| journey.for_read(decision, &locksets, index);
    let mut remedies: Vec<(u8, Remedy)> = decision.reads.iter().flat_map(read).collect();
    remedies.sort_by_key(|(rank, _)| *rank);
    remedies.into_iter().map(|(_, remedy)| remedy).collect()
}

impl Remedy {
    /// Nothing more than that accesses are seen.
    pub fn watching(places: &[u64]) -> Remedy {
        Remedy { watched: places.to_vec(), ..Remedy::default() }
    }

    /// Nothing more than that an operation is put off.
    fn later(put_off: PutOff) -> Remedy {
        Remedy { put_off: Some(put_off), ..Remedy::default() }
    }
}

impl Journey<'_> {
    /// The remedies that have to do with one read, each with a rank: the least is the most promising.
    fn for_read(&self, decision: &Decision<'_>, locksets: &Locksets, index: EventIndex) -> Vec<(u8, Remedy)> {
        let trace = self.trace;
        let read = &trace.events[index.index()];
        let before = self.passed_before(index);
        let all = self.passes.len();
        let own_pass = self.as_pass(index);
        let by_reader = self.waypoint(index);
        // A thread that has passed a waypoint after the read cannot read after that waypoint.
        let is_fixed = own_pass.is_some() || self.passes[before..].iter().any(|pass| pass.0 == read.thread);
        let turns = if is_fixed {
            vec![before]
        } else if before == all {
            vec![all]
        } else {
            vec![all, before]
        };
        let mut remedies = Vec::new();
        for Store { by, decides } in stores(decision, trace, index) {
            let rank = match (decides, &by) {
                (Some(true), By::Done(_)) => 0,
                (Some(true), By::Other(_)) => 1,
                (None, By::Done(_)) => 2,
                (None, By::Other(_)) => 3,
                (Some(false), _) => 4,
            };
            for &turn in &turns {
                let (mut through, passed, unseen) = match &by {
                    By::Other(place) => {
                        (vec![Waypoint::new(vec![*place], WhichThread::Any, Demand::Pass)], turn, 1)
                    }
                    By::Done(stores) => {
                        let last = stores.iter().filter_map(|store| self.as_pass(*store)).max();
                        if last.is_some_and(|pass| pass < before) {
                            continue;
                        }
                        let others = stores.iter().filter(|store| self.as_pass(**store).is_none());
                        let is_later =
                            |store: &&EventIndex| last.is_none_or(|pass| self.passes[pass].1 < **store);
                        let others = others.filter(is_later).map(|store| self.waypoint(*store));
                        (others.collect(), last.map_or(turn, |pass| pass + 1), 0)
                    }
                };
                let until = passed + through.len();
                if own_pass.is_none() {
                    through.push(by_reader.clone());
                }
                let put_off = self.put_off(locksets, index, until);
                let watched = match by {
                    By::Other(place) => vec![place],
                    By::Done(_) => Vec::new(),
                };
                remedies
                    .push((rank, Remedy { through, passed, put_off, unseen, watched, ..Remedy::default() }));
            }
        }
        let seen = last_store(trace, index);
        match (seen, seen.and_then(|store| self.as_pass(store))) {
            (Some(_), Some(pass)) if own_pass.is_none() => {
                remedies.push((2, Remedy { through: vec![by_reader], passed: pass, ..Remedy::default() }));
            }
            (Some(store), None) => {
                let turn = turns[0];
                let through = if own_pass.is_none() { vec![by_reader] } else { Vec::new() };
                let put_off = self.put_off(locksets, store, turn + 1);
                remedies.push((2, Remedy { through, passed: turn, put_off, ..Remedy::default() }));
            }
            _ => {}
        }
        if !is_fixed && before < all {
            remedies.extend(self.put_off(locksets, index, all).map(|put_off| (2, Remedy::later(put_off))));
        }
        remedies
    }

    /// The schedule of the run up to the last waypoint before those that are added, without what is put off. None where more
    /// accesses are seen than in the run: there are more decisions then.
    pub fn beginning(&self, remedy: &Remedy) -> Vec<Turns> {
        if !remedy.watched.is_empty() {
            return Vec::new();
        }
        // The last pick before an event is the one that led to it.
        let picks_before = |event: usize| {
            self.picks.iter().take_while(|(_, next)| next.index() <= event).count().saturating_sub(1)
        };
        let last_pass = remedy.passed.checked_sub(1).map_or(0, |last| self.passes[last].1.index() + 1);
        let put_off = remedy.put_off.as_ref().map(|put_off| put_off.event);
        let end = picks_before(last_pass.max(put_off.map_or(0, EventIndex::index)));
        let from = put_off.map_or(end, |event| picks_before(event.index()));
        let thread = put_off.map(|event| self.trace.events[event.index()].thread);
        let later = self.picks[from..end].iter().filter(|(picked, _)| Some(*picked) != thread);
        Turns::of(self.picks[..from].iter().chain(later).map(|(picked, _)| *picked))
    }

    /// The number of the waypoint that this event passed, or that the call passed which it is made inside of.
    fn as_pass(&self, index: EventIndex) -> Option<usize> {
        let (trace, thread) = (self.trace, self.trace.events[index.index()].thread);
        let point = place(trace, index);
        let is_inside = |event: &Event| {
            let mut calls = trace.calls(event.location, event.stack);
            event.thread != thread || calls.any(|call| trace.location(call).address == point)
        };
        let is_pass = |(waypoint, &(who, pass)): (&Waypoint, &(ThreadIndex, EventIndex))| {
            pass == index
                || who == thread
                    && pass < index
                    && waypoint.points.contains(&point)
                    && trace.events[pass.index()..index.index()].iter().all(is_inside)
        };
        self.waypoints.iter().zip(self.passes).position(is_pass)
    }

    /// That its thread does what this event is.
    fn waypoint(&self, event: EventIndex) -> Waypoint {
        let thread = self.trace.thread(self.trace.events[event.index()].thread);
        Waypoint::new(vec![place(self.trace, event)], WhichThread::Id(thread.clone()), Demand::Pass)
    }

    /// Puts an operation off until so many waypoints are passed. It is not to come earlier than in this run either, so its
    /// thread stays from the last waypoint that it passed on. `None` if that is too late.
    fn put_off(&self, locksets: &Locksets, index: EventIndex, until: usize) -> Option<PutOff> {
        let event = &self.trace.events[index.index()];
        let is_around = |section: &&CriticalSection| {
            section.thread == event.thread
                && section.acquire < index
                && section.release.is_none_or(|release| release > index)
        };
        let outermost = locksets.sections().iter().find(is_around).map_or(index, |section| section.acquire);
        let before = place(self.trace, outermost);
        let kept_back = KeptBack { thread: self.trace.thread(event.thread).clone(), before };
        let own = |pass: &(ThreadIndex, EventIndex)| pass.0 == event.thread && pass.1 < outermost;
        let first = self.passes.iter().rposition(own).map_or(0, |last| last + 1);
        (first < until).then_some(PutOff { kept_back, until: first..until, event: outermost })
    }
}

/// What a read could see instead: what other threads stored after it, what they had stored before, and what they would store
/// elsewhere. Of what was done, that comes first which is known to decide the branch.
fn stores(decision: &Decision<'_>, trace: &Trace, index: EventIndex) -> Vec<Store> {
    let read = &trace.events[index.index()];
    let decides = |value: Option<u64>| decision.comparison?.tells_apart(read.value, value?);
    let is_store = |(_, event): &(EventIndex, &Event)| {
        event.kind.is_write() && event.object == read.object && event.thread != read.thread
    };
    let (before, after): (Vec<_>, Vec<_>) =
        trace.indexed_events().filter(is_store).partition(|(store, _)| *store < index);
    let mut found: Vec<Store> = Vec::new();
    let mut known: HashSet<(u64, ThreadIndex, Option<bool>)> = HashSet::new();
    let done = before.iter().chain(&after).map(|(_, event)| trace.location(event.location).address);
    let places: HashSet<u64> = decision.places.iter().copied().chain(done).collect();
    let mut add = |done: &[(EventIndex, &Event)]| {
        let Some(&(store, event)) = done.last() else { return };
        let decides = decides(value_after(trace, store));
        // The way to what is known to decide may be longer than a store.
        let steps = if decides == Some(true) { done } else { &done[done.len() - 1..] };
        let is_new = known.insert((place(trace, store), event.thread, decides));
        if is_new && steps.len() <= MAX_STEPS {
            found.push(Store { by: By::Done(steps.iter().map(|(store, _)| *store).collect()), decides });
        }
    };
    (1..=after.len()).for_each(|count| add(&after[..count]));
    let seen = last_store(trace, index);
    let others = before.iter().rev().filter(|(store, _)| Some(*store) != seen);
    others.for_each(|store| add(std::slice::from_ref(store)));
    let named = stores_to(decision.program, &trace.object(read.object).name);
    let other = |(place, value)| Store { by: By::Other(place), decides: decides(value) };
    found.extend(named.into_iter().filter(|(place, _)| !places.contains(place)).map(other));
    found.sort_by_key(|store| store.decides != Some(true));
    found.truncate(MAX_STORES);
    found
}

/// Where an event happens: the address that it returns to. If it is in a function of a library, which many call, that of the
/// call that led there.
fn place(trace: &Trace, event: EventIndex) -> u64 {
    let event = &trace.events[event.index()];
    let is_own = |location: &LocationIndex| {
        trace.location(*location).frames.last().is_some_and(|frame| !frame.is_in_library())
    };
    let own = trace.calls(event.location, event.stack).find(is_own);
    trace.location(own.unwrap_or(event.location)).address
}

/// What memory holds after a store, if the trace tells.
fn value_after(trace: &Trace, store: EventIndex) -> Option<u64> {
    let event = &trace.events[store.index()];
    if !event.kind.is_read() {
        return Some(event.value);
    }
    // What an operation that also reads has stored is what is read next.
    let mut later = trace.events[store.index() + 1..].iter();
    let next = later.find(|next| next.object == event.object && next.kind.is_access())?;
    next.kind.is_read().then_some(next.value)
}

/// The store, by another thread, that a read has seen.
fn last_store(trace: &Trace, index: EventIndex) -> Option<EventIndex> {
    let read = &trace.events[index.index()];
    let is_store = |event: &Event| event.kind.is_write() && event.object == read.object;
    let store = trace.events[..index.index()].iter().rposition(is_store)?;
    (trace.events[store].thread != read.thread).then_some(EventIndex::at(store))
}

/// The places that store to a variable with static storage, by the code, with what they store if that is a constant.
fn stores_to(program: &Program, variable: &ObjectName) -> Vec<(u64, Option<u64>)> {
    let stores = || {
        let ObjectName::Global { symbol, offset } = variable else { return None };
        let address = program.symbol_address(symbol)?.wrapping_add(*offset);
        let code = program.code_at(address)?;
        let stores = code.stores_to(code.linked(address)).iter();
        Some(stores.map(|&store| (code.relocated(store), code.stored_constant(store))).collect())
    };
    stores().unwrap_or_default()
}
