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
//! source lines, which [`UserCode`] finds and `words` comments, `cell_writer` writes them out and `layout` puts them in
//! columns. `headline` explains the end. `paint` knows widths and colours.

mod cell_writer;
mod headline;
mod layout;
mod paint;
mod rows;
mod stretch;
#[cfg(test)]
mod tests;
pub(super) mod words;

use std::borrow::Cow;
use std::fmt;

use threadbare_trace::{Event, EventKind, Failure, FailureKind, Trace};

use threadbare_hunt::user_code::{SourceLines, UserCode};

/// Displays a run: a headline, an explanation of the end, and the interleaving.
pub struct View<'a> {
    pub trace: &'a Trace,
    pub source: &'a SourceLines<'a>,
    /// Columns of the terminal.
    pub width: usize,
    /// Use ANSI escapes.
    pub colour: bool,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = up_to_panic(self.trace);
        let code = UserCode::new(&trace, self.source);
        let headline = headline::lines(&code);
        let interleaving = layout::lines(&code, &rows::blocks(&code), self.width);
        headline.iter().chain(&interleaving).try_for_each(|line| line.write(f, self.colour))
    }
}

/// The trace up to the panic that ended the run. What unwinding does after that is left out.
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
