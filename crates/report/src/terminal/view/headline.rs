//! How the run ended, in words.

use std::collections::BTreeMap;

use threadbare_trace::{End, Failure, FailureKind, Pending, ThreadIndex, Trace, TracePlace};

use super::paint::{Style, Text};
use super::words;
use threadbare_hunt::user_code::{UserCode, UserLine, base_name};

/// Lines named for each thread of a livelock.
const MAX_LINES: usize = 6;

/// The headline and what explains it.
pub fn lines(places: &UserCode<'_>) -> Vec<Text> {
    let end = &places.trace.end;
    let style = if end.failure().is_some() { Style::Alarm } else { Style::Bold };
    let mut lines = vec![Text::new(style, &title(places.trace))];
    let plain = |line: String| Text::new(Style::Plain, &format!("  {line}"));
    match end {
        End::Failed(Failure { kind: FailureKind::Deadlock, .. }) => {
            let foreign = places.foreign_threads();
            let is_shown = |pending: &&Pending| pending.blocked && !foreign.contains(&pending.thread);
            let blocked = places.trace.pending.iter().filter(is_shown);
            lines.extend(blocked.map(|pending| plain(who_waits(places, pending))));
        }
        End::Failed(Failure { kind: FailureKind::Livelock, .. }) => lines.extend(circles(places)),
        End::Failed(Failure { at, .. }) | End::Unsupported { at, .. } => {
            lines.extend(scene(places, at).map(plain));
        }
        _ => {}
    }
    lines
}

/// The end of a run, in one line.
pub fn title(trace: &Trace) -> String {
    let with = |what: String, message: &str| {
        if message.is_empty() { what } else { format!("{what}: {message}") }
    };
    match &trace.end {
        End::Finished => "finished without a failure".into(),
        End::Failed(_) => trace.end_text(),
        End::EventBound => {
            let events = trace.events.len();
            format!("stopped at the limit on events ({events}), but was getting somewhere")
        }
        End::TimeLimit { .. } => "stopped at the time limit, while a thread ran without synchronising".into(),
        End::MemoryLimit => "stopped because it used too much memory".into(),
        End::Diverged { step, reason } => with(format!("the run left its schedule at step {step}"), reason),
        End::Unsupported { message, .. } => with("not supported".into(), message),
    }
}

/// `in check_amounts at account_ring.c:76, thread 0`; nothing where the location is unknown.
fn scene(places: &UserCode<'_>, at: &TracePlace) -> Option<String> {
    let thread_name = places.thread(at.thread);
    if let Some(UserLine { frame, .. }) = places.of_failure(at) {
        let function = if frame.function.is_empty() { "" } else { &format!("in {} ", frame.function) };
        return Some(format!("{function}at {frame}, {thread_name}"));
    }
    let location = places.trace.locations.get(at.location.index())?;
    (!location.frames.is_empty()).then(|| format!("{location}, {thread_name}"))
}

/// `thread 0.1 waits to lock accounts[1].lock (account_ring_dl.c:48 in transfer), held by thread 0.2`.
fn who_waits(places: &UserCode<'_>, pending: &Pending) -> String {
    let place = places.find(pending.location, pending.stack).map(|UserLine { frame, .. }| {
        let function = if frame.function.is_empty() { "" } else { &format!(" in {}", frame.function) };
        format!(" ({frame}{function})")
    });
    let thread = places.thread(pending.thread);
    let waits = words::waiting(places, pending);
    format!("{thread} {waits}{}{}", place.unwrap_or_default(), words::holders(places, pending))
}

/// The lines that the threads of a livelock run around in.
fn circles(places: &UserCode<'_>) -> Vec<Text> {
    let events = &places.trace.events;
    let last_quarter = &events[events.len() - events.len() / 4..];
    let steps = last_quarter.iter().filter(|event| !event.kind.is_silent()).count();
    let mut seen: BTreeMap<ThreadIndex, Vec<UserLine<'_>>> = BTreeMap::new();
    for event in last_quarter {
        let Some(place) = places.of(event) else { continue };
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
    for (thread, places_of_thread) in seen {
        lines.extend(circle(&places.thread(thread), places_of_thread));
    }
    lines
}

fn circle(thread: &str, mut lines: Vec<UserLine<'_>>) -> Vec<Text> {
    lines.sort_by_key(|place| (&place.frame.file, place.frame.line));
    let number = |place: &UserLine<'_>| format!("{}:{}", base_name(&place.frame.file), place.frame.line);
    let width = lines.iter().take(MAX_LINES).map(|place| number(place).chars().count()).max().unwrap_or(0);
    let mut circle = vec![Text::new(Style::Plain, &format!("  {thread} runs around in"))];
    circle.extend(lines.iter().take(MAX_LINES).map(|place| {
        let text = place.text.as_deref().unwrap_or_default();
        Text::new(Style::Dim, &format!("    {:width$}  ", number(place))).then(Style::Plain, text)
    }));
    if lines.len() > MAX_LINES {
        circle.push(Text::new(Style::Dim, &format!("    ⋮ {} more lines", lines.len() - MAX_LINES)));
    }
    circle
}
