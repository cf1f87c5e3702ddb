//! A run cut at its switches.

use std::collections::HashMap;
use std::ops::Range;

use threadbare_trace::{Event, EventKind, LockEffect, ObjectIndex, ObjectName, Outcome, ThreadIndex, Trace};

/// What one thread did between two switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub thread: ThreadIndex,
    /// The events, silent ones among them.
    pub events: Range<usize>,
    /// The thread could have gone on, but another was let run.
    pub interrupted: bool,
}

/// The stretches of the run, in order.
pub fn stretches(trace: &Trace) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (i, event) in trace.events.iter().enumerate().filter(|(_, event)| !event.kind.is_silent()) {
        match stretches.last_mut().filter(|last| last.thread == event.thread) {
            Some(last) => last.events.end = i + 1,
            None => stretches.push(Stretch { thread: event.thread, events: i..i + 1, interrupted: false }),
        }
    }
    mark_interrupted(trace, &mut stretches);
    stretches
}

/// An operation a thread stands before: its kind and object.
type Next = (EventKind, ObjectIndex);

fn mark_interrupted(trace: &Trace, stretches: &mut [Stretch]) {
    let next = next_operations(trace, stretches);
    let mut state = State::default();
    let all_but_last = stretches.len().saturating_sub(1);
    for (stretch, next) in stretches.iter_mut().zip(next).take(all_but_last) {
        let events = &trace.events[stretch.events.clone()];
        events.iter().for_each(|event| state.apply(event));
        let gave_way = events.last().is_some_and(|last| is_giving_way(last.kind));
        stretch.interrupted =
            !gave_way && next.is_some_and(|next| state.can_go_on(trace, stretch.thread, next));
    }
}

/// What the thread of each stretch stood before when the stretch ended; `None` when it had ended.
fn next_operations(trace: &Trace, stretches: &[Stretch]) -> Vec<Option<Next>> {
    let pending = trace.pending.iter().map(|pending| (pending.thread, (pending.kind, pending.object)));
    let mut ahead: HashMap<ThreadIndex, Next> = pending.collect();
    let mut next: Vec<Option<Next>> = Vec::with_capacity(stretches.len());
    for stretch in stretches.iter().rev() {
        let first = &trace.events[stretch.events.start];
        next.push(ahead.insert(stretch.thread, (first.kind, first.object)));
    }
    next.reverse();
    next
}

/// Operations by which a thread lets others run of its own accord.
fn is_giving_way(kind: EventKind) -> bool {
    matches!(kind, EventKind::Yield | EventKind::Sleep)
}

/// Who holds what at a point of the run, as far as it decides whether a thread can go on.
#[derive(Default)]
struct State {
    /// Object and thread, once for each time the thread took it.
    locked: Vec<(ObjectIndex, ThreadIndex)>,
    read_locked: Vec<(ObjectIndex, ThreadIndex)>,
    ended: Vec<ThreadIndex>,
}

impl State {
    fn apply(&mut self, event: &Event) {
        if event.outcome != Outcome::Done {
            return;
        }
        let entry = (event.object, event.thread);
        match event.kind.lock_effect() {
            Some(LockEffect::Acquires { shared }) => self.held(shared).push(entry),
            Some(LockEffect::Releases { shared }) => remove(self.held(shared), entry),
            None => {}
        }
        if event.kind == EventKind::End {
            self.ended.push(event.thread);
        }
    }

    fn held(&mut self, shared: bool) -> &mut Vec<(ObjectIndex, ThreadIndex)> {
        if shared { &mut self.read_locked } else { &mut self.locked }
    }

    fn can_go_on(&self, trace: &Trace, thread: ThreadIndex, (kind, object): Next) -> bool {
        let others = |held: &[(ObjectIndex, ThreadIndex)]| {
            held.iter().any(|&(what, who)| what == object && who != thread)
        };
        match kind {
            EventKind::Lock => !others(&self.locked) && !others(&self.read_locked),
            EventKind::ReadLock => !others(&self.locked),
            EventKind::Join => match trace.objects.get(object.index()).map(|object| &object.name) {
                Some(ObjectName::Thread(joined)) => self.ended.contains(joined),
                _ => false,
            },
            // A wait began before, or one may begin here: nothing in the trace says that it would not have.
            EventKind::Wake
            | EventKind::FutexResume
            | EventKind::BarrierLeave
            | EventKind::SemWait
            | EventKind::OnceEnter => false,
            // It lets others run of its own accord.
            EventKind::Yield | EventKind::Sleep => false,
            // It has nothing left to do that anybody could miss.
            EventKind::End | EventKind::Exit => false,
            EventKind::Read
            | EventKind::Write
            | EventKind::AtomicLoad
            | EventKind::AtomicStore
            | EventKind::AtomicRmw
            | EventKind::Fence
            | EventKind::Unlock
            | EventKind::ReadUnlock
            | EventKind::Wait
            | EventKind::NotifyOne
            | EventKind::NotifyAll
            | EventKind::Fork
            | EventKind::Begin
            | EventKind::Detach
            | EventKind::SemPost
            | EventKind::BarrierArrive
            | EventKind::OnceLeave
            | EventKind::FutexWait
            | EventKind::FutexWake
            | EventKind::Allocate
            | EventKind::Free
            | EventKind::Enter
            | EventKind::Leave
            | EventKind::Failure
            | EventKind::Cancel
            | EventKind::Io
            | EventKind::Signal
            | EventKind::Reach => true,
        }
    }
}

fn remove(held: &mut Vec<(ObjectIndex, ThreadIndex)>, entry: (ObjectIndex, ThreadIndex)) {
    if let Some(position) = held.iter().rposition(|&held| held == entry) {
        held.swap_remove(position);
    }
}
