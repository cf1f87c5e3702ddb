//! The strategy `race-equivalent`: only interleavings that can lead a thread down another path.
//!
//! It is the loop of Algorithm 4 on real programs, whose traces are too long for a variant graph. For each read of a run
//! that decides where its thread goes, every other value that it could have seen is one variant: a schedule is made in which
//! the read comes after a write of that value. A variant is not run if its branch was seen to read the value before
//! (a branch-affect group that was tested), with the same history of its thread and the same access-manners of all others
//! (a row of the branch-condition table that was tested). The search is over when there is no such variant left: the two
//! ends of Algorithm 4 are one.
//!
//! Operations whose outcome depends on their order are treated as reads are (`ordering`).
//!
//! With `branches_only` it is the paper's: a value counts once for each branch of a thread. It counts again only where the
//! thread has done less before than when the value was seen. So iterations of a loop are equivalent by access-manners.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use threadbare_search::Settings;
use threadbare_search::reorder::schedule::Reordering;
use threadbare_search::reorder::variable::Variable;
use threadbare_search::reorder::{History, seeing};
use threadbare_trace::{EventIndex, ObjectIndex};

use crate::behaviour::{Behaviour, Done, INITIAL, Names, Observation, Values, initial_values, number};
use crate::deciding::Code;
use crate::explorer::{Criterion, Explorer, Recorded};
use crate::ordering::{self, Orders, Place};
use crate::prefix::state_after;

pub const NAME: &str = "race-equivalent";

/// Writes of one value that a read is tried to come after, the nearest first.
const MAX_SOURCES: usize = 8;

/// The strategy.
pub type RaceEquivalent = Explorer<RaceEquivalence>;

/// Which runs are equivalent, and what could be observed that was not.
pub struct RaceEquivalence {
    code: Code,
    branches_only: bool,
    /// Variants that were seen or planned.
    known: FxHashSet<u64>,
    /// What was observed at each branch: with each answer, what its thread had done before.
    tested: FxHashMap<u64, Vec<Done>>,
    /// Variants whose branch was never seen to read the value.
    first: VecDeque<Variant>,
    others: VecDeque<Variant>,
    /// What memory holds before a run, by the number of the object, as far as reads have shown it.
    initial: FxHashMap<u64, u64>,
    /// Sets of access-manners that runs had.
    groups: FxHashSet<u64>,
    /// States that schedules have led to.
    reached: FxHashSet<u64>,
}

/// Something is to be observed that was not.
pub struct Variant {
    run: Arc<Recorded>,
    observation: Observation,
    /// What is to be observed instead, as far as it is known.
    answer: u64,
    /// Its entry among those that are known.
    key: u64,
    /// What may bring it about, the best last.
    sources: Vec<Source>,
    was_run: bool,
}

/// How another observation may come about.
#[derive(Clone, Copy)]
enum Source {
    /// The read sees this write; or what was there before the run.
    Sees(Option<EventIndex>),
    /// The operation comes in another place.
    Comes(Place),
}

impl Variant {
    /// The next schedule for it.
    fn schedule(&mut self) -> Option<Reordering> {
        let Recorded { history, generator, writes, .. } = &*self.run;
        let event = self.observation.event;
        std::iter::from_fn(|| self.sources.pop()).find_map(|source| match source {
            Source::Sees(write) => {
                let writes = &writes[&history.variable(event)];
                seeing::schedule(generator, history, event, write, writes)
            }
            Source::Comes(place) => ordering::schedule(generator, history, event, place),
        })
    }
}

impl RaceEquivalent {
    pub fn new(settings: Settings) -> RaceEquivalent {
        let criterion = RaceEquivalence {
            code: Code::new(settings.program.clone(), settings.branches_only),
            branches_only: settings.branches_only,
            known: FxHashSet::default(),
            tested: FxHashMap::default(),
            first: VecDeque::new(),
            others: VecDeque::new(),
            initial: FxHashMap::default(),
            groups: FxHashSet::default(),
            reached: FxHashSet::default(),
        };
        Explorer::with(criterion, &settings)
    }
}

impl Criterion for RaceEquivalence {
    const NAME: &'static str = NAME;
    type Variant = Variant;

    fn add(&mut self, run: &Arc<Recorded>, variant: Option<Variant>) -> bool {
        let history = &run.history;
        let deciding = self.code.deciding(history);
        let names = Names::of(history.trace(), self.branches_only);
        let behaviour = Behaviour::of(history, &names, &deciding);
        if let Some(variant) = variant {
            let Observation { question, answer, .. } = variant.observation;
            let mut observations = behaviour.observations.iter();
            if !observations.any(|seen| seen.question == question && seen.answer != answer) {
                // It may come about in another way.
                self.first.push_front(variant);
            }
        }
        self.initial.extend(initial_values(history, &names));
        self.note(history, &behaviour);
        self.plan(run, &names, &behaviour);
        self.groups.insert(behaviour.manners())
    }

    fn blocked(&mut self, variant: Variant) {
        self.first.push_front(variant);
    }

    fn next(&mut self) -> Option<(Variant, Arc<Recorded>, Reordering)> {
        loop {
            let mut variant = self.first.pop_front().or_else(|| self.others.pop_front())?;
            if self.branches_only && self.was_tested(&variant.observation, variant.answer) {
                continue;
            }
            while let Some(schedule) = variant.schedule() {
                variant.was_run = true;
                if self.reached.insert(state_after(&variant.run, &schedule)) {
                    let run = Arc::clone(&variant.run);
                    return Some((variant, run, schedule));
                }
            }
            if !variant.was_run {
                // There may be a way from another run.
                self.known.remove(&variant.key);
            }
        }
    }

    fn give_up(&mut self, run: &Weak<Recorded>) -> u64 {
        let is_other = |variant: &Variant| !std::ptr::eq(Arc::as_ptr(&variant.run), run.as_ptr());
        let before = self.first.len() + self.others.len();
        self.first.retain(is_other);
        self.others.retain(is_other);
        (before - self.first.len() - self.others.len()) as u64
    }

    fn begin_again(&mut self) {
        self.known.clear();
        self.tested.clear();
        self.first.clear();
        self.others.clear();
        self.initial.clear();
        self.groups.clear();
        self.reached.clear();
    }
}

impl RaceEquivalence {
    /// Takes note of what was observed.
    fn note(&mut self, history: &History, behaviour: &Behaviour) {
        for observation in &behaviour.observations {
            let others = behaviour.manners_of_others(history.thread(observation.event));
            self.known.insert(self.key(observation, others, observation.answer));
            if !self.was_tested(observation, observation.answer) {
                let tested = self.tested.entry(number((observation.branch, observation.answer)));
                tested.or_default().push(observation.done.clone());
            }
        }
    }

    /// Plans the variants of a run.
    fn plan(&mut self, run: &Arc<Recorded>, names: &Names, behaviour: &Behaviour) {
        let history = &run.history;
        let initial = |object: ObjectIndex| self.initial.get(&names.object(object.index())).copied();
        let alternatives = Alternatives::of(run, initial);
        let orders = Orders::of(history);
        let mut tried: FxHashSet<u64> = FxHashSet::default();
        for observation in &behaviour.observations {
            let others = behaviour.manners_of_others(history.thread(observation.event));
            let places = self.other_places(&orders, history, behaviour, observation);
            let places = places.iter().map(|(answer, source)| (*answer, std::slice::from_ref(source)));
            for (answer, sources) in alternatives.of_read(observation.event).chain(places) {
                let key = self.key(observation, others, answer);
                let is_seen = answer == observation.answer || self.known.contains(&key);
                if is_seen || !tried.insert(key) {
                    continue;
                }
                let sources = possible(run, observation.event, sources);
                if sources.is_empty() {
                    continue;
                }
                self.known.insert(key);
                let is_first = !self.was_tested(observation, answer);
                let variants = if is_first { &mut self.first } else { &mut self.others };
                let (run, observation) = (Arc::clone(run), observation.clone());
                variants.push_back(Variant { run, observation, answer, key, sources, was_run: false });
            }
        }
    }

    /// The other places that an operation could have come in. How it would go there is not known.
    fn other_places(
        &self,
        orders: &Orders<'_>,
        history: &History,
        behaviour: &Behaviour,
        observation: &Observation,
    ) -> Vec<(u64, Source)> {
        let event = history.event(observation.event);
        if event.kind.is_access() {
            return Vec::new();
        }
        let address = |event: EventIndex| history.trace().location(history.event(event).location).address;
        let is_try = self.code.is_try(address(observation.event));
        let answer = |place: Place| {
            let other = place.other();
            let thread = behaviour.threads[history.thread(other).index()];
            number((std::mem::discriminant(&place), thread, address(other)))
        };
        let places = orders.places(observation.event, is_try).into_iter();
        places.map(|place| (answer(place), Source::Comes(place))).collect()
    }

    /// The branch was seen to have this answer when its thread had done no more than before this observation. What follows
    /// is an equivalent iteration.
    fn was_tested(&self, observation: &Observation, answer: u64) -> bool {
        let tested = self.tested.get(&number((observation.branch, answer)));
        tested.is_some_and(|tested| tested.iter().any(|done| done.is_within(&observation.done)))
    }

    /// What makes a variant the same as another one.
    fn key(&self, observation: &Observation, manners_of_others: u64, answer: u64) -> u64 {
        match self.branches_only {
            true => number((observation.branch, observation.done.sum, answer)),
            false => number((observation.question, manners_of_others, answer)),
        }
    }
}

/// Of these sources, those that no order rules out, the nearest last.
fn possible(run: &Recorded, event: EventIndex, sources: &[Source]) -> Vec<Source> {
    let mut sources = sources.to_vec();
    sources.sort_by_key(|source| match source {
        Source::Sees(Some(write)) => write.number().abs_diff(event.number()),
        Source::Sees(None) | Source::Comes(_) => u32::MAX,
    });
    let may_be = |source: &Source| match *source {
        Source::Sees(write) => may_see(run, event, write),
        Source::Comes(_) => true,
    };
    let mut sources: Vec<Source> = sources.into_iter().filter(may_be).take(MAX_SOURCES).collect();
    sources.reverse();
    sources
}

fn may_see(run: &Recorded, read: EventIndex, source: Option<EventIndex>) -> bool {
    let history = &run.history;
    let all = &run.writes[&history.variable(read)];
    let is_before = |a: EventIndex, b: EventIndex| match history.thread(a) == history.thread(b) {
        true => a < b,
        false => history.order().before(history.segment(a), history.segment(b)),
    };
    let Some(write) = source else { return !all.iter().any(|&write| is_before(write, read)) };
    let hides = |&other: &EventIndex| is_before(write, other) && is_before(other, read);
    write != read && !is_before(read, write) && !all.iter().any(hides)
}

/// The values that reads of each variable could see, with the writes of each.
struct Alternatives<'r> {
    run: &'r Recorded,
    values: FxHashMap<Variable, Vec<(u64, Vec<Source>)>>,
}

impl<'r> Alternatives<'r> {
    /// `initial` says what an object holds before the run.
    fn of(run: &'r Recorded, initial: impl Fn(ObjectIndex) -> Option<u64>) -> Alternatives<'r> {
        let values = Values::new(&run.history);
        let by_value = |(&variable, writes): (&Variable, &Vec<EventIndex>)| {
            let mut groups: Vec<(u64, Vec<Source>)> = Vec::new();
            let mut places: FxHashMap<u64, usize> = FxHashMap::default();
            let before = writes.iter().find_map(|&write| initial(run.history.event(write).object));
            let all = writes.iter().map(|&write| (values.written_by(write), Some(write)));
            for (value, source) in std::iter::once((before.unwrap_or(INITIAL), None)).chain(all) {
                let place = *places.entry(value).or_insert_with(|| {
                    groups.push((value, Vec::new()));
                    groups.len() - 1
                });
                groups[place].1.push(Source::Sees(source));
            }
            (variable, groups)
        };
        Alternatives { run, values: run.writes.iter().map(by_value).collect() }
    }

    /// The values, with the writes that they may come from.
    fn of_read(&self, read: EventIndex) -> impl Iterator<Item = (u64, &[Source])> {
        let history = &self.run.history;
        let is_access = history.event(read).kind.is_access();
        let groups = is_access.then(|| self.values.get(&history.variable(read))).flatten();
        groups.into_iter().flatten().map(|(value, sources)| (*value, sources.as_slice()))
    }
}
