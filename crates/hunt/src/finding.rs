//! Something that was seen to go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use threadbare_formats::Clip;
use threadbare_program::Sources;
use threadbare_search::{Anomaly, AnomalyKind, Harm, Tuple};
use threadbare_trace::hash::short_fingerprint;
use threadbare_trace::{FailureKind, Frame, ObjectIndex, ObjectName, Pending, ThreadIndex, Trace};

use crate::need::{Need, needs};
use crate::user_code::UserCode;
use crate::{Timing, atomic_write, clip};

/// A failure, or an anomaly, with everything that is said about it.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: FindingKind,
    /// How the run failed, in words; empty if it did not.
    pub failure: String,
    /// Where it failed; for an anomaly, where its events are.
    pub locations: Vec<SourceLine>,
    pub variables: Vec<String>,
    pub threads: Vec<String>,
    /// Sleeps that had to be outlasted, and waits that had to time out.
    pub needs: Vec<Need>,
    pub clip: Option<PathBuf>,
    /// Executions of the target up to and with the one that showed it; 0 without a program.
    pub run: u64,
    /// The strategy that its schedule came from.
    pub method: &'static str,
    /// Where its schedule stood in the ranking.
    pub tuple: Option<Tuple>,
    /// The test of a suite that it was found in.
    pub test: Option<String>,
    /// What was predicted, if it was.
    pub anomaly: Option<Anomaly>,
    /// What the anomaly did to the run that showed it.
    pub harm: Option<Harm>,
    /// How often it was seen up to now, and what that says; `None` for an anomaly.
    pub timing: Option<Timing>,
    /// The run that showed it; `None` for an anomaly that no run has shown.
    pub trace: Option<Arc<Trace>>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A run failed.
    Failure(FailureKind),
    /// Something was predicted. If a run has shown it, that run need not have failed.
    Anomaly(AnomalyKind),
}

impl FindingKind {
    /// The `kind` of the finding in `--json` output: `assertion`, `deadlock`, `data-race`, …
    pub const fn name(self) -> &'static str {
        match self {
            FindingKind::Failure(kind) => kind.finding(),
            FindingKind::Anomaly(kind) => kind.name(),
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A position in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

impl SourceLine {
    pub fn of(frame: &Frame) -> SourceLine {
        SourceLine {
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            function: frame.function.clone(),
        }
    }
}

impl Finding {
    /// The failure of this kind that `trace` ends in.
    pub(crate) fn failure(kind: FailureKind, trace: Arc<Trace>, run: u64, method: &'static str) -> Finding {
        Finding {
            kind: FindingKind::Failure(kind),
            failure: trace.end_text(),
            locations: failure_lines(&trace),
            variables: variables(&trace),
            threads: participants(&trace),
            needs: needs_of(&trace),
            clip: None,
            run,
            method,
            tuple: None,
            test: None,
            anomaly: None,
            harm: None,
            timing: None,
            trace: Some(trace),
        }
    }

    /// An anomaly that no run has shown yet.
    pub(crate) fn anomaly(anomaly: Anomaly, method: &'static str) -> Finding {
        let (mut variables, mut threads) = (Vec::new(), Vec::new());
        for participant in &anomaly.participants {
            push_new(&mut variables, participant.variable.clone());
            push_new(&mut threads, participant.thread.to_string());
        }
        let frames = anomaly.participants.iter().filter_map(|event| event.location.frames.first());
        Finding {
            kind: FindingKind::Anomaly(anomaly.kind),
            failure: String::new(),
            locations: frames.map(SourceLine::of).collect(),
            variables,
            threads,
            needs: Vec::new(),
            clip: None,
            run: 0,
            method,
            tuple: None,
            test: None,
            anomaly: Some(anomaly),
            harm: None,
            timing: None,
            trace: None,
        }
    }

    /// The anomaly was seen in the run that left `trace`.
    pub(crate) fn confirmed(self, trace: Arc<Trace>, harm: Harm, run: u64) -> Finding {
        let failed = trace.end.failure().is_some();
        let failure = if failed { trace.end_text() } else { String::new() };
        let needs = needs_of(&trace);
        Finding { failure, run, needs, harm: Some(harm), trace: Some(trace), ..self }
    }

    /// It happened in a program that started no thread: no other schedule would change it.
    pub fn has_no_threads(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.has_one_thread())
    }

    /// A run has shown it.
    pub fn is_confirmed(&self) -> bool {
        self.trace.is_some()
    }

    /// Writes the clip into `directory`, under a name that the same finding gets again.
    pub(crate) fn save(&mut self, clip: &Clip, program: &str, directory: &Path) -> io::Result<()> {
        let fingerprint = short_fingerprint(self.identity(clip).as_bytes());
        let path = clip::path(directory, program, self.kind.name(), fingerprint);
        atomic_write::write_into(&path, |out| write!(out, "{clip}"))?;
        self.clip = Some(path);
        Ok(())
    }

    /// The same for the same finding of another hunt.
    fn identity(&self, clip: &Clip) -> String {
        if let Some(anomaly) = &self.anomaly {
            return format!("{}\0", anomaly.identity);
        }
        let text = |line: &SourceLine| format!("{}:{}:{}", line.function, line.line, line.column);
        let lines: Vec<String> = self.locations.iter().map(text).collect();
        format!("{}\0{}\0", lines.join(","), clip.message)
    }
}

/// The user's lines where it failed, each once; of a data race, the lines of both sides.
fn failure_lines(trace: &Trace) -> Vec<SourceLine> {
    let source = Sources::default();
    let text = |file: &str, line: u32| source.line(file, line);
    let racing = trace.racing();
    if !racing.is_empty() {
        let code = UserCode::new(trace, &text);
        let line = |side: &Pending| Some(SourceLine::of(code.find(side.location, side.stack)?.frame));
        return racing.into_iter().filter_map(line).collect();
    }
    let lines: BTreeSet<SourceLine> =
        UserCode::new(trace, &text).failure_lines().into_iter().map(SourceLine::of).collect();
    lines.into_iter().collect()
}

/// What had to happen by time in the run.
fn needs_of(trace: &Trace) -> Vec<Need> {
    let source = Sources::default();
    let text = |file: &str, line: u32| source.line(file, line);
    needs(&UserCode::new(trace, &text))
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// The memory of a data race; of another failure, what threads had in common.
fn variables(trace: &Trace) -> Vec<String> {
    let racing = trace.racing();
    if racing.is_empty() {
        return contended(trace);
    }
    let mut variables = Vec::new();
    for side in racing {
        push_new(&mut variables, trace.object(side.object).to_string());
    }
    variables
}

/// Memory that more than one thread accessed, at least one of them writing.
fn contended(trace: &Trace) -> Vec<String> {
    let mut accesses: BTreeMap<ObjectIndex, (BTreeSet<ThreadIndex>, bool)> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.kind.is_access()) {
        let (threads, is_written) = accesses.entry(event.object).or_default();
        threads.insert(event.thread);
        *is_written |= event.kind.is_write();
    }
    let is_named = |object: &ObjectIndex| trace.object(*object).name != ObjectName::None;
    accesses
        .iter()
        .filter(|(object, (threads, is_written))| threads.len() > 1 && *is_written && is_named(object))
        .map(|(object, _)| trace.object(*object).display.clone())
        .collect()
}

/// The threads of a data race; of another failure, those that ran.
fn participants(trace: &Trace) -> Vec<String> {
    let racing = trace.racing();
    if !racing.is_empty() {
        return racing.into_iter().map(|side| trace.thread(side.thread).to_string()).collect();
    }
    let threads: BTreeSet<ThreadIndex> = trace.events.iter().map(|event| event.thread).collect();
    threads.into_iter().map(|thread| trace.thread(thread).to_string()).collect()
}
