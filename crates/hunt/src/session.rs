//! A session: ask, run, tell, until the budget is used up or nothing is left to try.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use threadbare_executor::{FailureKey, RunEnd, RunError, Worker};
use threadbare_search::{Anomaly, Conclusion, Evidence, Next, Schedule, Strategy};
use threadbare_trace::{End, FailureKind, Plan, Trace};

use crate::clip::clip;
use crate::confirmation::{Confirmed, confirm};
use crate::ending::{stopped_at, thread_name};
use crate::length::Length;
use crate::pace::Pace;
use crate::pool::{NotMade, Outcome, Pool, PoolConfig};
use crate::{Emit, Event, Finding, HuntConfig, HuntError, Progress, Subject, Summary};

/// Starts the program and hunts in it. The last event is the summary.
pub fn run(subject: &Subject, config: &HuntConfig, emit: &mut Emit<'_>) -> Result<Summary, HuntError> {
    emit(Event::Started { budget: config.budget }).map_err(HuntError::Report)?;
    let worker = Worker::start(&subject.target, &config.limits)?;
    let summary = Session::new(worker, subject, config, emit).run()?;
    emit(Event::Finished(&summary)).map_err(HuntError::Report)?;
    if summary.is_nothing_known() {
        return Err(summary.nothing_known(config));
    }
    Ok(summary)
}

/// One search of one program.
pub struct Session<'a> {
    subject: &'a Subject,
    config: &'a HuntConfig,
    emit: &'a mut Emit<'a>,
    strategy: Box<dyn Strategy>,
    pool: Pool,
    /// Looks closer at what the pool's workers find.
    worker: Worker,
    /// Failures that were reported.
    known: HashSet<FailureKey>,
    /// How often each failure was looked at and did not happen again.
    unconfirmed: HashMap<FailureKey, u32>,
    pace: Pace,
    summary: Summary,
}

/// While little is known, the strategy is told of each run before it is asked for the next.
const ONE_AT_A_TIME: u64 = 16;
/// After that, so many runs are made before the strategy is told.
const ROUND: u64 = 16;
/// A program is known to have no threads of its own after so many runs: one may have gone another way than most.
const ENOUGH_WITHOUT_THREADS: u64 = 3;
/// How often a failure is looked at that does not happen again.
const MAX_LOOKS: u32 = 5;

impl<'a> Session<'a> {
    pub fn new(
        worker: Worker,
        subject: &'a Subject,
        config: &'a HuntConfig,
        emit: &'a mut Emit<'_>,
    ) -> Session<'a> {
        let start = Instant::now();
        let deadline = config.budget.time.map(|time| start + time);
        let pool = PoolConfig { target: subject.target.clone(), limits: config.limits.clone(), deadline };
        Session {
            subject,
            config,
            emit,
            strategy: config.make_strategy(),
            pool: Pool::new(config.jobs, &pool),
            worker,
            known: HashSet::new(),
            unconfirmed: HashMap::new(),
            pace: Pace::new(config.budget, start),
            summary: Summary::new(start),
        }
    }

    /// Goes on to the end, and gives the figures.
    pub fn run(mut self) -> Result<Summary, HuntError> {
        while let Some((count, length)) = self.next_round() {
            let (first, begun) = (self.summary.runs, Instant::now());
            let round = self.ask(count, length);
            if round.is_empty() {
                let is_whole = self.strategy.dropped() == 0 && self.summary.beginnings == 0;
                self.summary.exhausted = is_whole && self.config.reports_failures();
                break;
            }
            for outcome in self.pool.run(first, round) {
                match outcome {
                    Ok(outcome) => self.handle_outcome(outcome, length)?,
                    Err(NotMade::Late | NotMade::Run(RunError::Cancelled)) => {}
                    Err(NotMade::Run(error)) => return Err(error.into()),
                    Err(NotMade::Start(error)) => return Err(error.into()),
                }
            }
            self.summary.dropped = self.strategy.dropped();
            self.pace.made(length, begun);
            self.summary.endless |= self.pace.is_endless(&self.summary);
            let progress = Progress { runs: self.summary.runs, findings: self.summary.findings };
            self.say(Event::Progress(progress))?;
        }
        self.summary.finish();
        Ok(self.summary)
    }

    fn say(&mut self, event: Event<'_>) -> Result<(), HuntError> {
        (self.emit)(event).map_err(HuntError::Report)
    }

    /// How many runs to make next, and how long they may be; `None` when the session is over.
    fn next_round(&self) -> Option<(u64, Length)> {
        let done = self.summary.runs;
        let left = self.config.budget.runs.map_or(u64::MAX, |runs| runs.saturating_sub(done));
        let has_no_threads =
            done >= ENOUGH_WITHOUT_THREADS && self.summary.threads <= self.config.harness_threads;
        let is_over = left == 0
            || self.pace.is_late()
            || self.is_satisfied()
            || has_no_threads
            || self.summary.is_hopeless()
            || self.config.limits.cancelled.load(Ordering::Relaxed);
        let length = self.pace.next_length(&self.summary);
        // Where there is hardly time for whole runs, no more than can be made at once.
        let is_rare = length == Length::Whole && self.pace.is_behind(&self.summary);
        let round = if is_rare { ROUND.min(self.config.jobs.into()) } else { ROUND };
        let count = if done < ONE_AT_A_TIME { 1 } else { round.min(left) };
        (!is_over).then_some((count, length))
    }

    fn is_satisfied(&self) -> bool {
        self.config.stop_at_first && self.summary.findings > 0
    }

    /// The next runs, `count` or fewer; none when there is nothing left to try.
    fn ask(&mut self, count: u64, length: Length) -> Vec<Schedule> {
        self.strategy.prefer_short(length.max_turns());
        let next = || match self.strategy.ask() {
            Next::Run(mut schedule) => {
                length.limit(&mut schedule.plan);
                Some(schedule)
            }
            Next::Wait | Next::Exhausted => None,
        };
        std::iter::from_fn(next).take(count as usize).collect()
    }

    /// Tells the strategy what came of a run, and looks at what went wrong.
    fn handle_outcome(&mut self, outcome: Outcome, length: Length) -> Result<(), HuntError> {
        self.summary.count(&outcome, length);
        self.strategy.tell(outcome.token, &outcome.feedback);
        let max_events = self.config.max_events;
        self.summary.bound_reached |=
            *outcome.ended() == End::EventBound && outcome.feedback.bound >= max_events;
        if let End::Unsupported { message, at } = outcome.ended() {
            let location = self.worker.program().location(at.pc).to_string();
            let thread = thread_name(&outcome.feedback.threads, at.thread);
            return Err(HuntError::Unsupported { message: message.clone(), thread, location });
        }
        if let Some(place) = stopped_at(outcome.ended(), &outcome.feedback.threads, self.worker.program()) {
            self.summary.stuck_at = Some(place);
        }
        // A program without threads has no anomalies that a failure could be the harm of.
        if self.config.reports_failures() || outcome.feedback.threads.len() == 1 {
            for (failure, failing) in &outcome.failures {
                self.handle_failure(failure, failing, &outcome)?;
            }
        }
        for conclusion in self.strategy.conclusions() {
            self.handle_conclusion(conclusion, outcome.method)?;
        }
        Ok(())
    }

    fn handle_failure(
        &mut self,
        failure: &FailureKey,
        failing: &Plan,
        outcome: &Outcome,
    ) -> Result<(), HuntError> {
        if self.is_satisfied() || !self.known.insert(failure.clone()) {
            return Ok(());
        }
        match confirm(&mut self.worker, failing, failure) {
            Ok(Some(Confirmed { plan, trace })) => {
                let finding =
                    Finding::failure(failure.kind, Arc::new(trace), outcome.number + 1, outcome.method);
                self.report(Finding { tuple: outcome.tuple, ..finding }, &plan)
            }
            // A race that the run had only on its way somewhere else is no loss.
            Ok(None) if failure.kind == FailureKind::DataRace => Ok(()),
            Ok(None) => {
                self.note_unconfirmed(failure, outcome.ended());
                Ok(())
            }
            Err(RunError::Cancelled) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What cannot be shown again is no finding: something outside may have been to blame. A run that fails so later is
    /// looked at again, a few times.
    fn note_unconfirmed(&mut self, failure: &FailureKey, ended: &RunEnd) {
        self.summary.unconfirmed += 1;
        let looks = self.unconfirmed.entry(failure.clone()).or_default();
        *looks += 1;
        if *looks < MAX_LOOKS {
            self.known.remove(failure);
        }
        if let Some(failure) = ended.failure() {
            let location = self.worker.program().location(failure.at.pc);
            self.summary.failed_once = Some(format!("{failure} at {location}"));
        }
    }

    fn handle_conclusion(&mut self, conclusion: Conclusion, method: &'static str) -> Result<(), HuntError> {
        match conclusion {
            Conclusion::Predicted { kind } => self.summary.predictions().predicted(kind),
            Conclusion::Analysed { events, infeasible } => {
                self.summary.predictions().analysed(events, infeasible);
            }
            Conclusion::NotAnalysed { reason } => return Err(HuntError::NotAnalysed(reason)),
            Conclusion::Confirmed { anomaly, evidence } => {
                return self.report_anomaly(*anomaly, *evidence, method);
            }
        }
        Ok(())
    }

    fn report_anomaly(
        &mut self,
        anomaly: Anomaly,
        evidence: Evidence,
        method: &'static str,
    ) -> Result<(), HuntError> {
        let Evidence { plan, trace, harm } = evidence;
        self.summary.predictions().confirmed(anomaly.kind, harm);
        let finding = Finding::anomaly(anomaly, method);
        self.report(finding.confirmed(trace, harm, self.summary.runs), &plan)
    }

    /// Writes the clip of a finding, and says it.
    fn report(&mut self, mut finding: Finding, plan: &Plan) -> Result<(), HuntError> {
        self.summary.found(finding.method);
        if let Some(trace) = finding.trace.clone()
            && let Err(error) = self.save(&mut finding, plan, &trace)
        {
            let directory = &self.config.out;
            self.say(Event::ClipNotWritten { directory, error: &error })?;
        }
        self.say(Event::Found(&finding))
    }

    fn save(&self, finding: &mut Finding, plan: &Plan, trace: &Trace) -> io::Result<()> {
        self.subject.save_input()?;
        let clip = clip(self.worker.program(), plan, trace, &self.subject.origin);
        finding.save(&clip, &self.subject.name, &self.config.out)
    }
}
