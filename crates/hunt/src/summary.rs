//! The hunt in figures.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use threadbare_executor::Ended;

use super::length::{BEGINNING, Length};
use super::pool::Outcome;
use crate::output::{self, say};
use crate::problem::Problem;

/// Counts as the hunt goes. Serialises to the `summary` line of `--json`.
#[derive(Serialize)]
pub struct Summary {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    pub runs: u64,
    pub events: u64,
    seconds: f64,
    pub findings: u64,
    /// Failures that did not happen again when the same schedule was forced: no findings.
    #[serde(skip_serializing_if = "is_none")]
    pub unconfirmed: u64,
    /// The last of them, in words.
    #[serde(skip)]
    pub failed_once: Option<String>,
    /// The most threads that a run had.
    #[serde(skip)]
    pub threads: u32,
    methods: BTreeMap<&'static str, Method>,
    /// Every schedule was tried that would have been.
    pub exhausted: bool,
    /// Schedules that a strategy gave up for want of memory.
    #[serde(skip_serializing_if = "is_none")]
    pub dropped: u64,
    stopped: Stopped,
    /// Runs that could not go as planned and were ended there.
    #[serde(skip)]
    astray: u64,
    /// Runs were stopped though they had all the events that the user allows.
    #[serde(skip)]
    pub bound_reached: bool,
    /// Runs of which only the beginning was run.
    #[serde(skip_serializing_if = "is_none")]
    pub beginnings: u64,
    /// No run is expected to come to its end.
    #[serde(skip)]
    pub endless: bool,
    /// Where the last run to be stopped at the time limit was, in words.
    #[serde(skip)]
    pub stuck_at: Option<String>,
    #[serde(skip)]
    start: Instant,
}

#[derive(Default, Serialize)]
struct Method {
    runs: u64,
    findings: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Runs that did not come to their own end.
#[derive(Default, Serialize)]
struct Stopped {
    max_events: u64,
    time_limit: u64,
    memory_limit: u64,
}

/// Runs that get nowhere before no other is made.
const HOPELESS: u64 = 6;

/// What keeps runs from coming to their end.
pub enum Obstacle {
    Events,
    Time,
    Memory,
}

impl Summary {
    pub fn new(start: Instant) -> Summary {
        Summary {
            kind_of_line: "summary",
            runs: 0,
            events: 0,
            seconds: 0.0,
            findings: 0,
            unconfirmed: 0,
            failed_once: None,
            threads: 0,
            methods: BTreeMap::new(),
            exhausted: false,
            dropped: 0,
            stopped: Stopped::default(),
            astray: 0,
            bound_reached: false,
            beginnings: 0,
            endless: false,
            stuck_at: None,
            start,
        }
    }

    pub fn count(&mut self, outcome: &Outcome, length: Length) {
        self.runs += 1;
        self.events += outcome.feedback.events;
        self.threads = self.threads.max(outcome.feedback.threads.len() as u32);
        self.methods.entry(outcome.method).or_default().runs += 1;
        match outcome.ended() {
            Ended::EventBound => {
                self.stopped.max_events += 1;
                self.beginnings += u64::from(length == Length::Beginning);
            }
            Ended::TimeLimit { .. } => self.stopped.time_limit += 1,
            Ended::MemoryLimit => self.stopped.memory_limit += 1,
            Ended::Diverged { .. } => self.astray += 1,
            _ => {}
        }
    }

    pub fn found(&mut self, method: &'static str) {
        self.findings += 1;
        self.methods.entry(method).or_default().findings += 1;
    }

    /// Runs that were stopped because they took too long.
    pub fn late(&self) -> u64 {
        self.stopped.time_limit
    }

    /// No run came to its own end.
    pub fn nothing_ended(&self) -> bool {
        let Stopped { max_events, time_limit, memory_limit } = self.stopped;
        self.runs > 0 && max_events + time_limit + memory_limit + self.astray == self.runs
    }

    /// Every run was stopped, and not because it is long.
    pub fn is_nothing_known(&self) -> bool {
        self.nothing_ended() && self.beginnings == 0 && !self.endless
    }

    /// Some run had all the events, or the time, that the user allows, and was stopped then.
    pub fn had_all(&self) -> bool {
        self.bound_reached || self.stopped.time_limit > 0
    }

    /// Nothing comes of going on.
    pub fn is_hopeless(&self) -> bool {
        let Stopped { time_limit, memory_limit, .. } = self.stopped;
        let stuck = if self.endless { time_limit + memory_limit } else { self.runs - self.astray };
        self.nothing_ended() && stuck >= HOPELESS
    }

    /// What stopped the runs of which none came to its end. The bound on events begins low: that it stopped some says
    /// little, if others were allowed more.
    pub fn obstacle(&self) -> Obstacle {
        match self.stopped {
            Stopped { memory_limit: 1.., .. } => Obstacle::Memory,
            Stopped { time_limit: 1.., .. } => Obstacle::Time,
            Stopped { .. } => Obstacle::Events,
        }
    }

    pub fn print(&mut self, json: bool) -> Result<(), Problem> {
        self.seconds = self.start.elapsed().as_secs_f64();
        if json {
            return output::print_json(self);
        }
        let found = match self.findings {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        say!("{found} in {} runs, {} events, {:.1} s", self.runs, self.events, self.seconds)?;
        if let Some(words) = &self.failed_once {
            let count = self.unconfirmed;
            let what = if count == 1 { "1 run" } else { &format!("{count} runs") };
            say!("{what} failed, but not when the same schedule was forced: {words}")?;
            say!("that depends on more than the schedule (time, files, other processes), and is no finding")?;
        }
        if self.exhausted {
            say!("every schedule of this search was tried")?;
        }
        if self.dropped > 0 {
            say!(
                "{} schedules were given up for want of memory; raise it with --search-memory",
                self.dropped
            )?;
        }
        let stopped = |count: u64, limit: &str, flag: &str| match count {
            0 => Ok(()),
            1 => say!("1 run was stopped at {limit}; raise it with {flag}"),
            _ => say!("{count} runs were stopped at {limit}; raise it with {flag}"),
        };
        if self.nothing_ended() && self.endless {
            say!(
                "no run came to its end; most were stopped after {BEGINNING} events, and what they do later is not known"
            )?;
        } else {
            match self.beginnings {
                0 => {}
                1 => say!("of 1 run only the beginning was run, about {BEGINNING} events")?,
                count => say!("of {count} runs only the beginning was run, about {BEGINNING} events")?,
            }
            if self.bound_reached {
                let whole = self.stopped.max_events - self.beginnings;
                stopped(whole, "the bound on events", "--max-events")?;
            }
        }
        stopped(self.stopped.time_limit, "the time limit", "--time-limit")?;
        if let Some(place) = &self.stuck_at {
            say!("the last of them was {place}")?;
        }
        stopped(self.stopped.memory_limit, "the memory limit", "--memory-limit")
    }
}
