//! The summary that ends a session or a suite.

use threadbare_hunt::suite::SuiteSummary;
use threadbare_hunt::{BEGINNING, GUIDE, PredictionFigures, REACHABILITY, Stopped, Summary, Unfinished};

use threadbare_search::Explored;

use super::timing;

/// What a session did, found and left out.
pub fn session(summary: &Summary) -> String {
    let text = match &summary.predictions {
        Some(figures) => predictions(summary, figures),
        None => search(summary),
    };
    if summary.interrupted { format!("{text}\n{INTERRUPTED}") } else { text }
}

/// Said after what was done up to then.
pub const INTERRUPTED: &str = "interrupted before the end";

fn predictions(summary: &Summary, figures: &PredictionFigures) -> String {
    let PredictionFigures { predicted, confirmed, failed, .. } = *figures;
    let seconds = summary.seconds;
    match figures.witnessed {
        Some(witnessed) => format!(
            "{predicted} predicted from {} events: {witnessed} witnessed, {} possible; {seconds:.1} s",
            figures.events,
            predicted - witnessed,
        ),
        None => format!(
            "{predicted} predicted: {confirmed} confirmed, {failed} of them with a failure; {} false; in {} runs, \
             {seconds:.1} s",
            figures.not_so(),
            summary.runs,
        ),
    }
}

fn search(summary: &Summary) -> String {
    let found = match summary.findings {
        0 => "nothing found".to_owned(),
        count => counted(count, "finding"),
    };
    let mut lines = vec![format!(
        "{found} in {} runs, {} events, {:.1} s",
        summary.runs, summary.events, summary.seconds
    )];
    for figures in &summary.failures {
        lines.extend(timing::words(&figures.timing).map(|words| format!("{}: {words}", figures.what)));
    }
    if let Some(code) = summary.normal_exit_code {
        lines.push(format!(
            "exit code {code} in every schedule, and without Threadbare's scheduling too: taken as normal, no finding"
        ));
    } else if summary.runs > 1 && summary.failed == summary.runs {
        lines.push("every run failed".into());
    }
    if let Some(words) = &summary.failed_once {
        let runs = counted(summary.unconfirmed, "run");
        lines.push(format!("{runs} failed, but not when the same schedule was forced: {words}"));
        let causes = causes(summary);
        lines.push(format!(
            "no finding: it takes more than the schedule ({causes}), or we do not repeat it well"
        ));
    }
    if let Some(program) = &summary.became {
        let runs = counted(summary.became_another, "run");
        lines.push(format!("{runs} became another program ({program}); what that does is not known"));
    }
    if summary.has_no_threads() {
        lines.push("no threads were started: nothing to schedule".into());
    } else if summary.exhausted {
        let Stopped { max_events, time_limit, memory_limit } = summary.stopped;
        let parts = [
            (max_events + time_limit + memory_limit > 0, ", but not every run to its end"),
            (summary.sleeps_held, ", sleeps not outlasted"),
        ];
        let but: String = parts.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| *words).collect();
        lines.push(match summary.explored {
            Some(Explored { classes: 1, .. }) if summary.methods.contains_key(REACHABILITY) => {
                format!("the only interleaving was tried{but}")
            }
            Some(Explored { classes, .. }) if summary.methods.contains_key(REACHABILITY) => {
                format!("all {} were tried{but}", counted(classes, "interleaving"))
            }
            _ => format!("every schedule of this search was tried{but}"),
        });
    }
    lines.extend(summary.explored.map(explored));
    if summary.dropped > 0 {
        let dropped = summary.dropped;
        lines.push(if summary.methods.contains_key(GUIDE) {
            format!("{dropped} states to go back to were given up; --max-backtrack allows for more")
        } else {
            format!("{dropped} schedules were given up for want of memory; raise it with --search-memory")
        });
    }
    lines.extend(left_out(summary));
    lines.join("\n")
}

/// The figures of an exploration.
fn explored(explored: Explored) -> String {
    let Explored { classes, redundant, blocked, learning, left } = explored;
    let left = left.map_or_else(String::new, |left| format!(" of about {}", classes + left));
    format!(
        "{classes}{left} {} of interleavings, {redundant} redundant, {blocked} blocked; {} only learnt",
        if classes == 1 && left.is_empty() { "class" } else { "classes" },
        counted(learning, "run"),
    )
}

/// What may have made a run fail that its schedule alone did not.
fn causes(summary: &Summary) -> String {
    match summary.influences.iter().map(|influence| influence.text()).collect::<Vec<_>>().as_slice() {
        [] => "`rdrand`, memory that code without instrumentation shares, the machine".into(),
        [one] => format!("the program {one}"),
        [first @ .., last] => format!("the program {} and {last}", first.join(", ")),
    }
}

/// The lines about runs that were cut short.
fn left_out(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.nothing_ended() && summary.endless {
        lines.push(format!(
            "no run came to its end; most were stopped after {BEGINNING} events, and what they do later is not known"
        ));
        lines.extend(summary.plain.as_ref().map(timing::endless));
    } else {
        if summary.beginnings > 0 {
            let runs = counted(summary.beginnings, "run");
            lines.push(format!("of {runs} only the beginning was run, about {BEGINNING} events"));
        }
        if summary.bound_reached {
            let whole = summary.stopped.max_events - summary.beginnings;
            lines.extend(stopped(whole, "the bound on events", "--max-events"));
        }
    }
    lines.extend(stopped(summary.stopped.time_limit, "the time limit", "--time-limit"));
    lines.extend(summary.stuck_at.as_ref().map(|place| format!("the last of them was {place}")));
    lines.extend(stopped(summary.stopped.memory_limit, "the memory limit", "--memory-limit"));
    lines.extend(summary.unfinished.as_ref().map(unfinished));
    lines
}

/// `3 runs were stopped at the time limit; raise it with --time-limit`; nothing if there were none.
fn stopped(count: u64, limit: &str, flag: &str) -> Option<String> {
    let were = if count == 1 { "was" } else { "were" };
    (count > 0).then(|| format!("{} {were} stopped at {limit}; raise it with {flag}", counted(count, "run")))
}

/// A run that did not end though others do.
pub fn unfinished(run: &Unfinished) -> String {
    let clip = run.clip.as_ref().map_or_else(String::new, |clip| format!(", see {}", clip.display()));
    format!("a run did not end within {} events, though others end: it may hang{clip}", run.events)
}

/// `3 runs`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `12 tests across 3 binaries`.
pub fn suite_start(tests: usize, programs: usize) -> String {
    let binaries = if programs == 1 { "1 binary".to_owned() } else { format!("{programs} binaries") };
    format!("{} across {binaries}", counted(tests as u64, "test"))
}

/// `[   1.234s] 12 tests run: 11 passed (3 without threads), 1 failed, 0 skipped; 1800 runs`.
pub fn suite(summary: &SuiteSummary) -> String {
    let SuiteSummary { passed, passed_in_part, no_threads, failed, could_not_run, ignored, runs, .. } =
        *summary;
    let tests = counted(summary.tests, "test");
    let mut text = format!("[{:8.3}s] {tests} run: {passed} passed", summary.seconds);
    if no_threads > 0 {
        text += &format!(" ({no_threads} without threads)");
    }
    if passed_in_part > 0 {
        text += &format!(" ({passed_in_part} in part)");
    }
    text += &format!(", {failed} failed");
    if could_not_run > 0 {
        text += &format!(", {could_not_run} could not be run");
    }
    text += &format!(", {ignored} skipped; {runs} runs");
    if summary.interrupted { text + "; " + INTERRUPTED } else { text }
}
