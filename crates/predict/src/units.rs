//! The indices of the partial and temporal order graph (section 5.1), and what is found in them for one shape of a
//! unit of work.
//!
//! Events that a search cannot tell apart are merged first. What a unit does is merged in three steps: a *group*
//! has the same thread, variables and lines; within it a *lock pattern* has the same locks; within that, one occurrence
//! is kept for each segment, because only segments tell in the partial order.

use threadbare_trace::{EventIndex, ObjectIndex, ThreadIndex, index_types};

use crate::gap::{GapId, Gaps};
use crate::pattern::{Access, Shape};
use rustc_hash::FxHashMap as FastMap;
use threadbare_search::reorder::history::{History, Line};
use threadbare_search::reorder::lockset::{Held, Lockset};
use threadbare_search::reorder::order::Segment;
use threadbare_search::reorder::region::Tier;
use threadbare_search::reorder::variable::Variable;

/// Accesses to memory that several threads share and one of them writes, each thread's in order.
#[derive(Debug)]
pub struct Accesses {
    threads: Vec<Vec<EventIndex>>,
    /// Parallel to `threads`: the thread's next access to the same variable.
    next: Vec<Vec<AccessIndex>>,
}

index_types! {
    /// An access of one thread, as an index into the thread's list in [`Accesses`].
    AccessIndex;
}

/// There is no next access.
const NONE: AccessIndex = AccessIndex::new(u32::MAX);

impl Accesses {
    pub fn of(history: &History) -> Accesses {
        let shared = shared(history);
        let mut threads: Vec<Vec<EventIndex>> = vec![Vec::new(); history.threads()];
        for (index, event) in history.trace().indexed_events() {
            if event.kind.is_access() && shared[history.variables().variable(event).index()] {
                threads[event.thread.index()].push(index);
            }
        }
        Accesses::new(history, threads)
    }

    fn new(history: &History, threads: Vec<Vec<EventIndex>>) -> Accesses {
        let next = threads.iter().map(|accesses| next_to_same(history, accesses)).collect();
        Accesses { threads, next }
    }

    /// Only those to variables that `wanted` names.
    pub fn restricted(&self, history: &History, wanted: &[bool]) -> Accesses {
        let is_wanted = |&event: &EventIndex| wanted[history.variable(event).index()];
        let restricted = |accesses: &Vec<EventIndex>| accesses.iter().copied().filter(is_wanted).collect();
        Accesses::new(history, self.threads.iter().map(restricted).collect())
    }

    pub fn of_thread(&self, thread: ThreadIndex) -> &[EventIndex] {
        &self.threads[thread.index()]
    }
}

/// Variables that more than one thread accesses, at least one of them writing.
fn shared(history: &History) -> Vec<bool> {
    /// Who has accessed a variable so far.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Owner {
        Nobody,
        One(ThreadIndex),
        Several,
    }
    let mut owners = vec![Owner::Nobody; history.variables().count()];
    let mut written = vec![false; owners.len()];
    for event in history.trace().events.iter().filter(|event| event.kind.is_access()) {
        let variable = history.variables().variable(event).index();
        written[variable] |= event.kind.is_write();
        owners[variable] = match owners[variable] {
            Owner::Nobody => Owner::One(event.thread),
            Owner::One(owner) if owner == event.thread => Owner::One(owner),
            _ => Owner::Several,
        };
    }
    owners.iter().zip(written).map(|(&owner, written)| owner == Owner::Several && written).collect()
}

fn next_to_same(history: &History, accesses: &[EventIndex]) -> Vec<AccessIndex> {
    let mut latest = vec![NONE; history.variables().count()];
    let mut next = vec![NONE; accesses.len()];
    for (place, &event) in accesses.iter().enumerate().rev() {
        let latest = &mut latest[history.variable(event).index()];
        next[place] = *latest;
        *latest = AccessIndex::at(place);
    }
    next
}

index_types! {
    /// A group, as an index into [`Units::groups`].
    UnitGroupIndex;
}

/// Units of work of one shape, thread, variables and lines.
#[derive(Debug)]
pub struct UnitGroup {
    pub thread: ThreadIndex,
    /// `None` for a single access, which needs no region.
    pub tier: Option<Tier>,
    pub variables: Vec<Variable>,
    pub lines: Vec<Line>,
    /// All accesses are atomic operations.
    pub atomic: bool,
    /// A lock that is held from the first access to the last, always, and by nobody else meanwhile.
    pub guard: Option<ObjectIndex>,
    pub lock_patterns: Vec<LockPattern>,
    /// Every event, for shapes of a single access.
    pub events: Vec<EventIndex>,
}

/// Units of one group that hold the same locks on their way.
#[derive(Debug)]
pub struct LockPattern {
    /// Held at the first access.
    pub first: Lockset,
    /// Between each access and the next.
    pub gaps: Vec<GapId>,
    /// The segments in which it occurs, in order.
    pub segments: Vec<Segment>,
    /// For each of these, the events of one occurrence.
    events: Vec<EventIndex>,
}

impl LockPattern {
    /// The events of the occurrence in the `nth` segment.
    pub fn occurrence(&self, nth: usize) -> &[EventIndex] {
        let length = self.gaps.len() + 1;
        &self.events[nth * length..(nth + 1) * length]
    }
}

/// All units of work of one shape.
#[derive(Debug, Default)]
pub struct Units {
    pub groups: Vec<UnitGroup>,
    /// Groups by their variables, and then by their guards: those with the same guard never meet.
    pub by_variables: FastMap<Box<[Variable]>, Vec<Guarded>>,
}

/// Groups with the same variables and guard.
#[derive(Debug)]
pub struct Guarded {
    pub guard: Option<ObjectIndex>,
    pub groups: Vec<UnitGroupIndex>,
}

/// How far a unit is followed for its next variable, within its region and outside any.
const WINDOW: usize = 32;
pub const FUNCTION_WINDOW: usize = 8;

impl Units {
    pub fn of(history: &History, accesses: &Accesses, shape: &Shape, gaps: &mut Gaps) -> Units {
        let mut finder = Finder {
            history,
            accesses,
            shape,
            gaps,
            units: Units::default(),
            lock_patterns: FastMap::default(),
            groups: FastMap::default(),
            key: Vec::new(),
            events: Vec::new(),
            seen: Vec::new(),
        };
        let mut places = Vec::with_capacity(shape.len());
        for thread in ThreadIndex::first(history.threads()) {
            for place in AccessIndex::first(accesses.of_thread(thread).len()) {
                places.push(place);
                finder.extend(thread, &mut places);
                places.pop();
            }
        }
        let mut units = finder.units;
        units.index(history, gaps);
        units
    }

    /// Files the groups, once all of them are complete.
    fn index(&mut self, history: &History, gaps: &Gaps) {
        for (index, group) in self.groups.iter_mut().enumerate() {
            group.guard = guard(history, gaps, &group.lock_patterns);
            let guards = match self.by_variables.get_mut(group.variables.as_slice()) {
                Some(guards) => guards,
                None => self.by_variables.entry(group.variables.clone().into()).or_default(),
            };
            match guards.iter_mut().find(|guarded| guarded.guard == group.guard) {
                Some(guarded) => guarded.groups.push(UnitGroupIndex::at(index)),
                None => guards.push(Guarded { guard: group.guard, groups: vec![UnitGroupIndex::at(index)] }),
            }
        }
    }
}

/// A lock that units of every lock pattern hold all the way.
fn guard(history: &History, gaps: &Gaps, lock_patterns: &[LockPattern]) -> Option<ObjectIndex> {
    let locksets = history.locksets();
    let exclusive = locksets.held(lock_patterns.first()?.first).iter().filter(|held| !held.shared);
    let holds = |set: Lockset, held: &Held| locksets.held(set).binary_search(held).is_ok();
    let held_by = |lock_pattern: &LockPattern, held: &Held| {
        let ways = lock_pattern.gaps.iter().flat_map(|&gap| &gaps.get(gap).way);
        holds(lock_pattern.first, held) && ways.into_iter().all(|&set| holds(set, held))
    };
    exclusive
        .into_iter()
        .find(|held| lock_patterns.iter().all(|lock_pattern| held_by(lock_pattern, held)))
        .map(|held| held.lock)
}

struct Finder<'a> {
    history: &'a History,
    accesses: &'a Accesses,
    shape: &'a Shape,
    gaps: &'a mut Gaps,
    units: Units,
    /// The group, and the lock pattern within it, by what makes up both.
    lock_patterns: FastMap<Box<[u32]>, (UnitGroupIndex, usize)>,
    groups: FastMap<Box<[u32]>, UnitGroupIndex>,
    /// A key being looked up, the events of an occurrence, variables met; kept for their memory.
    key: Vec<u32>,
    events: Vec<EventIndex>,
    seen: Vec<Variable>,
}

impl Finder<'_> {
    /// Follows the shape from the accesses found so far, given by their places in the thread's list.
    fn extend(&mut self, thread: ThreadIndex, places: &mut Vec<AccessIndex>) {
        let last = places.len() - 1;
        let (_, access) = self.shape[last];
        if !self.does(self.event(thread, places[last]), access) {
            return;
        }
        let Some(&(wanted, _)) = self.shape.get(places.len()) else {
            let mut events = std::mem::take(&mut self.events);
            events.clear();
            events.extend(places.iter().map(|&place| self.event(thread, place)));
            self.add(thread, &events);
            self.events = events;
            return;
        };
        let position = self.shape[..places.len()].iter().rposition(|&(variable, _)| variable == wanted);
        match position {
            Some(position) => self.extend_to_same(thread, places, position),
            None => self.extend_to_new(thread, places),
        }
    }

    fn event(&self, thread: ThreadIndex, place: AccessIndex) -> EventIndex {
        self.accesses.of_thread(thread)[place.index()]
    }

    fn does(&self, event: EventIndex, access: Access) -> bool {
        self.history.writes(event) == (access == Access::Write)
    }

    /// The next access to a variable that the unit has accessed before (last at `position`): it has to be the very
    /// next one.
    fn extend_to_same(&mut self, thread: ThreadIndex, places: &mut Vec<AccessIndex>, position: usize) {
        let next = self.accesses.next[thread.index()][places[position].index()];
        let last = places[places.len() - 1];
        if next != NONE && next > last && self.is_unit(thread, places[0], next) {
            places.push(next);
            self.extend(thread, places);
            places.pop();
        }
    }

    /// Accesses to further variables: for each, the first that does what is wanted, as long as the access that we
    /// come from is not made again.
    fn extend_to_new(&mut self, thread: ThreadIndex, places: &mut Vec<AccessIndex>) {
        let last = places[places.len() - 1];
        let (from, wanted) = (self.event(thread, last), self.shape[places.len()].1);
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        seen.extend(places.iter().map(|&place| self.history.variable(self.event(thread, place))));
        let rest = last.next().index()..self.accesses.of_thread(thread).len();
        for (distance, place) in rest.take(WINDOW).map(AccessIndex::at).enumerate() {
            let event = self.event(thread, place);
            let tier = self.history.unit(from, event);
            let too_far = distance >= FUNCTION_WINDOW && tier != Some(Tier::CriticalSection);
            let again = self.history.variable(event) == self.history.variable(from)
                && self.history.writes(event) == self.history.writes(from);
            if too_far || again || self.history.segment(event) != self.history.segment(from) {
                break;
            }
            let variable = self.history.variable(event);
            if !self.does(event, wanted) || seen.contains(&variable) {
                continue;
            }
            seen.push(variable);
            if self.is_unit(thread, places[0], place) {
                places.push(place);
                self.extend(thread, places);
                places.pop();
            }
        }
        self.seen = seen;
    }

    fn is_unit(&self, thread: ThreadIndex, first: AccessIndex, last: AccessIndex) -> bool {
        self.history.unit(self.event(thread, first), self.event(thread, last)).is_some()
    }

    /// Files an occurrence under its group and lock pattern.
    fn add(&mut self, thread: ThreadIndex, events: &[EventIndex]) {
        let history = self.history;
        let tier = match events {
            [_] => None,
            [first, .., last] => history.unit(*first, *last),
            [] => return,
        };
        let atomic = events.iter().all(|&event| is_atomic(history, event));
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend([thread.number(), tier.map_or(0, |tier| 1 + tier as u32), u32::from(atomic)]);
        for &event in events {
            // Objects, not variables: parts of a variable are not the same place.
            key.extend([history.event(event).object.number(), history.line(event).number()]);
        }
        let group_length = key.len();
        key.push(history.lockset(events[0]).number());
        for pair in events.windows(2) {
            key.push(self.gaps.between(history, pair[0], pair[1]).number());
        }
        let known = self.lock_patterns.get(key.as_slice()).copied();
        let (group, lock_pattern) =
            known.unwrap_or_else(|| self.file(&key, group_length, thread, tier, atomic, events));
        let group = &mut self.units.groups[group.index()];
        if events.len() == 1 {
            group.events.extend(events);
        }
        let lock_pattern = &mut group.lock_patterns[lock_pattern];
        let segment = history.segment(events[0]);
        if lock_pattern.segments.last() != Some(&segment) {
            lock_pattern.segments.push(segment);
            lock_pattern.events.extend(events);
        }
        self.key = key;
    }

    fn file(
        &mut self,
        key: &[u32],
        group_length: usize,
        thread: ThreadIndex,
        tier: Option<Tier>,
        atomic: bool,
        events: &[EventIndex],
    ) -> (UnitGroupIndex, usize) {
        let groups = &mut self.units.groups;
        let group = match self.groups.get(&key[..group_length]) {
            Some(&group) => group,
            None => {
                let group = UnitGroupIndex::at(groups.len());
                let mut variables: Vec<Variable> = Vec::new();
                for &event in events {
                    let variable = self.history.variable(event);
                    if !variables.contains(&variable) {
                        variables.push(variable);
                    }
                }
                let lines = events.iter().map(|&event| self.history.line(event)).collect();
                groups.push(UnitGroup {
                    thread,
                    tier,
                    variables,
                    lines,
                    atomic,
                    guard: None,
                    lock_patterns: Vec::new(),
                    events: Vec::new(),
                });
                self.groups.insert(key[..group_length].into(), group);
                group
            }
        };
        let lock_patterns = &mut groups[group.index()].lock_patterns;
        lock_patterns.push(LockPattern {
            first: self.history.lockset(events[0]),
            gaps: key[group_length + 1..].iter().map(|&gap| GapId::new(gap)).collect(),
            segments: Vec::new(),
            events: Vec::new(),
        });
        let found = (group, lock_patterns.len() - 1);
        self.lock_patterns.insert(key.into(), found);
        found
    }
}

fn is_atomic(history: &History, event: EventIndex) -> bool {
    use threadbare_trace::EventKind::{AtomicLoad, AtomicRmw, AtomicStore};
    matches!(history.event(event).kind, AtomicLoad | AtomicStore | AtomicRmw)
}
