//! Reordering generation (section 6, Algorithms 3 and 4, and their general form for any pattern).
//!
//! The trace is rearranged so that the events of an anomaly come in the order of its pattern:
//!
//! 1. Everything before the last of these events happens as in the trace, except for the threads of the anomaly,
//!    which are held back before the *outermost lock* that protects their first event of it, and except for what
//!    depends on them. Held back inside, they would keep that lock from the others; this is why the paper moves the
//!    lock together with the event.
//! 2. Then each event of the anomaly is brought about in turn: its thread runs up to it, and where it would have to
//!    wait for something, whoever can provide that runs first.
//!
//! What comes after the last event of the anomaly is left out. There is not always such a schedule: then the
//! prediction was false.
//!
//! Others may depend on the threads that are held back also by what they read: they would read something else and go
//! another way, and the schedule could not be followed. So there are other ways to make one, which stay closer to the
//! trace; see [`Generator::schedules`].

use std::sync::Arc;

use threadbare_trace::{EventIndex, EventKind, ObjectIndex, ThreadIndex};

use super::communication::Edge;
use super::dependence::Prefix;
use super::history::{History, LocalIndex};
use super::lockset::{Held, SectionIndex};
use super::reads::{Memory, Reads};
use rustc_hash::FxHashMap as FastMap;

/// Events of a trace in a new order.
pub type Reordering = Vec<EventIndex>;

/// What a schedule is to bring about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Events of different threads that all are next at the same time.
    pub stand: Vec<EventIndex>,
    /// After that, events that happen in this order; directly one after the other if they are those of `stand`.
    pub sequence: Vec<EventIndex>,
}

impl Target {
    /// Two conflicting accesses that nothing keeps apart, then both in this order.
    pub fn race(events: &[EventIndex]) -> Target {
        Target { stand: events.to_vec(), sequence: events.to_vec() }
    }

    /// Events in this order, with anything in between.
    pub fn sequence(events: &[EventIndex]) -> Target {
        Target { stand: Vec::new(), sequence: events.to_vec() }
    }

    /// Acquisitions that all wait for each other.
    pub fn deadlock(events: &[EventIndex]) -> Target {
        Target { stand: events.to_vec(), sequence: Vec::new() }
    }

    fn events(&self) -> impl Iterator<Item = EventIndex> {
        self.stand.iter().chain(&self.sequence).copied()
    }
}

/// Generates schedules for the anomalies of one trace.
#[derive(Debug)]
pub struct Generator {
    history: Arc<History>,
    /// By event, for acquisitions and releases that count: the critical section.
    sections: Vec<SectionIndex>,
    reads: Arc<Reads>,
}

/// No critical section.
const NONE: SectionIndex = SectionIndex::new(u32::MAX);

/// A thread's first event.
const FIRST: LocalIndex = LocalIndex::new(0);
/// A thread may go on to its end.
const NO_LIMIT: LocalIndex = LocalIndex::new(u32::MAX);

/// Orders in which threads are brought to stand before their events are tried for up to this many threads.
const MAX_PERMUTED: usize = 4;

impl Generator {
    pub fn new(history: Arc<History>, reads: Arc<Reads>) -> Generator {
        let mut sections = vec![NONE; history.trace().events.len()];
        for (index, section) in history.locksets().sections().iter().enumerate() {
            for event in std::iter::once(section.acquire).chain(section.release) {
                sections[event.index()] = SectionIndex::at(index);
            }
        }
        Generator { history, sections, reads }
    }

    /// The events of the thread read what they read in the trace, so that it goes the same way. The last event of the
    /// schedule does not count.
    pub fn keeps_way(&self, schedule: &[EventIndex], thread: ThreadIndex) -> bool {
        let mut memory = Memory::new(&self.history);
        let before_last = schedule.split_last().map_or(&[][..], |(_, before)| before);
        before_last.iter().all(|&event| {
            let is_kept = self.history.thread(event) != thread || self.reads.is_same(&memory, event);
            memory.step(event);
            is_kept
        })
    }

    /// The critical section that the event begins or ends.
    fn section(&self, event: EventIndex) -> Option<SectionIndex> {
        Some(self.sections[event.index()]).filter(|&section| section != NONE)
    }

    /// Schedules for the target, each made with other options. The first stay closest to the trace. Then comes the paper's
    /// algorithm. The last are for targets where its schedule gets stuck at a lock that its holder cannot give back.
    pub fn schedules<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = Reordering> + 'a {
        // Where nobody is to stand there is nothing to clear, and only then a step at a time makes sense.
        let stands = target.stand.len() > 1;
        let all_options = GenerationOptions::ALL
            .into_iter()
            .filter(move |options| if stands { !options.by_steps } else { !options.clears });
        all_options.filter_map(move |options| {
            self.attempts(target).find_map(|order| self.make(options, target, &order))
        })
    }

    fn make(&self, options: GenerationOptions, target: &Target, order: &[EventIndex]) -> Option<Reordering> {
        let mut builder = ScheduleBuilder::new(self, target);
        builder.heeds_reads = options.heeds_reads;
        if options.keeps_others && !options.by_steps {
            builder.keep_others(target);
        }
        if options.clears && !builder.clear(order) {
            return None;
        }
        builder.bring_about(target, order, options.by_steps)
    }

    /// A schedule that begins with the events of `prefix`, as they were.
    pub fn generate_after(&self, prefix: &Prefix, target: &Target) -> Option<Reordering> {
        self.attempts(target).find_map(|order| {
            let mut builder = ScheduleBuilder::new(self, target);
            builder.keep(prefix);
            builder.bring_about(target, &order, false)
        })
    }

    /// Orders in which to bring the threads to stand before their events.
    fn attempts(&self, target: &Target) -> impl Iterator<Item = Vec<EventIndex>> {
        let stand = &target.stand;
        let all = if stand.len() <= MAX_PERMUTED { permutations(stand) } else { vec![stand.clone()] };
        all.into_iter()
    }

    /// The lock that the event takes, if it does.
    fn taken(&self, event: EventIndex) -> Option<Held> {
        let section = self.history.locksets().section(self.section(event)?);
        (section.acquire == event).then_some(section.held)
    }

    /// What its thread has to take to go on from `event`: a wake-up takes the mutex in the same step.
    fn wanted(&self, event: EventIndex) -> Option<Held> {
        match self.history.event(event).kind {
            EventKind::Wake => {
                let events = self.history.events_of(self.history.thread(event));
                self.taken(*events.get(self.history.local(event).next().index())?)
            }
            _ => self.taken(event),
        }
    }

    /// Where the outermost acquisition that protects `event` is among its thread's events; the event itself if none
    /// does.
    fn outermost(&self, event: EventIndex) -> LocalIndex {
        let history = &self.history;
        let (thread, local) = (history.thread(event), history.local(event));
        let events = history.events_of(thread);
        let mut held: Vec<Held> = history.locksets().held(history.lockset(event)).to_vec();
        let mut outermost = local;
        // Back from the event, until every held lock was met: the one met last was taken first.
        let mut earlier = history.lock_events(thread, FIRST, local).iter().rev().copied().chain([FIRST]);
        while !held.is_empty()
            && let Some(local) = earlier.next()
        {
            let taken = self.taken(events[local.index()]);
            if let Some(at) = held.iter().position(|lock| Some(*lock) == taken) {
                held.swap_remove(at);
                outermost = local;
            }
        }
        outermost
    }
}

/// How a schedule is made.
#[derive(Clone, Copy)]
struct GenerationOptions {
    /// Other threads do what they did in the trace. The paper does this. One of them may then hold a lock that is needed.
    keeps_others: bool,
    /// A thread stops where it would read something else than in the trace, since it could go another way from there.
    heeds_reads: bool,
    /// A thread of the anomaly is held back before its next event of the anomaly, instead of before its first.
    by_steps: bool,
    /// A thread that is to stand first finishes what it does with locks that the others will hold.
    clears: bool,
}

impl GenerationOptions {
    const PAPER: GenerationOptions =
        GenerationOptions { keeps_others: true, heeds_reads: false, by_steps: false, clears: false };

    const ALL: [GenerationOptions; 7] = [
        GenerationOptions { heeds_reads: true, by_steps: true, ..GenerationOptions::PAPER },
        GenerationOptions { heeds_reads: true, ..GenerationOptions::PAPER },
        GenerationOptions { heeds_reads: true, clears: true, ..GenerationOptions::PAPER },
        GenerationOptions::PAPER,
        GenerationOptions { clears: true, ..GenerationOptions::PAPER },
        GenerationOptions { keeps_others: false, ..GenerationOptions::PAPER },
        GenerationOptions { keeps_others: false, clears: true, ..GenerationOptions::PAPER },
    ];
}

/// Every order of a few items.
pub fn permutations<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    if items.len() < 2 {
        return vec![items.to_vec()];
    }
    let mut all = Vec::new();
    for at in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(at);
        all.extend(permutations(&rest).into_iter().map(|rest| [vec![first], rest].concat()));
    }
    all
}

/// A schedule under construction.
struct ScheduleBuilder<'g> {
    generator: &'g Generator,
    schedule: Reordering,
    /// By thread: its first event that is not in it.
    done: Vec<LocalIndex>,
    /// By thread: the event that it may not go beyond for now.
    limits: Vec<LocalIndex>,
    /// Who holds each lock, with its critical section.
    holders: FastMap<ObjectIndex, Vec<SectionIndex>>,
    /// Threads that are being brought somewhere.
    underway: Vec<ThreadIndex>,
    memory: Memory<'g>,
    /// Other threads stop where they would read something else than in the trace.
    heeds_reads: bool,
    /// By thread: it has read something else than in the trace. It goes no further than it must.
    diverged: Vec<bool>,
}

impl<'g> ScheduleBuilder<'g> {
    fn new(generator: &'g Generator, target: &Target) -> ScheduleBuilder<'g> {
        let threads = generator.history.threads();
        let mut builder = ScheduleBuilder {
            generator,
            schedule: Vec::new(),
            done: vec![FIRST; threads],
            limits: vec![NO_LIMIT; threads],
            holders: FastMap::default(),
            underway: Vec::new(),
            memory: Memory::new(&generator.history),
            heeds_reads: false,
            diverged: vec![false; threads],
        };
        for event in target.events() {
            builder.limit(event);
        }
        builder
    }

    fn history(&self) -> &'g History {
        &self.generator.history
    }

    /// The event's thread may come to stand before it, and no further.
    fn limit(&mut self, event: EventIndex) {
        let (thread, local) = (self.history().thread(event), self.history().local(event));
        let limit = &mut self.limits[thread.index()];
        *limit = (*limit).min(local);
    }

    /// Step 1: what happened before the last event of the target, without the threads of the target beyond their
    /// outermost locks.
    fn keep_others(&mut self, target: &Target) {
        let stops = self.stops_before(target.events());
        let horizon = target.events().max().unwrap_or_default();
        self.follow_trace(horizon, &stops);
    }

    /// Step 1 for the next event of a sequence: what happened before it, without the threads of later ones beyond the
    /// outermost locks of these.
    fn keep_until_next(&mut self, sequence: &[EventIndex]) {
        let (next, later) = (sequence[0], &sequence[1..]);
        let mut stops = self.stops_before(later.iter().copied());
        stops[self.history().thread(next).index()] = self.history().local(next);
        self.follow_trace(next, &stops);
    }

    /// How far each thread may go without taking the outermost locks of these events.
    fn stops_before(&self, events: impl Iterator<Item = EventIndex>) -> Vec<LocalIndex> {
        let mut stops = self.limits.clone();
        for event in events {
            let stop = &mut stops[self.history().thread(event).index()];
            *stop = (*stop).min(self.generator.outermost(event));
        }
        stops
    }

    /// All that happened before `horizon` and can happen now, up to where each thread has to stop.
    fn follow_trace(&mut self, horizon: EventIndex, stops: &[LocalIndex]) {
        let history = self.history();
        let mut edges = history.edges();
        for event in EventIndex::first(horizon.index()) {
            let (thread, local) = (history.thread(event).index(), history.local(event));
            let incoming = edges.iter().take_while(|edge| edge.to == event).count();
            let may = local == self.done[thread] && local < stops[thread];
            if may && self.is_enabled(event, &edges[..incoming]) {
                self.add(event);
            }
            edges = &edges[incoming..];
        }
    }

    /// Step 1 for a prefix that is known to be possible.
    fn keep(&mut self, prefix: &Prefix) {
        let history = self.history();
        let mut left: u64 = prefix.iter().map(|end| u64::from(end.number())).sum();
        let mut event = EventIndex::default();
        while left > 0 {
            if history.local(event) < prefix[history.thread(event).index()] {
                self.add(event);
                left -= 1;
            }
            event = event.next();
        }
    }

    /// Brings each of the threads that are to stand past its last release of a lock that another of them will hold.
    fn clear(&mut self, stand: &[EventIndex]) -> bool {
        let history = self.history();
        let locksets = history.locksets();
        stand.iter().all(|&event| {
            let (thread, local) = (history.thread(event), history.local(event));
            let others = stand.iter().filter(|&&other| other != event);
            let held: Vec<Held> =
                others.flat_map(|&other| locksets.held(history.lockset(other))).copied().collect();
            let events = history.events_of(thread);
            let is_wanted = |&&local: &&LocalIndex| {
                let lock = history.event(events[local.index()]).object;
                held.iter().any(|held| held.lock == lock)
            };
            let last = history.lock_events(thread, FIRST, local).iter().rev().find(is_wanted);
            last.is_none_or(|&last| self.bring(thread, last.next()))
        })
    }

    /// Step 2.
    fn bring_about(mut self, target: &Target, order: &[EventIndex], by_steps: bool) -> Option<Reordering> {
        let history = self.history();
        for &event in order {
            if !self.bring(history.thread(event), history.local(event)) {
                return None;
            }
        }
        for (at, &event) in target.sequence.iter().enumerate() {
            let thread = history.thread(event);
            if by_steps {
                self.keep_until_next(&target.sequence[at..]);
            }
            let next = target.sequence[at + 1..].iter().find(|&&later| history.thread(later) == thread);
            self.limits[thread.index()] = next.map_or(NO_LIMIT, |&next| history.local(next));
            if !self.bring(thread, history.local(event).next()) {
                return None;
            }
        }
        let adjacent = target.stand.is_empty() || self.schedule.ends_with(&target.sequence);
        adjacent.then_some(self.schedule)
    }

    /// Runs `thread` until its events before `end` are done. `false` when that cannot be.
    fn bring(&mut self, thread: ThreadIndex, end: LocalIndex) -> bool {
        if self.done[thread.index()] >= end {
            return true;
        }
        if end > self.limits[thread.index()] || self.underway.contains(&thread) {
            return false;
        }
        self.underway.push(thread);
        let mut possible = true;
        while possible && self.done[thread.index()] < end {
            let event = self.history().events_of(thread)[self.done[thread.index()].index()];
            possible = self.bring_what_is_needed(event);
            if possible {
                self.add(event);
            }
        }
        self.underway.pop();
        possible
    }

    /// Runs others until `event` can happen.
    fn bring_what_is_needed(&mut self, event: EventIndex) -> bool {
        let history = self.history();
        history
            .incoming(event)
            .all(|edge| self.bring(history.thread(edge.from), history.local(edge.from).next()))
            && self.free_what_is_wanted(event)
    }

    fn free_what_is_wanted(&mut self, event: EventIndex) -> bool {
        let history = self.history();
        while let Some(section) = self.in_the_way(event) {
            let section = history.locksets().section(section);
            let freed = section
                .release
                .is_some_and(|release| self.bring(section.thread, history.local(release).next()));
            if !freed {
                return false;
            }
        }
        true
    }

    /// A critical section of another thread that keeps `event` from happening.
    fn in_the_way(&self, event: EventIndex) -> Option<SectionIndex> {
        let wanted = self.generator.wanted(event)?;
        let locksets = self.history().locksets();
        let holders = self.holders.get(&wanted.lock)?;
        holders.iter().copied().find(|&section| !(locksets.section(section).held.shared && wanted.shared))
    }

    fn is_enabled(&self, event: EventIndex, incoming: &[Edge]) -> bool {
        let history = self.history();
        let is_done = |event: EventIndex| history.local(event) < self.done[history.thread(event).index()];
        incoming.iter().all(|edge| edge.observed && !self.heeds_reads || is_done(edge.from))
            && self.in_the_way(event).is_none()
            && (!self.heeds_reads || !self.diverges_at(event))
    }

    /// The event's thread has read something else than in the trace, or would then have.
    fn diverges_at(&self, event: EventIndex) -> bool {
        self.diverged[self.history().thread(event).index()]
            || !self.generator.reads.is_same(&self.memory, event)
    }

    fn add(&mut self, event: EventIndex) {
        let history = self.history();
        if self.heeds_reads {
            self.diverged[history.thread(event).index()] = self.diverges_at(event);
        }
        let done = &mut self.done[history.thread(event).index()];
        *done = done.next();
        self.memory.step(event);
        self.schedule.push(event);
        if let Some(index) = self.generator.section(event) {
            let section = history.locksets().section(index);
            let holders = self.holders.entry(section.held.lock).or_default();
            if section.acquire == event {
                holders.push(index);
            } else {
                holders.retain(|&holder| holder != index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use threadbare_formats::import;

    use super::*;

    /// The labels (locations) of the schedule that brings the events labelled `pair` to race.
    fn race(operations: &str, pair: [u32; 2]) -> Option<Vec<u32>> {
        let forks = "T0|fork(T1)|100\nT0|fork(T2)|101\nT0|fork(T3)|102\n";
        let lines = operations.split_whitespace().map(|operation| operation.replace(':', "|") + "\n");
        let text = forks.to_owned() + &lines.collect::<String>();
        let trace = import::std(text.as_bytes()).expect("the trace is well formed");
        let history = Arc::new(History::new(trace).expect("it can be analysed"));
        let label =
            |event: EventIndex| history.trace().location(history.event(event).location).frames[0].line;
        let events = pair.map(|wanted| {
            let mut all = EventIndex::first(history.trace().events.len());
            all.find(|&event| label(event) == wanted).expect("there is such an event")
        });
        let generator = Generator::new(Arc::clone(&history), Arc::new(Reads::of(&history)));
        let schedule = generator.schedules(&Target::race(&events)).next()?;
        Some(schedule.into_iter().map(label).collect())
    }

    /// T3 was in a critical section just before 9; kept there, it would wait for T1 and T1 for it.
    #[test]
    fn a_thread_that_has_no_part_in_it_does_not_stand_in_the_way() {
        let trace = "T1:acq(a):1 T1:acq(b):2 T1:w(x):3 T1:rel(b):4 T1:rel(a):5 T2:acq(b):6 T2:rel(b):7 \
                     T3:acq(b):8 T2:r(x):9 T3:acq(a):10 T3:rel(a):11 T3:rel(b):12";
        assert_eq!(race(trace, [9, 3]), Some(vec![100, 101, 6, 7, 1, 2, 9, 3]));
    }

    /// T3 saw what T1 wrote after its access. With T1 held back before that, it would see something else.
    #[test]
    fn nobody_reads_what_is_not_written_yet() {
        let trace = "T1:w(x):1 T1:w(flag):2 T3:r(y):3 T3:r(flag):4 T3:w(y):5 T2:w(x):6";
        assert_eq!(race(trace, [6, 1]), Some(vec![100, 101, 102, 3, 6, 1]));
    }

    /// Neither thread can come to stand first: T2 stands with m, which T3 takes on its way, and the other way round.
    #[test]
    fn threads_take_turns_on_the_way_to_where_they_stand() {
        let trace = "T2:acq(m):1 T2:acq(l):2 T2:rel(l):3 T2:r(x):4 T2:rel(m):5 \
                     T3:acq(m):6 T3:rel(m):7 T3:acq(l):8 T3:w(x):9 T3:rel(l):10";
        assert_eq!(race(trace, [9, 4]), Some(vec![100, 101, 102, 6, 7, 1, 2, 3, 8, 9, 4]));
    }
}
