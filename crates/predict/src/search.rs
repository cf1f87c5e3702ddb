//! Pattern-directed search (section 5.2).
//!
//! For each pattern, the units of work that can play its sides are looked up by their variables, and every
//! combination is tested for the *mutation condition*: could the events come in the order of the pattern, as far as
//! locks and the partial order tell? What passes is an anomaly that this run almost had. Anomalies are told apart by
//! their source lines; the first events found stand for all of the same lines.

use std::collections::{BTreeMap, BTreeSet};

use threadbare_trace::{EventIndex, ObjectIndex, ThreadIndex};

use crate::AnomalyKind;
use crate::exposed::exposed;
use crate::gap::{Gap, Gaps};
use crate::pattern::{Pattern, Shape};
use crate::units::{Accesses, LockPattern, UnitGroup, UnitGroupIndex, Units};
use threadbare_search::reorder::history::{History, Line};
use threadbare_search::reorder::lockset::Lockset;
use threadbare_search::reorder::order::{Order, Segment};
use threadbare_search::reorder::region::Tier;
use threadbare_search::reorder::variable::Variable;

/// What makes an anomaly the same as another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub kind: AnomalyKind,
    pub tier: Option<Tier>,
    /// Which pattern it is; the two orders of a data race are one.
    pub pattern: Option<usize>,
    /// In the order of the pattern, or sorted for a data race.
    pub lines: Vec<Line>,
}

/// An anomaly that the run almost had.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which of the patterns searched for.
    pub pattern: usize,
    pub tier: Option<Tier>,
    /// Events that could come in the order of the pattern, and a few alternatives.
    pub representatives: Vec<Vec<EventIndex>>,
    /// For how many combinations of threads and variables it was found.
    pub count: u64,
    /// For data races, the groups of both sides of each combination, as [`Found::events`] takes them.
    pub sides: BTreeSet<[(usize, UnitGroupIndex); 2]>,
}

/// Alternatives that are kept in case the first events turn out to be impossible.
const REPRESENTATIVES: usize = 4;

/// Everything a search found.
#[derive(Debug)]
pub struct Found {
    pub candidates: BTreeMap<Identity, Candidate>,
    shapes: Vec<(Shape, Units)>,
}

impl Found {
    /// All events of a group of single accesses, as a candidate's `sides` name it.
    pub fn events(&self, (shape, group): (usize, UnitGroupIndex)) -> &[EventIndex] {
        &self.shapes[shape].1.groups[group.index()].events
    }
}

/// Searches for all patterns.
pub fn search(history: &History, patterns: &[Pattern]) -> Found {
    let accesses = Accesses::of(history);
    search_among(history, patterns, &accesses.restricted(history, &exposed(history, &accesses, patterns)))
}

/// Searches for all patterns among these accesses.
pub fn search_among(history: &History, patterns: &[Pattern], accesses: &Accesses) -> Found {
    let mut gaps = Gaps::default();
    let mut shapes: Vec<(Shape, Units)> = Vec::new();
    for side in patterns.iter().flat_map(|pattern| &pattern.sides) {
        if !shapes.iter().any(|(shape, _)| *shape == side.shape) {
            let units = Units::of(history, accesses, &side.shape, &mut gaps);
            shapes.push((side.shape.clone(), units));
        }
    }
    let mut candidates = BTreeMap::new();
    for (number, pattern) in patterns.iter().enumerate() {
        let place = |shape: &Shape| shapes.iter().position(|(known, _)| known == shape).expect("found above");
        let mut search = Search {
            history,
            gaps: &gaps,
            pattern,
            number,
            shapes: pattern.sides.iter().map(|side| place(&side.shape)).collect(),
            units: pattern.sides.iter().map(|side| &shapes[place(&side.shape)].1).collect(),
            candidates: &mut candidates,
        };
        search.bind(&mut Vec::new(), &mut vec![None; pattern.variables]);
    }
    Found { candidates, shapes }
}

/// The search for one pattern.
struct Search<'a> {
    history: &'a History,
    gaps: &'a Gaps,
    pattern: &'a Pattern,
    number: usize,
    /// For each side, which shape it has, and the units of that shape.
    shapes: Vec<usize>,
    units: Vec<&'a Units>,
    candidates: &'a mut BTreeMap<Identity, Candidate>,
}

impl Search<'_> {
    /// Chooses a group for each side, so that sides agree on variables.
    fn bind(&mut self, chosen: &mut Vec<UnitGroupIndex>, variables: &mut Vec<Option<Variable>>) {
        let Some(side) = self.pattern.sides.get(chosen.len()) else { return self.test(chosen) };
        let units = self.units[chosen.len()];
        let known: Option<Vec<Variable>> = side.variables.iter().map(|&label| variables[label]).collect();
        match known {
            Some(known) => {
                let guarded = units.by_variables.get(known.as_slice()).into_iter().flatten();
                for guarded in guarded {
                    if !self.is_guarded(chosen, guarded.guard) {
                        guarded.groups.iter().for_each(|&group| self.choose(group, chosen, variables));
                    }
                }
            }
            None => {
                UnitGroupIndex::first(units.groups.len())
                    .for_each(|group| self.choose(group, chosen, variables));
            }
        }
    }

    /// Takes `group` for the next side, if it can be that.
    fn choose(
        &mut self,
        group: UnitGroupIndex,
        chosen: &mut Vec<UnitGroupIndex>,
        variables: &mut Vec<Option<Variable>>,
    ) {
        let side = &self.pattern.sides[chosen.len()];
        let candidate = &self.units[chosen.len()].groups[group.index()];
        let mut bound = side.variables.iter().zip(&candidate.variables);
        let agrees = bound.all(|(&label, &variable)| variables[label].is_none_or(|known| known == variable));
        if !agrees || self.is_chosen(chosen, candidate.thread) {
            return;
        }
        let before = variables.clone();
        for (&label, &variable) in side.variables.iter().zip(&candidate.variables) {
            variables[label] = Some(variable);
        }
        chosen.push(group);
        self.bind(chosen, variables);
        chosen.pop();
        *variables = before;
    }

    /// A lock keeps groups with this guard apart from one that was chosen.
    fn is_guarded(&self, chosen: &[UnitGroupIndex], guard: Option<ObjectIndex>) -> bool {
        let mut guards = chosen.iter().enumerate().map(|(side, &group)| self.group(side, group).guard);
        guard.is_some() && guards.any(|chosen| chosen == guard)
    }

    fn is_chosen(&self, chosen: &[UnitGroupIndex], thread: ThreadIndex) -> bool {
        chosen.iter().enumerate().any(|(side, &group)| self.group(side, group).thread == thread)
    }

    fn group(&self, side: usize, group: UnitGroupIndex) -> &UnitGroup {
        &self.units[side].groups[group.index()]
    }

    /// Tests the groups chosen, and keeps what passes.
    fn test(&mut self, chosen: &[UnitGroupIndex]) {
        let groups: Vec<&UnitGroup> =
            chosen.iter().enumerate().map(|(side, &group)| self.group(side, group)).collect();
        // Two atomic operations do not race, whatever their order does.
        if self.pattern.kind == AnomalyKind::DataRace && groups.iter().all(|group| group.atomic) {
            return;
        }
        if !self.may_take_turns(&groups) {
            return;
        }
        let Some(events) = self.satisfied(&groups) else { return };
        let identity = self.identity(&groups, &events);
        let tier = identity.tier;
        let candidate = self.candidates.entry(identity).or_insert_with(|| Candidate {
            pattern: self.number,
            tier,
            representatives: Vec::new(),
            count: 0,
            sides: BTreeSet::new(),
        });
        // A data race is found once for each order of its events, and counts once.
        let mut sides = [(self.shapes[0], chosen[0]), (self.shapes[1], chosen[1])];
        sides.sort_unstable();
        let known = self.pattern.kind == AnomalyKind::DataRace && !candidate.sides.insert(sides);
        candidate.count += u64::from(!known);
        if !known && candidate.representatives.len() < REPRESENTATIVES {
            candidate.representatives.push(events);
        }
    }

    /// The first side can pause somewhere for the second to begin. Nearly all combinations fail here, because a lock
    /// guards the variable, so this comes before everything that costs more.
    fn may_take_turns(&self, groups: &[&UnitGroup]) -> bool {
        let locksets = self.history.locksets();
        let (first, second) =
            (self.pattern.order[0], self.pattern.order.iter().find(|&&side| side != self.pattern.order[0]));
        let Some(&second) = second else { return false };
        let begins = |held: Lockset| {
            groups[second]
                .lock_patterns
                .iter()
                .any(|lock_pattern| locksets.disjoint(held, lock_pattern.first))
        };
        let block = self.pattern.order.iter().take_while(|&&side| side == first).count();
        groups[first].lock_patterns.iter().any(|lock_pattern| match lock_pattern.gaps.get(block - 1) {
            Some(&gap) => self.gaps.get(gap).pauses.iter().any(|pause| begins(pause.held)),
            None => !self.pattern.is_adjacent() || begins(lock_pattern.first),
        })
    }

    fn identity(&self, groups: &[&UnitGroup], events: &[EventIndex]) -> Identity {
        let kind = self.pattern.kind;
        let mut lines: Vec<Line> = events.iter().map(|&event| self.history.line(event)).collect();
        let race = kind == AnomalyKind::DataRace;
        if race {
            lines.sort_unstable();
        }
        // A unit that is one only by its function makes the whole anomaly one of that tier.
        let tier = groups.iter().filter_map(|group| group.tier).max();
        Identity { kind, tier, pattern: (!race).then_some(self.number), lines }
    }

    /// Events of these groups that satisfy the pattern, in its order.
    fn satisfied(&self, groups: &[&UnitGroup]) -> Option<Vec<EventIndex>> {
        let mut lock_patterns = Vec::new();
        self.choose_manners(groups, &mut lock_patterns)
    }

    fn choose_manners<'f>(
        &self,
        groups: &[&'f UnitGroup],
        lock_patterns: &mut Vec<&'f LockPattern>,
    ) -> Option<Vec<EventIndex>> {
        let Some(group) = groups.get(lock_patterns.len()) else {
            return self.can_satisfy_by_mutation(lock_patterns);
        };
        for lock_pattern in &group.lock_patterns {
            lock_patterns.push(lock_pattern);
            let found = self.choose_manners(groups, lock_patterns);
            lock_patterns.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The mutation condition (Algorithms 1 and 2, for any number of events): locks allow the order of the pattern,
    /// and the partial order says nothing against it.
    fn can_satisfy_by_mutation(&self, lock_patterns: &[&LockPattern]) -> Option<Vec<EventIndex>> {
        let locks =
            LockCheck { history: self.history, gaps: self.gaps, pattern: self.pattern, lock_patterns };
        if !locks.allow(0, &mut vec![Side::default(); lock_patterns.len()]) {
            return None;
        }
        let segments: Vec<&[Segment]> =
            lock_patterns.iter().map(|lock_pattern| lock_pattern.segments.as_slice()).collect();
        let chosen = independent(self.history.order(), &segments)?;
        let mut next = vec![0; lock_patterns.len()];
        let event = |&side: &usize| {
            next[side] += 1;
            lock_patterns[side].occurrence(chosen[side])[next[side] - 1]
        };
        let events: Vec<EventIndex> = self.pattern.order.iter().map(event).collect();
        self.touches(&events).then_some(events)
    }

    /// Accesses to one variable of several parts meet only if they have a byte in common.
    fn touches(&self, events: &[EventIndex]) -> bool {
        let variables = self.history.variables();
        let meet =
            |a: EventIndex, b: EventIndex| variables.overlap(self.history.event(a), self.history.event(b));
        events.iter().enumerate().all(|(at, &a)| {
            let variable = self.history.variable(a);
            !variables.is_mixed(variable)
                || events[..at].iter().all(|&b| self.history.variable(b) != variable || meet(a, b))
        })
    }
}

/// Where a side of the pattern is, while the order of the pattern is gone through.
#[derive(Clone, Default)]
struct Side {
    /// Events done.
    done: usize,
    /// What it holds where it pauses.
    held: Lockset,
    /// The locksets on its way from there.
    rest: Vec<Lockset>,
}

/// The lockset condition.
struct LockCheck<'a> {
    history: &'a History,
    gaps: &'a Gaps,
    pattern: &'a Pattern,
    lock_patterns: &'a [&'a LockPattern],
}

impl LockCheck<'_> {
    /// From the `at`-th event of the pattern on, sides can take turns as it says, each pausing where it holds nothing
    /// that the others need meanwhile.
    fn allow(&self, at: usize, sides: &mut Vec<Side>) -> bool {
        let Some(&side) = self.pattern.order.get(at) else { return true };
        let lock_pattern = self.lock_patterns[side];
        let done = sides[side].done;
        let way = if done == 0 { vec![lock_pattern.first] } else { std::mem::take(&mut sides[side].rest) };
        if !self.is_free(sides, side, &way) {
            return false;
        }
        sides[side].done = done + 1;
        let gap: Option<&Gap> = lock_pattern.gaps.get(done).map(|&gap| self.gaps.get(gap));
        match gap {
            // It goes on by itself and gives back what it holds, unless the next event has to come at once.
            None => {
                sides[side].held =
                    if self.pattern.is_adjacent() { lock_pattern.first } else { Lockset::EMPTY };
                self.allow(at + 1, sides)
            }
            Some(gap) if self.pattern.order.get(at + 1) == Some(&side) => {
                sides[side].rest.clone_from(&gap.way);
                self.allow(at + 1, sides)
            }
            Some(gap) => gap.pauses.iter().any(|pause| {
                let mut sides = sides.clone();
                sides[side].held = pause.held;
                sides[side].rest.clone_from(&pause.rest);
                self.allow(at + 1, &mut sides)
            }),
        }
    }

    fn is_free(&self, sides: &[Side], side: usize, way: &[Lockset]) -> bool {
        let locksets = self.history.locksets();
        let others = sides.iter().enumerate().filter(|(other, _)| *other != side);
        others.into_iter().all(|(_, other)| way.iter().all(|&needed| locksets.disjoint(other.held, needed)))
    }
}

/// One segment of each list (each of one thread, in order) so that no two are ordered.
pub fn independent(order: &Order, lists: &[&[Segment]]) -> Option<Vec<usize>> {
    fn choose(order: &Order, lists: &[&[Segment]], chosen: &mut Vec<usize>) -> bool {
        let Some(list) = lists.get(chosen.len()) else { return true };
        let others: Vec<Segment> = chosen.iter().zip(lists).map(|(&at, list)| list[at]).collect();
        for at in first_not_before(order, list, &others)..list.len() {
            let after = others.iter().any(|&other| order.before(other, list[at]));
            // All later ones of this thread come after it too.
            if after {
                return false;
            }
            chosen.push(at);
            if choose(order, lists, chosen) {
                return true;
            }
            chosen.pop();
        }
        false
    }
    let mut chosen = Vec::new();
    choose(order, lists, &mut chosen).then_some(chosen)
}

/// The first segment in `list` that is not before any of `others`.
fn first_not_before(order: &Order, list: &[Segment], others: &[Segment]) -> usize {
    list.partition_point(|&segment| others.iter().any(|&other| order.before(segment, other)))
}
