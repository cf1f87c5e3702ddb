//! What memory holds after some of a run's steps, and what an operation would do there.

use threadbare_trace::{Deed, Effect, EventKind, Touch, touches};

use crate::step::Step;

/// What the touched memory holds after the steps that `before` gives, which are some of `run`, in order. `None` if the run
/// does not tell.
pub fn after<'a>(touch: &Touch, before: impl Iterator<Item = &'a Step>, run: &'a [Step]) -> Option<u64> {
    let overlaps = |other: &Touch| Touch { effect: Effect::Changes, ..*touch }.conflicts(other);
    let is_same = |other: &Touch| (other.start, other.len) == (touch.start, touch.len);
    let changes = |(_, other): &(&Deed, Touch)| other.effect != Effect::Observes && overlaps(other);
    if let Some((deed, other)) = before.flat_map(with_deeds).filter(changes).last() {
        let tells_value = deed.kind != EventKind::Free && deed.size <= 8;
        return (tells_value && is_same(&other)).then_some(deed.value);
    }
    let first = |step: &'a Step| with_deeds(step).find(|(_, other)| overlaps(other)).map(|it| (step, it));
    let (step, (deed, other)) = run.iter().find_map(first)?;
    match other.effect {
        _ if !is_same(&other) => None,
        Effect::Observes => (deed.size <= 8).then_some(deed.value),
        _ => step.update.map(|update| update.found),
    }
}

/// What the step does, each with what it touches.
pub fn with_deeds(step: &Step) -> impl Iterator<Item = (&Deed, Touch)> {
    let deeds = step.deeds.iter().flat_map(|deed| touches(deed).map(move |_| deed));
    deeds.zip(step.touches.iter().copied())
}
