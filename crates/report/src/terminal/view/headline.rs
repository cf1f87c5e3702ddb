//! The headline: how the run ended, in words.

use std::collections::BTreeMap;

use threadbare_trace::{End, Failure, FailureKind, Pending, ThreadIndex, TracePlace};

use super::paint::{Style, Text};
use super::words;
use threadbare_hunt::need::{condition, needs};
use threadbare_hunt::user_code::{UserCode, UserLine, base_name};

/// The most lines that are shown for each thread of a livelock.
const MAX_LINES: usize = 6;

/// The headline and its explanation.
pub fn lines(code: &UserCode<'_>) -> Vec<Text> {
    let end = &code.trace.end;
    let style = if end.failure().is_some() { Style::Alarm } else { Style::Bold };
    let condition = condition(&needs(code)).filter(|_| end.failure().is_some());
    let headline = [code.trace.end_text()].into_iter().chain(condition).collect::<Vec<_>>().join(", ");
    let mut lines = vec![Text::new(style, &headline)];
    let plain = |line: String| Text::new(Style::Plain, &format!("  {line}"));
    match end {
        End::Failed(Failure { kind: FailureKind::Deadlock, .. }) => {
            let foreign = code.foreign_threads();
            let is_shown = |pending: &&Pending| pending.blocked && !foreign.contains(&pending.thread);
            let blocked = code.trace.pending.iter().filter(is_shown);
            lines.extend(blocked.map(|pending| plain(who_waits(code, pending))));
        }
        End::Failed(Failure { kind: FailureKind::Livelock, .. }) => lines.extend(loops(code)),
        End::Failed(Failure { at, .. }) | End::Unsupported { at, .. } => {
            lines.extend(failure_place(code, at).map(plain));
        }
        _ => {}
    }
    if end.failure().is_some() && code.trace.has_one_thread() {
        lines.push(plain("no threads were started: this does not depend on a schedule".into()));
    }
    lines
}

/// `in check_amounts at account_ring.c:76, thread 0`; nothing where the location is unknown.
fn failure_place(code: &UserCode<'_>, at: &TracePlace) -> Option<String> {
    let thread_name = code.thread(at.thread);
    if let Some(UserLine { frame, .. }) = code.of_failure(at) {
        let function = if frame.function.is_empty() { "" } else { &format!("in {} ", frame.function) };
        return Some(format!("{function}at {frame}, {thread_name}"));
    }
    let location = code.trace.locations.get(at.location.index())?;
    (!location.frames.is_empty()).then(|| format!("{location}, {thread_name}"))
}

/// `thread 0.1 waits to lock accounts[1].lock (account_ring_dl.c:48 in transfer), held by thread 0.2`.
fn who_waits(code: &UserCode<'_>, pending: &Pending) -> String {
    let place = code.find(pending.location, pending.stack).map(|UserLine { frame, .. }| {
        let function = if frame.function.is_empty() { "" } else { &format!(" in {}", frame.function) };
        format!(" ({frame}{function})")
    });
    let thread = code.thread(pending.thread);
    let waits = words::waiting(code, pending);
    format!("{thread} {waits}{}{}", place.unwrap_or_default(), words::holders(code, pending))
}

/// The lines that the threads of a livelock loop in.
fn loops(code: &UserCode<'_>) -> Vec<Text> {
    let events = &code.trace.events;
    let last_quarter = &events[events.len() - events.len() / 4..];
    let steps = last_quarter.iter().filter(|event| !event.kind.is_silent()).count();
    let mut seen: BTreeMap<ThreadIndex, Vec<UserLine<'_>>> = BTreeMap::new();
    for event in last_quarter {
        let Some(place) = code.of(event) else { continue };
        let lines = seen.entry(event.thread).or_default();
        if !lines.iter().any(|line| line.is_line_of(&place)) {
            lines.push(place);
        }
    }
    if seen.is_empty() {
        return Vec::new();
    }
    let opening = format!("  no thread got anywhere in the last {steps} steps:");
    let mut lines = vec![Text::new(Style::Plain, &opening)];
    for (thread, lines_of_thread) in seen {
        lines.extend(thread_loop(&code.thread(thread), lines_of_thread));
    }
    lines
}

fn thread_loop(thread: &str, mut lines: Vec<UserLine<'_>>) -> Vec<Text> {
    lines.sort_by_key(|place| (&place.frame.file, place.frame.line));
    let number = |place: &UserLine<'_>| format!("{}:{}", base_name(&place.frame.file), place.frame.line);
    let width = lines.iter().take(MAX_LINES).map(|place| number(place).chars().count()).max().unwrap_or(0);
    let mut shown = vec![Text::new(Style::Plain, &format!("  {thread} runs around in"))];
    shown.extend(lines.iter().take(MAX_LINES).map(|place| {
        let text = place.text.as_deref().unwrap_or_default();
        Text::new(Style::Dim, &format!("    {:width$}  ", number(place))).then(Style::Plain, text)
    }));
    if lines.len() > MAX_LINES {
        shown.push(Text::new(Style::Dim, &format!("    ⋮ {} more lines", lines.len() - MAX_LINES)));
    }
    shown
}
