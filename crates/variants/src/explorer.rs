//! The loop that explorations of traces have in common: make a run, look at its trace, plan variants, make their runs.
//!
//! What a variant is, and which runs are of the same class, is a [`Criterion`]. Memory that runs find to be shared makes
//! other runs of the same turns, so the exploration then begins again.

use std::sync::{Arc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use threadbare_search::reorder::reads::Reads;
use threadbare_search::reorder::schedule::{Generator, Reordering};
use threadbare_search::reorder::variable::Variable;
use threadbare_search::reorder::{History, plan};
use threadbare_search::{
    Explored, Feedback, Knowledge, Next, Outstanding, Schedule, Settings, Strategy, Token,
};
use threadbare_trace::{End, EventIndex, Plan, Policy};

use crate::behaviour::Names;
use crate::lockset::{self, Race};

/// Which interleavings are told apart.
pub trait Criterion: Send {
    const NAME: &'static str;
    /// What a run is made for.
    type Variant: Send;

    /// Takes in a run, and plans variants. `variant` is what the run was made for. Says whether the run is the first of
    /// its class.
    fn add(&mut self, run: &Arc<Recorded>, variant: Option<Self::Variant>) -> bool;

    /// The schedule for the variant could not be followed.
    fn blocked(&mut self, variant: Self::Variant);

    /// The next variant, with the run that it is made from and a schedule of that run's events.
    fn next(&mut self) -> Option<(Self::Variant, Arc<Recorded>, Reordering)>;

    /// Gives up the variants of a run, and says how many there were.
    fn give_up(&mut self, run: &Weak<Recorded>) -> u64;

    /// Forgets all runs.
    fn begin_again(&mut self);
}

/// A run that variants are made from.
pub struct Recorded {
    pub history: Arc<History>,
    pub generator: Generator,
    /// Of objects, with the elements of an array apart.
    pub names: Names,
    plan: Plan,
    /// By variable.
    pub writes: FxHashMap<Variable, Vec<EventIndex>>,
}

impl Recorded {
    fn new(history: Arc<History>, plan: Plan) -> Recorded {
        let reads = Arc::new(Reads::of(&history));
        let mut writes: FxHashMap<Variable, Vec<EventIndex>> = FxHashMap::default();
        for (index, event) in history.trace().indexed_events() {
            if event.kind.is_access() && history.writes(index) {
                writes.entry(history.variable(index)).or_default().push(index);
            }
        }
        let names = Names::of(history.trace(), false);
        Recorded { generator: Generator::new(Arc::clone(&history), reads), history, names, plan, writes }
    }

    /// A number for the variable of an access: the first write to it has its name.
    pub fn variable_name(&self, access: EventIndex) -> u64 {
        let writes = self.writes.get(&self.history.variable(access));
        let named = writes.and_then(|writes| writes.first()).unwrap_or(&access);
        self.names.object(self.history.event(*named).object.index())
    }
}

/// The bytes that an event of a run takes that is kept, about.
const EVENT_BYTES: u64 = 200;

/// An exploration by a criterion, as a strategy.
pub struct Explorer<C: Criterion> {
    knowledge: Knowledge,
    criterion: C,
    /// The first run was not asked for yet.
    is_new: bool,
    asked: Outstanding<Asked<C::Variant>>,
    /// How often the search has begun.
    beginnings: u64,
    /// Runs that were asked for and not answered, of this beginning.
    open: u64,
    /// Runs that variants are made from.
    kept: Vec<Weak<Recorded>>,
    max_events: u64,
    races: FxHashSet<Race>,
    figures: Explored,
    dropped: u64,
}

enum Asked<V> {
    /// It looks for shared memory, before the search begins.
    Learning,
    /// The first run, or that of a variant.
    Explores { number: u64, variant: Option<V> },
}

impl<C: Criterion> Explorer<C> {
    pub fn with(criterion: C, settings: &Settings) -> Explorer<C> {
        Explorer {
            knowledge: Knowledge::new(Plan { learn: true, ..settings.plan.clone() }),
            criterion,
            is_new: true,
            asked: Outstanding::default(),
            beginnings: 0,
            open: 0,
            kept: Vec::new(),
            max_events: settings.memory / EVENT_BYTES,
            races: FxHashSet::default(),
            figures: Explored::default(),
            dropped: 0,
        }
    }

    /// The accesses without a common lock that runs have shown.
    pub fn races(&self) -> &FxHashSet<Race> {
        &self.races
    }

    fn begin_again(&mut self) {
        let Explored { classes, redundant, blocked, learning, .. } = self.figures;
        self.figures = Explored { learning: learning + classes + redundant + blocked, ..Explored::default() };
        self.is_new = true;
        self.beginnings += 1;
        (self.open, self.dropped) = (0, 0);
        self.criterion.begin_again();
    }

    fn run(&mut self, plan: Plan, variant: Option<C::Variant>) -> Next {
        self.open += 1;
        let token = self.asked.issue(Asked::Explores { number: self.beginnings, variant });
        Next::Run(Schedule { traced: true, ..Schedule::new(token, C::NAME, plan) })
    }

    fn made(&mut self, variant: Option<C::Variant>, feedback: &Feedback) {
        let is_followed = !matches!(feedback.ended, End::Diverged { .. });
        let recording = feedback.recording.as_ref().filter(|_| is_followed);
        let history = recording.and_then(|recording| History::new(Arc::clone(&recording.trace)).ok());
        let Some(history) = history else {
            self.figures.blocked += 1;
            variant.into_iter().for_each(|variant| self.criterion.blocked(variant));
            return;
        };
        self.dropped += u64::from(matches!(feedback.ended, End::TimeLimit { .. } | End::MemoryLimit));
        self.races.extend(lockset::races(&history));
        let run = Arc::new(Recorded::new(Arc::new(history), self.knowledge.plan.clone()));
        match self.criterion.add(&run, variant) {
            true => self.figures.classes += 1,
            false => self.figures.redundant += 1,
        }
        self.keep(&run);
    }

    /// Counts the run among those in memory. If they are too many, the variants of the latest are given up.
    fn keep(&mut self, run: &Arc<Recorded>) {
        self.kept.push(Arc::downgrade(run));
        let length =
            |run: &Weak<Recorded>| run.upgrade().map_or(0, |run| run.history.trace().events.len() as u64);
        self.kept.retain(|run| length(run) > 0);
        while self.kept.iter().map(length).sum::<u64>() > self.max_events {
            let Some(last) = self.kept.pop() else { break };
            self.dropped += self.criterion.give_up(&last);
        }
    }
}

impl<C: Criterion> Strategy for Explorer<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn ask(&mut self) -> Next {
        if let Some(plan) = self.knowledge.learning_plan(self.asked.issued()) {
            let token = self.asked.issue(Asked::Learning);
            return Next::Run(Schedule::new(token, C::NAME, plan));
        }
        if self.asked.iter().any(|asked| matches!(asked, Asked::Learning)) {
            return Next::Wait;
        }
        if std::mem::take(&mut self.is_new) {
            return self.run(self.knowledge.plan.clone(), None);
        }
        match self.criterion.next() {
            Some((variant, run, schedule)) => {
                let turns = plan::turns(&run.history, &schedule);
                let plan = Plan { turns, policy: Policy::RunToBlock, ..run.plan.clone() };
                self.run(plan, Some(variant))
            }
            None if self.open > 0 => Next::Wait,
            None => Next::Exhausted,
        }
    }

    fn tell(&mut self, token: Token, feedback: &Feedback) {
        match self.asked.answer(token) {
            Some(Asked::Explores { number, variant }) if number == self.beginnings => {
                self.open -= 1;
                let bound = self.knowledge.plan.max_events;
                let has_learnt = self.knowledge.update(feedback);
                let has_grown = feedback.ended == End::EventBound && self.knowledge.plan.max_events > bound;
                if has_learnt || has_grown {
                    self.figures.learning += 1;
                    self.begin_again();
                } else {
                    self.made(variant, feedback);
                }
            }
            Some(_) => {
                self.figures.learning += 1;
                self.observe(feedback);
            }
            None => {}
        }
    }

    fn observe(&mut self, feedback: &Feedback) {
        if self.knowledge.update(feedback) {
            self.begin_again();
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn explored(&self) -> Option<Explored> {
        Some(self.figures)
    }
}
