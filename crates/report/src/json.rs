//! One JSON object a line, as `docs/json.md` describes. Fields are added, never renamed or removed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::{Serialize, Serializer};
use threadbare_hunt::need::Need;
use threadbare_hunt::replay::Replay;
use threadbare_hunt::suite::{SuiteSummary, TestReport, TestResult};
use threadbare_hunt::{
    DecidingRead, Event, FailureFigures, Finding, Guided, Obstacle, Passed, PredictionFigures, SourceLine,
    Summary, Timing, Unfinished,
};
use threadbare_search::reorder::Tier;
use threadbare_search::{AnomalyKind, Explored, Tuple, Variables};

use crate::{Reporter, write_now};

pub struct Json {
    out: Box<dyn Write + Send>,
}

impl Json {
    pub fn new(out: Box<dyn Write + Send>) -> Json {
        Json { out }
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(line).map_err(io::Error::from)?;
        write_now(&mut self.out, &(text + "\n"))
    }
}

impl Reporter for Json {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Found(finding) => self.line(&FindingLine::of(finding)),
            Event::Finished(summary) => self.line(&SummaryLine::of(summary)),
            Event::TestFinished(report) => {
                report.findings.iter().try_for_each(|finding| self.line(&FindingLine::of(finding)))?;
                self.line(&TestLine::of(report))
            }
            Event::SuiteFinished(summary) => self.line(&SuiteLine::of(summary)),
            Event::Replayed(replay) => self.line(&ReplayLine::of(replay)),
            Event::Guided(guided) => self.line(&GuidedLine::of(guided)),
            Event::Started { .. }
            | Event::Progress(_)
            | Event::ClipNotWritten { .. }
            | Event::SuiteStarted { .. }
            | Event::Diverged { .. }
            | Event::Output(_)
            | Event::Recorded { .. }
            | Event::Skipped { .. }
            | Event::RunningOnce { .. } => Ok(()),
        }
    }
}

/// What came of a sequence of locations.
#[derive(Serialize)]
struct GuidedLine<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    variant: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_tried: Option<&'a str>,
    passed: usize,
    waypoints: Vec<WaypointFields<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<ObstacleFields<'a>>,
    clip: Option<&'a Path>,
}

#[derive(Serialize)]
struct WaypointFields<'a> {
    text: &'a str,
    thread: Option<&'a str>,
}

impl<'a> GuidedLine<'a> {
    fn of(guided: &'a Guided) -> GuidedLine<'a> {
        let fields =
            |passed: &'a Passed| WaypointFields { text: &passed.text, thread: passed.thread.as_deref() };
        GuidedLine {
            r#type: "guided",
            name: &guided.name,
            verdict: guided.verdict.name(),
            variant: &guided.variant,
            not_tried: guided.not_tried.as_deref(),
            passed: guided.passed(),
            waypoints: guided.waypoints.iter().map(fields).collect(),
            left_out: &guided.left_out,
            obstacle: guided.obstacle.as_ref().map(ObstacleFields::of),
            clip: guided.clip.as_deref(),
        }
    }
}

/// A branch that kept a run from a location.
#[derive(Serialize)]
struct ObstacleFields<'a> {
    branch: String,
    reads: Vec<ReadFields<'a>>,
    may_depend_on_more: bool,
}

#[derive(Serialize)]
struct ReadFields<'a> {
    variable: &'a str,
    value: u64,
    thread: String,
    location: String,
}

impl<'a> ObstacleFields<'a> {
    fn of(obstacle: &'a Obstacle) -> ObstacleFields<'a> {
        let read = |read: &'a DecidingRead| ReadFields {
            variable: &read.variable,
            value: read.value,
            thread: read.thread.to_string(),
            location: read.location.to_string(),
        };
        ObstacleFields {
            branch: obstacle.branch.to_string(),
            reads: obstacle.reads.iter().map(read).collect(),
            may_depend_on_more: obstacle.may_depend_on_more,
        }
    }
}

#[derive(Serialize)]
struct FindingLine<'a> {
    r#type: &'static str,
    kind: &'static str,
    confirmed: bool,
    failure: &'a str,
    locations: Vec<Location<'a>>,
    variables: &'a [String],
    threads: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<NeedFields<'a>>,
    clip: Option<&'a Path>,
    run: u64,
    method: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    no_threads: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "tuple")]
    tuple: Option<Tuple>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a str>,
    #[serde(flatten)]
    timing: Option<TimingFields>,
    #[serde(flatten)]
    anomaly: Option<AnomalyFields<'a>>,
}

/// How often a failure was seen, and what that says.
#[derive(Serialize)]
struct TimingFields {
    timing: &'static str,
    failing: u64,
    schedules: u64,
    /// How a run without our scheduling ended, if there was one.
    plain: Option<String>,
}

impl TimingFields {
    fn of(timing: &Timing) -> TimingFields {
        TimingFields {
            timing: timing.dependence().name(),
            failing: timing.failing(),
            schedules: timing.schedules(),
            plain: timing.plain().map(|plain| plain.end().to_string()),
        }
    }
}

#[derive(Serialize)]
struct AnomalyFields<'a> {
    label: &'static str,
    pattern: &'a str,
    unit: Option<&'static str>,
    count: u64,
    harm: Option<&'static str>,
}

#[derive(Serialize)]
struct NeedFields<'a> {
    what: &'static str,
    seconds: f64,
    location: Option<Location<'a>>,
}

#[derive(Serialize)]
struct Location<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    function: &'a str,
}

impl<'a> FindingLine<'a> {
    fn of(finding: &'a Finding) -> FindingLine<'a> {
        let location = |line: &'a SourceLine| Location {
            file: &line.file,
            line: line.line,
            column: line.column,
            function: &line.function,
        };
        let need = |need: &'a Need| NeedFields {
            what: need.what.name(),
            seconds: need.span.nanoseconds() as f64 / 1e9,
            location: need.at.as_ref().map(location),
        };
        FindingLine {
            r#type: "finding",
            kind: finding.kind.name(),
            confirmed: finding.is_confirmed(),
            failure: &finding.failure,
            locations: finding.locations.iter().map(location).collect(),
            variables: &finding.variables,
            threads: &finding.threads,
            needs: finding.needs.iter().map(need).collect(),
            clip: finding.clip.as_deref(),
            run: finding.run,
            method: finding.method,
            no_threads: finding.has_no_threads(),
            tuple: finding.tuple,
            test: finding.test.as_deref(),
            timing: finding.timing.as_ref().map(TimingFields::of),
            anomaly: finding.anomaly.as_ref().map(|anomaly| AnomalyFields {
                label: anomaly.verdict.name(),
                pattern: &anomaly.pattern,
                unit: anomaly.tier.map(Tier::name),
                count: anomaly.count,
                harm: finding.harm.map(|harm| harm.name()),
            }),
        }
    }
}

/// As an array, with a word where all variables are meant.
fn tuple<S: Serializer>(tuple: &Option<Tuple>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Part {
        Number(u32),
        Word(&'static str),
    }
    let parts = tuple.map(|Tuple { c, v, t, l }| {
        let v = match v {
            Variables::Some(v) => Part::Number(v),
            Variables::All => Part::Word("all"),
        };
        [Part::Number(c), v, Part::Number(t), Part::Number(l)]
    });
    parts.serialize(serializer)
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    r#type: &'static str,
    runs: u64,
    events: u64,
    seconds: f64,
    findings: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unconfirmed: u64,
    methods: BTreeMap<&'static str, MethodFields>,
    exhausted: bool,
    #[serde(skip_serializing_if = "is_false")]
    no_threads: bool,
    sleeps_held: bool,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u64,
    stopped: StoppedFields,
    #[serde(skip_serializing_if = "is_zero")]
    became_another: u64,
    #[serde(skip_serializing_if = "is_zero")]
    beginnings: u64,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    failed_runs: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    normal_exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<UnfinishedFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plain: Option<String>,
    #[serde(flatten)]
    predictions: Option<PredictionFields>,
    #[serde(flatten)]
    explored: Option<ExploredFields>,
}

/// The classes of interleavings that were explored.
#[derive(Serialize)]
struct ExploredFields {
    classes: u64,
    redundant: u64,
    blocked: u64,
    learning: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
}

impl ExploredFields {
    fn of(explored: Explored) -> ExploredFields {
        let Explored { classes, redundant, blocked, learning, left } = explored;
        ExploredFields { classes, redundant, blocked, learning, left }
    }
}

/// A finding and how often it was seen in the end.
#[derive(Serialize)]
struct FailureFields<'a> {
    clip: Option<&'a Path>,
    #[serde(flatten)]
    timing: TimingFields,
}

impl<'a> FailureFields<'a> {
    fn of(figures: &'a FailureFigures) -> FailureFields<'a> {
        FailureFields { clip: figures.clip.as_deref(), timing: TimingFields::of(&figures.timing) }
    }
}

/// A run that did not end though others do.
#[derive(Serialize)]
struct UnfinishedFields<'a> {
    events: u64,
    clip: Option<&'a Path>,
}

impl<'a> UnfinishedFields<'a> {
    fn of(run: &'a Unfinished) -> UnfinishedFields<'a> {
        UnfinishedFields { events: run.events, clip: run.clip.as_deref() }
    }
}

#[derive(Serialize)]
struct MethodFields {
    runs: u64,
    findings: u64,
}

#[derive(Serialize)]
struct StoppedFields {
    max_events: u64,
    time_limit: u64,
    memory_limit: u64,
}

#[derive(Serialize)]
struct PredictionFields {
    predicted: u64,
    confirmed: u64,
    failed: u64,
    r#false: u64,
    infeasible: u64,
    kinds: BTreeMap<&'static str, KindFields>,
}

#[derive(Serialize)]
struct KindFields {
    predicted: u64,
    confirmed: u64,
    failed: u64,
}

fn is_false(is_so: &bool) -> bool {
    !is_so
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl<'a> SummaryLine<'a> {
    fn of(summary: &'a Summary) -> SummaryLine<'a> {
        let methods = summary.methods.iter();
        SummaryLine {
            r#type: "summary",
            runs: summary.runs,
            // Of predictions, the events that they were made from.
            events: summary.predictions.as_ref().map_or(summary.events, |figures| figures.events),
            seconds: summary.seconds,
            findings: summary.findings,
            unconfirmed: summary.unconfirmed,
            methods: methods
                .map(|(&name, figures)| {
                    (name, MethodFields { runs: figures.runs, findings: figures.findings })
                })
                .collect(),
            exhausted: summary.exhausted,
            no_threads: summary.has_no_threads(),
            sleeps_held: summary.sleeps_held,
            dropped: summary.dropped,
            stopped: StoppedFields {
                max_events: summary.stopped.max_events,
                time_limit: summary.stopped.time_limit,
                memory_limit: summary.stopped.memory_limit,
            },
            became_another: summary.became_another,
            beginnings: summary.beginnings,
            interrupted: summary.interrupted,
            failed_runs: summary.failed,
            failures: summary.failures.iter().map(FailureFields::of).collect(),
            normal_exit_code: summary.normal_exit_code,
            unfinished: summary.unfinished.as_ref().map(UnfinishedFields::of),
            plain: summary.plain.as_ref().map(|plain| plain.end().to_string()),
            predictions: summary.predictions.as_ref().map(PredictionFields::of),
            explored: summary.explored.map(ExploredFields::of),
        }
    }
}

impl PredictionFields {
    fn of(figures: &PredictionFigures) -> PredictionFields {
        let kind = |(kind, &[predicted, confirmed, failed]): (&AnomalyKind, &[u64; 3])| {
            (kind.name(), KindFields { predicted, confirmed, failed })
        };
        PredictionFields {
            predicted: figures.predicted,
            confirmed: figures.confirmed,
            failed: figures.failed,
            // Without a program nothing was tried, so nothing was found false.
            r#false: if figures.witnessed.is_some() { 0 } else { figures.not_so() },
            infeasible: figures.infeasible,
            kinds: figures.kinds.iter().map(kind).collect(),
        }
    }
}

#[derive(Serialize)]
struct TestLine<'a> {
    r#type: &'static str,
    program: &'a str,
    test: &'a str,
    result: &'static str,
    runs: u64,
    beginnings: u64,
    late: u64,
    unconfirmed: u64,
    unfinished: Option<UnfinishedFields<'a>>,
    plain: Option<String>,
    sleeps_held: bool,
    seconds: f64,
    problem: Option<&'a str>,
}

impl<'a> TestLine<'a> {
    fn of(report: &'a TestReport) -> TestLine<'a> {
        let summary = report.summary.as_ref();
        let (result, problem) = match &report.result {
            TestResult::Passed => ("passed", None),
            TestResult::PassedInPart => ("passed-in-part", None),
            TestResult::NoThreads => ("no-threads", None),
            TestResult::Failed => ("failed", None),
            TestResult::FailedAlone(problem) => ("failed", Some(problem.as_str())),
            TestResult::CouldNotRun(problem) => ("could-not-run", Some(problem.as_str())),
        };
        TestLine {
            r#type: "test",
            program: &report.program,
            test: &report.test,
            result,
            runs: report.runs(),
            beginnings: summary.map_or(0, |summary| summary.beginnings),
            late: summary.map_or(0, |summary| summary.stopped.time_limit),
            unconfirmed: summary.map_or(0, |summary| summary.unconfirmed),
            unfinished: summary.and_then(|summary| summary.unfinished.as_ref()).map(UnfinishedFields::of),
            plain: summary.and_then(|summary| summary.plain.as_ref()).map(|plain| plain.end().to_string()),
            sleeps_held: summary.is_some_and(|summary| summary.sleeps_held),
            seconds: report.seconds,
            problem,
        }
    }
}

#[derive(Serialize)]
struct SuiteLine {
    r#type: &'static str,
    tests: u64,
    passed: u64,
    passed_in_part: u64,
    no_threads: u64,
    failed: u64,
    could_not_run: u64,
    ignored: u64,
    runs: u64,
    findings: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
}

impl SuiteLine {
    fn of(summary: &SuiteSummary) -> SuiteLine {
        SuiteLine {
            r#type: "summary",
            tests: summary.tests,
            passed: summary.passed,
            passed_in_part: summary.passed_in_part,
            no_threads: summary.no_threads,
            failed: summary.failed,
            could_not_run: summary.could_not_run,
            ignored: summary.ignored,
            runs: summary.runs,
            findings: summary.findings,
            seconds: summary.seconds,
            interrupted: summary.interrupted,
        }
    }
}

#[derive(Serialize)]
struct ReplayLine {
    r#type: &'static str,
    clip: String,
    runs: u64,
    reproduced: u64,
    diverged_at: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
}

impl ReplayLine {
    fn of(replay: &Replay) -> ReplayLine {
        ReplayLine {
            r#type: "replay",
            clip: replay.clip.display().to_string(),
            runs: replay.runs,
            reproduced: replay.reproduced,
            diverged_at: replay.diverged_at,
            interrupted: replay.interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use threadbare_trace::FailureKind;

    /// Protects `docs/json.md`: the first row for `kind` lists the findings of every kind of failure, and no others.
    #[test]
    fn the_documented_kinds_are_those_of_the_table_of_failures() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
        let text = std::fs::read_to_string(path).expect("there is a docs/json.md");
        let row = text.lines().find(|line| line.starts_with("| `kind` |")).expect("a row for the kind");
        let words = row.split('`').skip(1).step_by(2);
        let documented: BTreeSet<&str> =
            words.filter(|word| *word != "kind" && !word.starts_with("--")).collect();
        let findings: BTreeSet<&str> = FailureKind::ALL.iter().map(|kind| kind.finding()).collect();
        assert_eq!(documented, findings);
    }
}
