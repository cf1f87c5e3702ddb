//! What goes to the terminal: its size, its colours, and the source lines to show.

use std::cell::RefCell;
use std::collections::HashMap;

use threadbare_executor::Ended;
use threadbare_program::Program;
use threadbare_trace::{End, Frame, Trace};

use crate::view::{self, View};

/// Width where the output is not a terminal.
const PLAIN_WIDTH: usize = 120;

/// A run as columns of source lines, for standard output.
pub fn view(trace: &Trace) -> String {
    let source = Source::default();
    let lookup = |file: &str, line: u32| source.line(file, line);
    let terminal = console::Term::stdout();
    let width = match terminal.size_checked() {
        Some((_, columns)) if terminal.is_term() => usize::from(columns),
        _ => PLAIN_WIDTH,
    };
    View { trace, source: &lookup, width, colour: console::colors_enabled() }.to_string()
}

/// The user's own lines where the run failed: the failing one, or for a deadlock and a livelock where each thread
/// stands.
pub fn scenes(trace: &Trace) -> Vec<Frame> {
    let source = Source::default();
    view::scenes(trace, &|file, line| source.line(file, line))
}

/// How a run ended, in a few words.
pub fn ending(trace: &Trace) -> String {
    match &trace.end {
        End::Finished => "finished".into(),
        End::Failed { kind, message, .. } if message.is_empty() => kind.to_string(),
        End::Failed { kind, message, .. } => format!("{kind}: {message}"),
        End::EventBound => "stopped at the bound on events".into(),
        End::TimeLimit => "stopped at the time limit".into(),
        End::MemoryLimit => "stopped at the memory limit".into(),
        End::Diverged { reason, .. } => format!("diverged: {reason}"),
        End::Unsupported { message, .. } => format!("not supported: {message}"),
    }
}

/// Where a run was when its time was up, if it could still say so.
pub fn stopped_at(ended: &Ended, program: &Program) -> Option<String> {
    let &Ended::TimeLimit { thread, pc } = ended else { return None };
    let thread = match thread {
        0 => "the main thread".into(),
        number => format!("thread number {number} by creation"),
    };
    (pc != 0).then(|| format!("in {thread}, at {}", program.location(pc)))
}

/// Source files, read once.
#[derive(Default)]
struct Source(RefCell<HashMap<String, Vec<String>>>);

impl Source {
    /// The line (from 1) without surrounding blanks.
    fn line(&self, file: &str, line: u32) -> Option<String> {
        let mut files = self.0.borrow_mut();
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            let text = std::fs::read(file).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_owned()).collect()
        });
        lines.get((line as usize).checked_sub(1)?).cloned()
    }
}
