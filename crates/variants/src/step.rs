//! The steps of a run: what a thread did from one decision to the next, and what that touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use threadbare_search::{Condition, Feedback, OperationPatience, Record, Round, Update};
use threadbare_trace::{Deed, Effect, EventKind, FailureKind, Outcome, Space, ThreadIndex, Touch, touches};

use crate::content::with_deeds;

/// A thread was picked, did its operation, and went on to its next one.
#[derive(Clone, Debug)]
pub struct Step {
    pub thread: ThreadIndex,
    /// How the operation may have to wait.
    pub patience: OperationPatience,
    pub deeds: Arc<[Deed]>,
    /// What the step touches, with names for heap memory that do not depend on the order of allocations.
    pub touches: Arc<[Touch]>,
    /// The same by address.
    pub addresses: Arc<[Touch]>,
    /// The thread's state before it, or 0: see [`Rounds`](crate::rounds::Rounds).
    pub state: u64,
    /// What the operation found, if it may write to memory, and when it changes that.
    pub update: Option<Update>,
}

impl Step {
    /// The two steps cannot change places.
    pub fn conflicts(&self, other: &Step) -> bool {
        self.thread == other.thread || conflict(&self.touches, &other.touches)
    }

    fn touch_all(&mut self) {
        let with_all = |touches: &[Touch]| touches.iter().copied().chain([Touch::ALL]).collect();
        (self.touches, self.addresses) = (with_all(&self.touches), with_all(&self.addresses));
    }

    /// The step as it may turn out in another place: whether it changes what it finds there is what `changes` says.
    pub fn elsewhere(&self, changes: impl Fn(&Deed, &Touch) -> bool) -> Step {
        let turned_out = |((deed, touch), by_address): ((&Deed, Touch), &Touch)| {
            let effect = match (deed.kind.may_turn_out_otherwise(), touch.effect) {
                (false, effect) => effect,
                (true, Effect::Observes) if changes(deed, &touch) => Effect::Changes,
                // What has to wait is there when it is done.
                (true, _) if self.patience == OperationPatience::None && !changes(deed, &touch) => {
                    Effect::Observes
                }
                (true, effect) => effect,
            };
            (Touch { effect, ..touch }, Touch { effect, ..*by_address })
        };
        let all = with_deeds(self).zip(self.addresses.iter()).map(turned_out);
        let (touches, addresses): (Vec<Touch>, Vec<Touch>) = all.unzip();
        Step { touches: touches.into(), addresses: addresses.into(), ..self.clone() }
    }
}

/// Something of one cannot change places with something of the other.
pub fn conflict(some: &[Touch], others: &[Touch]) -> bool {
    some.iter().any(|touch| others.iter().any(|other| touch.conflicts(other)))
}

/// Gives heap blocks names, which are addresses too, but of no memory: a block is known by the thread that allocated it
/// and by how many that thread had allocated before. The names are the same in all runs.
#[derive(Debug, Default)]
pub struct Names {
    blocks: FxHashMap<(ThreadIndex, u32, u64), u64>,
    next: u64,
}

/// Names lie where no program has memory.
const FIRST_NAME: u64 = 1 << 63;

impl Names {
    fn of_block(&mut self, thread: ThreadIndex, ordinal: u32, size: u64) -> u64 {
        *self.blocks.entry((thread, ordinal, size)).or_insert_with(|| {
            let name = FIRST_NAME + self.next;
            self.next += size.next_multiple_of(64) + 64;
            name
        })
    }
}

/// The blocks of one run, by address.
#[derive(Default)]
struct Blocks {
    named: BTreeMap<u64, (u64, u64)>,
    allocations: FxHashMap<ThreadIndex, u32>,
}

impl Blocks {
    fn allocated(&mut self, names: &mut Names, thread: ThreadIndex, start: u64, size: u64) {
        let ordinal = self.allocations.entry(thread).or_default();
        *ordinal += 1;
        self.named.insert(start, (size, names.of_block(thread, *ordinal, size)));
    }

    fn name(&self, touch: Touch) -> Touch {
        let block = self.named.range(..=touch.start).next_back();
        match block {
            Some((&start, &(size, name)))
                if matches!(touch.space, Space::Memory | Space::Object)
                    && touch.start - start < size.max(1) =>
            {
                Touch { start: name + (touch.start - start), ..touch }
            }
            _ => touch,
        }
    }
}

fn deed(record: &Record) -> Option<Deed> {
    let (kind, outcome) = (record.event_kind()?, record.outcome()?);
    let (thread, size) = (record.thread_index(), record.size());
    Some(Deed { thread, kind, outcome, object: record.object, size, value: record.value })
}

/// What a run tells.
pub struct Taken {
    /// Its steps, without the rounds in vain that threads went on from.
    pub steps: Vec<Step>,
    /// The operations that threads stood before at its end.
    pub pending: Vec<Step>,
    /// What each thread did in each round in vain.
    pub rounds: Vec<Vec<Step>>,
    /// A thread went round in vain in turns of the plan, and could have gone on: the run is the beginning of others.
    pub is_abandoned: bool,
}

impl Taken {
    pub fn of(feedback: &Feedback, names: &mut Names) -> Taken {
        let mut blocks = Blocks::default();
        let all = steps(feedback, names, &mut blocks);
        let rounds = rounds(feedback, &all);
        let decisions = &feedback.decisions;
        let has_last = |thread: ThreadIndex| {
            decisions.iter().any(|decision| decision.picked == thread && decision.round == Round::Last)
        };
        let is_abandoned = decisions.iter().any(|decision| decision.round == Round::Abandoned);
        let kept = all.into_iter().zip(decisions);
        let kept = kept.filter(|(_, decision)| decision.round != Round::PassedOver);
        let mut steps: Vec<Step> = kept.map(|(step, _)| step).collect();
        if let Some(last) = steps.last_mut().filter(|_| is_cut_short(feedback)) {
            last.touch_all();
        }
        let mut pending = pending(feedback, &steps, &blocks);
        // Who has gone round in vain last stands before the same round.
        pending.retain(|step| !has_last(step.thread));
        Taken { steps, pending, rounds, is_abandoned }
    }
}

/// The last step has ended the program, so nothing that others would have done can come after it.
fn is_cut_short(feedback: &Feedback) -> bool {
    let kind = feedback.ended.failure_kind();
    kind.is_some_and(|kind| !matches!(kind, FailureKind::Deadlock | FailureKind::Livelock))
}

fn steps(feedback: &Feedback, names: &mut Names, blocks: &mut Blocks) -> Vec<Step> {
    let decisions = &feedback.decisions;
    let ends = decisions.iter().skip(1).map(|next| next.first_record).chain([feedback.records.len()]);
    let mut steps = Vec::with_capacity(decisions.len());
    for (decision, end) in decisions.iter().zip(ends) {
        let records = feedback.records.get(decision.first_record..end).unwrap_or_default();
        let deeds: Vec<Deed> = records.iter().filter_map(deed).collect();
        for deed in deeds.iter().filter(|deed| deed.kind == EventKind::Allocate) {
            blocks.allocated(names, deed.thread, deed.object, deed.size);
        }
        let addresses: Arc<[Touch]> = deeds.iter().flat_map(touches).collect();
        let touches = addresses.iter().map(|&touch| blocks.name(touch)).collect();
        let (thread, patience, state) = (decision.picked, decision.patience, decision.state);
        let update = decision.update;
        steps.push(Step { thread, patience, deeds: deeds.into(), touches, addresses, state, update });
    }
    steps
}

/// A thread that comes back to the state in which it began a round begins another one.
fn rounds(feedback: &Feedback, all: &[Step]) -> Vec<Vec<Step>> {
    let mut rounds: Vec<Vec<Step>> = Vec::new();
    let mut open: FxHashMap<ThreadIndex, usize> = FxHashMap::default();
    for (step, decision) in all.iter().zip(&feedback.decisions) {
        if decision.round == Round::None {
            open.remove(&step.thread);
            continue;
        }
        match open.get(&step.thread) {
            Some(&round) if rounds[round][0].state != step.state => rounds[round].push(step.clone()),
            _ => {
                open.insert(step.thread, rounds.len());
                rounds.push(vec![step.clone()]);
            }
        }
    }
    rounds
}

fn pending(feedback: &Feedback, steps: &[Step], blocks: &Blocks) -> Vec<Step> {
    let pending = feedback.pending.iter().filter_map(|pending| {
        let kind = pending.event_kind()?;
        // One woken thread is enough for a notification to matter.
        let value = 1;
        let (thread, size) = (pending.thread_index(), u64::from(pending.size));
        let condition = Condition::from_words(pending.condition);
        // What it would have found does not matter: it has not happened.
        let update = condition.map(|condition| Update { found: 0, condition });
        let deed = Deed { thread, kind, outcome: Outcome::Done, object: pending.object, size, value };
        let deeds: Vec<Deed> = std::iter::once(deed).chain(mutex_to_retake(&deed, steps)).collect();
        // What touches nothing is still not done after the end.
        let itself = Touch::thread(thread.number().into(), Effect::Observes);
        let mut addresses: Vec<Touch> = deeds.iter().flat_map(touches).collect();
        if addresses.is_empty() {
            addresses.push(itself);
        }
        let addresses: Arc<[Touch]> = addresses.into();
        let touches = addresses.iter().map(|&touch| blocks.name(touch)).collect();
        let patience = pending.operation_patience();
        Some(Step { thread, patience, deeds: deeds.into(), touches, addresses, state: 0, update })
    });
    pending.collect()
}

/// A thread that waits for a condition locks the mutex again when it wakes.
fn mutex_to_retake(pending: &Deed, steps: &[Step]) -> Option<Deed> {
    let own = steps.iter().rev().filter(|step| step.thread == pending.thread);
    let mut deeds = own.flat_map(|step| step.deeds.iter());
    let wait = deeds.find(|deed| deed.kind == EventKind::Wait && deed.object == pending.object)?;
    (pending.kind == EventKind::Wake).then_some(Deed {
        kind: EventKind::Lock,
        object: wait.value,
        ..*pending
    })
}
