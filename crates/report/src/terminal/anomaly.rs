//! What is said of predictions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use threadbare_predict::{History, Kind, Prediction, Tier, Verdict};
use threadbare_trace::{End, Trace};

use super::confirmation::Harm;
use crate::finding::{Place, fingerprint};
use crate::output::{self, say};
use crate::problem::Problem;
use crate::screen;

/// A predicted anomaly. Serialises to the `finding` line of `--json`.
#[derive(Serialize)]
pub struct Anomaly {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    kind: &'static str,
    confirmed: bool,
    /// How the run that showed it failed; empty if it did not.
    failure: String,
    locations: Vec<Place>,
    variables: Vec<String>,
    threads: Vec<String>,
    pub clip: Option<PathBuf>,
    /// Executions of the target up to and with the one that showed it; 0 without a program.
    run: u64,
    method: &'static str,
    /// What the trace alone says.
    label: &'static str,
    pattern: String,
    /// `critical-section` or `function`, where the anomaly is about units of work.
    unit: Option<&'static str>,
    count: u64,
    harm: Option<&'static str>,
    /// For a person, a line for each event.
    #[serde(skip)]
    events: Vec<String>,
    #[serde(skip)]
    identity: String,
}

impl Anomaly {
    pub fn new(history: &History<'_>, prediction: &Prediction) -> Anomaly {
        let trace = history.trace();
        let mut variables = Vec::new();
        let mut threads = Vec::new();
        let mut locations = Vec::new();
        let mut events = Vec::new();
        for &index in &prediction.events {
            let event = history.event(index);
            let variable = &trace.objects[event.object as usize].display;
            let thread = trace.threads[event.thread as usize].to_string();
            let location = &trace.locations[event.location as usize];
            let function = location.frames.first().map_or("", |frame| frame.function.as_str());
            let place = if function.is_empty() { String::new() } else { format!(" in {function}") };
            events.push(format!("thread {thread}: {} {variable} at {location}{place}", event.kind));
            locations.extend(location.frames.first().map(Place::of));
            push_new(&mut variables, variable.clone());
            push_new(&mut threads, thread);
        }
        Anomaly {
            kind_of_line: "finding",
            kind: prediction.kind.name(),
            confirmed: false,
            failure: String::new(),
            locations,
            variables,
            threads,
            clip: None,
            run: 0,
            method: "predict",
            label: prediction.verdict.name(),
            pattern: prediction.pattern.clone(),
            unit: prediction.tier.map(|tier| match tier {
                Tier::CriticalSection => "critical-section",
                Tier::Function => "function",
            }),
            count: prediction.count,
            harm: None,
            events,
            identity: prediction.identity(history),
        }
    }

    /// What makes it the same as one predicted from another run.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The name of its clip, which the same anomaly gets again.
    pub fn clip_name(&self, program: &str) -> String {
        format!("{program}-{}-{:08x}.clip", self.kind, fingerprint(&[&self.identity]))
    }

    /// It was seen in the run that left `trace`.
    pub fn confirm(&mut self, trace: &Trace, harm: Harm, run: u64) {
        self.confirmed = true;
        self.run = run;
        self.harm = Some(harm.name());
        if let End::Failed { .. } = trace.end {
            self.failure = screen::ending(trace);
        }
    }

    pub fn print(&self, json: bool) -> Result<(), Problem> {
        if json {
            return output::print_json(self);
        }
        let pattern = if self.pattern.is_empty() { String::new() } else { format!(" ({})", self.pattern) };
        let unit = if self.unit == Some("function") { ", units by function" } else { "" };
        let what = match (self.confirmed, self.harm) {
            (true, Some("failure")) => format!("confirmed: {}", self.failure),
            (true, Some("values")) => "confirmed: ends with values that no serial order gives".to_owned(),
            (true, _) => "confirmed, benign?".to_owned(),
            (false, _) => self.label.to_owned(),
        };
        say!("{}{pattern}{unit}: {what}", self.kind.replace('-', " "))?;
        for event in &self.events {
            say!("  {event}")?;
        }
        if self.count > 1 {
            say!("  and the same for {} other combinations of threads and variables", self.count - 1)?;
        }
        if let Some(clip) = &self.clip {
            say!("  replay it with: threadbare replay {}", clip.display())?;
        }
        say!("")
    }
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Predictions in figures. Serialises to the `summary` line of `--json`.
#[derive(Serialize)]
pub struct Summary {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    pub runs: u64,
    pub events: u64,
    seconds: f64,
    findings: u64,
    predicted: u64,
    pub confirmed: u64,
    /// Confirmed, and the run failed.
    failed: u64,
    /// Their schedules could not be followed, or did not show them.
    #[serde(rename = "false")]
    not_so: u64,
    /// Found false without a run, for there is no schedule.
    pub infeasible: u64,
    kinds: BTreeMap<&'static str, Counts>,
    #[serde(skip)]
    start: Instant,
}

/// The same by kind.
#[derive(Default, Serialize)]
struct Counts {
    predicted: u64,
    confirmed: u64,
    failed: u64,
}

impl Summary {
    pub fn new(start: Instant) -> Summary {
        Summary {
            kind_of_line: "summary",
            runs: 0,
            events: 0,
            seconds: 0.0,
            findings: 0,
            predicted: 0,
            confirmed: 0,
            failed: 0,
            not_so: 0,
            infeasible: 0,
            kinds: BTreeMap::new(),
            start,
        }
    }

    pub fn count_confirmed(&mut self, kind: Kind, harm: Harm) {
        let failed = u64::from(harm.is_failure());
        self.findings += 1;
        self.confirmed += 1;
        self.failed += failed;
        let counts = self.kinds.entry(kind.name()).or_default();
        counts.confirmed += 1;
        counts.failed += failed;
    }

    pub fn count_predicted(&mut self, kind: Kind) {
        self.predicted += 1;
        self.kinds.entry(kind.name()).or_default().predicted += 1;
    }

    pub fn print_confirmed(&mut self, json: bool) -> Result<(), Problem> {
        self.not_so = self.predicted - self.confirmed;
        self.seconds = self.start.elapsed().as_secs_f64();
        if json {
            return output::print_json(self);
        }
        say!(
            "{} predicted: {} confirmed, {} of them with a failure; {} false; in {} runs, {:.1} s",
            self.predicted,
            self.confirmed,
            self.failed,
            self.not_so,
            self.runs,
            self.seconds
        )
    }

    pub fn print_labelled(&mut self, predictions: &[Prediction], json: bool) -> Result<(), Problem> {
        self.seconds = self.start.elapsed().as_secs_f64();
        self.findings = predictions.len() as u64;
        for prediction in predictions {
            self.count_predicted(prediction.kind);
        }
        if json {
            return output::print_json(self);
        }
        let witnessed =
            predictions.iter().filter(|prediction| prediction.verdict == Verdict::Witnessed).count();
        say!(
            "{} predicted from {} events: {witnessed} witnessed, {} possible; {:.1} s",
            self.predicted,
            self.events,
            predictions.len() - witnessed,
            self.seconds
        )
    }
}
