//! A run as a person sees it: how it ended, and what each thread did, side by side, in source lines.
//!
//! ```text
//! assertion failed: counter == 2
//!   in main at lost.c:20, thread 0
//!
//! what happened, in lost.c:
//!
//! thread 0                      │ thread 0.1               │ thread 0.2
//! main                          │ add                      │ add
//! ──────────────────────────────┼──────────────────────────┼─────────────────────────
//!                               │  8 int seen = counter;   │
//!                               │      reads counter: 0    │
//!                               │    ⋯ interrupted         │
//!                               │                          │  8 int seen = counter;
//! ```
//!
//! Time runs downwards. `stretch` cuts the run at its switches, `rows` turns the events of each stretch into
//! source lines, which `place` finds and `words` comments, `setting` writes them out and `layout` puts them in
//! columns. `headline` explains the end. `paint` knows widths and colours.

mod headline;
mod layout;
mod paint;
mod place;
mod rows;
mod setting;
mod stretch;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::fmt;

use threadbare_trace::{Event, EventKind, Failure, FailureKind, Frame, Trace};

use place::Places;

/// Displays a run: a headline, an explanation of the end, and the interleaving.
pub struct View<'a> {
    pub trace: &'a Trace,
    /// The text of a line of a file, without surrounding blanks; `None` when it cannot be read.
    pub source: &'a dyn Fn(&str, u32) -> Option<String>,
    /// Columns of the terminal.
    pub width: usize,
    /// Use ANSI escapes.
    pub colour: bool,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = up_to_panic(self.trace);
        let places = Places::new(&trace, self.source);
        let headline = headline::lines(&places);
        let interleaving = layout::lines(&places, &rows::blocks(&places), self.width);
        headline.iter().chain(&interleaving).try_for_each(|line| line.write(f, self.colour))
    }
}

/// The user's own lines where a run failed: the failing one, or where each thread stands.
pub fn scenes(trace: &Trace, source: &dyn Fn(&str, u32) -> Option<String>) -> Vec<Frame> {
    let places = Places::new(trace, source);
    let Some(Failure { at, .. }) = trace.end.failure() else { return Vec::new() };
    let scene = headline::place_of_failure(&places, at).map(|place| place.frame.clone());
    if !at.location.is_none() && scene.is_some() {
        return scene.into_iter().collect();
    }
    let foreign = places.foreign_threads();
    let stands = trace.pending.iter().filter(|pending| !foreign.contains(&pending.thread));
    stands.filter_map(|pending| Some(places.find(pending.location, pending.stack)?.frame.clone())).collect()
}

/// A panic has a long way from where it happens to the end of the process: what it passes is left out.
fn up_to_panic(trace: &Trace) -> Cow<'_, Trace> {
    let Some(Failure { kind: FailureKind::Panic, at, .. }) = trace.end.failure() else {
        return Cow::Borrowed(trace);
    };
    let panic = (EventKind::Failure, at.thread, at.location);
    let is_it = |event: &Event| (event.kind, event.thread, event.location) == panic;
    match trace.events.iter().rposition(is_it) {
        Some(position) => {
            let events = trace.events[..=position].to_vec();
            Cow::Owned(Trace { events, ..trace.clone() })
        }
        None => Cow::Borrowed(trace),
    }
}
