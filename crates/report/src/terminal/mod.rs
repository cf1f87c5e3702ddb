//! Text for a person.

mod guided;
mod summary;
mod test_line;
mod timing;
mod view;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use console::Style;
use threadbare_hunt::clip::Divergence;
use threadbare_hunt::replay::Replay;
use threadbare_hunt::suite::{TestReport, TestResult};
use threadbare_hunt::{Event, Finding, Sources};
use threadbare_search::reorder::Tier;
use threadbare_search::{Anomaly, Harm, Participant};
use threadbare_trace::Trace;

use crate::{ReportConfig, Reporter, printable, write_now};
use test_line::TestLine;
use view::View;

pub struct Terminal {
    config: ReportConfig,
    out: Box<dyn Write + Send>,
    /// The lines of tests that did not pass. They are repeated at the end.
    not_passed: Vec<String>,
}

impl Terminal {
    pub fn new(config: ReportConfig, out: Box<dyn Write + Send>) -> Terminal {
        Terminal { config, out, not_passed: Vec::new() }
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        write_now(&mut self.out, &format!("{text}\n"))
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let text = match &finding.anomaly {
            Some(anomaly) => self.anomaly(finding, anomaly),
            None => self.failure(finding),
        };
        self.say(&text)
    }

    fn view(&self, trace: &Trace) -> String {
        plain_view(trace, &self.config)
    }

    fn failure(&self, finding: &Finding) -> String {
        let mut text = finding.trace.as_ref().map_or_else(String::new, |trace| self.view(trace) + "\n");
        let method = match finding.tuple {
            Some(tuple) => format!("{} at {tuple}", finding.method),
            None => finding.method.to_owned(),
        };
        text += &format!("found in run {} ({method})", finding.run);
        if let Some(words) = finding.timing.as_ref().and_then(timing::words) {
            text += &format!(", so far {words}");
        }
        if let Some(clip) = &finding.clip {
            text += &format!("\nreplay it with: {} {}\n", self.config.replay_command, clip.display());
        }
        text
    }

    /// The run, if it failed, and then the events of the anomaly.
    fn anomaly(&self, finding: &Finding, anomaly: &Anomaly) -> String {
        let mut text = match &finding.trace {
            Some(trace) if finding.harm == Some(Harm::Failure) => self.view(trace) + "\n",
            _ => String::new(),
        };
        let pattern =
            if anomaly.pattern.is_empty() { String::new() } else { format!(" ({})", anomaly.pattern) };
        let unit = if anomaly.tier == Some(Tier::Function) { ", units by function" } else { "" };
        let what = match finding.harm {
            Some(Harm::Failure) => format!("confirmed: {}", finding.failure),
            Some(Harm::Values) => "confirmed: ends with values that no serial order gives".to_owned(),
            Some(Harm::Unseen) => "confirmed, benign?".to_owned(),
            None => anomaly.verdict.to_string(),
        };
        text += &printable(&format!("{}{pattern}{unit}: {what}\n", anomaly.kind.text()));
        for event in &anomaly.participants {
            text += &printable(&format!("  {}\n", participant(event)));
        }
        if anomaly.count > 1 {
            let others = anomaly.count - 1;
            text += &format!("  and the same for {others} other combinations of threads and variables\n");
        }
        if let Some(clip) = &finding.clip {
            text += &format!("  replay it with: {} {}\n", self.config.replay_command, clip.display());
        }
        text
    }

    fn test(&mut self, report: &TestReport) -> io::Result<()> {
        let line = TestLine::of(report).to_string(self.config.colour);
        self.say(&line)?;
        let has_passed =
            matches!(report.result, TestResult::Passed | TestResult::PassedInPart | TestResult::NoThreads);
        if !has_passed {
            self.not_passed.push(line);
        }
        report.findings.iter().try_for_each(|finding| {
            self.say("")?;
            self.finding(finding)
        })
    }

    /// `    Starting …`, as cargo words it.
    fn heading(&mut self, verb: &str, style: Style, what: &str) -> io::Result<()> {
        let verb = style.bold().force_styling(self.config.colour).apply_to(format!("{verb:>12}"));
        self.say(&format!("{verb} {what}"))
    }

    fn diverged(&mut self, divergence: &Divergence, ended: &str, still_fails: bool) -> io::Result<()> {
        let mut text = format!("the clip no longer fits: the run diverges at event {}", divergence.event);
        text += &match &divergence.expected {
            Some(expected) => format!("\n  the clip has  {expected}"),
            None => "\n  the clip has  no more events".to_owned(),
        };
        text += &match &divergence.actual {
            Some(actual) => format!("\n  the run has   {actual}"),
            None => format!("\n  the run has   no more events: {ended}"),
        };
        if still_fails {
            text += "\n  the failure still happens";
        }
        self.say(&printable(&text))
    }

    fn replayed(&mut self, replay: &Replay) -> io::Result<()> {
        let mut text = String::new();
        if let (Some(trace), None) = (&replay.trace, replay.diverged_at) {
            text += &self.view(trace);
            text += "\n";
        }
        text += &format!("reproduced in {} of {} runs", replay.reproduced, replay.runs);
        if replay.interrupted {
            text += &format!("\n{}", summary::INTERRUPTED);
        }
        self.say(&text)
    }

    fn recorded(&mut self, file: &Path, trace: &Trace, stopped_at: Option<&str>) -> io::Result<()> {
        let (events, threads, end) = (trace.events.len(), trace.threads.len(), trace.end_text());
        let mut text = format!("{}: {events} events, {threads} threads, {end}", file.display());
        if let Some(location) = stopped_at {
            text += &format!("\nit was {location}");
        }
        self.say(&printable(&text))
    }
}

impl Reporter for Terminal {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Found(finding) => self.finding(finding),
            Event::Guided(guided) => {
                let text = guided::text(guided, self.config.replay_command);
                self.say(&printable(&text))
            }
            Event::Finished(summary) => {
                let text = summary::session(summary);
                self.say(&text)
            }
            Event::SuiteStarted { tests, programs } => {
                let what = summary::suite_start(*tests, *programs);
                self.heading("Starting", Style::new().green(), &what)
            }
            Event::TestFinished(report) => self.test(report),
            Event::SuiteFinished(figures) => {
                let style =
                    if self.not_passed.is_empty() { Style::new().green() } else { Style::new().red() };
                self.say("------------")?;
                self.heading("Summary", style, &summary::suite(figures))?;
                let lines = std::mem::take(&mut self.not_passed);
                lines.iter().try_for_each(|line| self.say(line))
            }
            Event::Diverged { divergence, ended, still_fails } => {
                self.diverged(divergence, ended, *still_fails)
            }
            Event::Replayed(replay) => self.replayed(replay),
            Event::Output(text) => write_now(&mut self.out, text),
            Event::Recorded { file, trace, stopped_at } => self.recorded(file, trace, *stopped_at),
            Event::Started { .. }
            | Event::Progress(_)
            | Event::ClipNotWritten { .. }
            | Event::Skipped { .. }
            | Event::RunningOnce { .. } => Ok(()),
        }
    }
}

/// A run as columns of source lines.
pub fn plain_view(trace: &Trace, config: &ReportConfig) -> String {
    let source = Sources::default();
    let text = |file: &str, line: u32| source.line(file, line);
    View { trace, source: &text, width: config.width, colour: config.colour }.to_string()
}

/// `thread 0.1: write counter at lost.c:9 in add`.
fn participant(event: &Participant) -> String {
    let Participant { thread, kind, variable, location } = event;
    let mut text = format!("thread {thread}: {kind} {variable} at {location}");
    if let Some(frame) = location.frames.first().filter(|frame| !frame.function.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(text, " in {}", frame.function);
    }
    text
}
