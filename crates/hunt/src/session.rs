//! A session: ask, run, tell, until the budget is used up or nothing is left to try.

mod aside;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use threadbare_executor::{FailureKey, Limits, PlainRun, RunEnd, RunError, StartError, Worker};
use threadbare_search::{Anomaly, Conclusion, Evidence, Next, Schedule, Strategy};
use threadbare_trace::{End, FailureKind, Plan, Trace};

use self::aside::Aside;
use crate::clip::clip;
use crate::confirmation::Confirmed;
use crate::ending::{stopped_at, thread_name};
use crate::guided::Course;
use crate::length::{BEGINNING, Length};
use crate::pace::Pace;
use crate::pool::{NotMade, Outcome, Pool, PoolConfig};
use crate::timing::Tally;
use crate::unfinished::{self, Continued, Watch};
use crate::{Dependence, Emit, Event, FailureFigures, Finding, HuntConfig, HuntError, Subject, Summary};

/// Starts the program and hunts in it. The last event is the summary.
pub fn run(subject: &Subject, config: &HuntConfig, emit: &mut Emit<'_>) -> Result<Summary, HuntError> {
    emit(Event::Started { budget: config.budget }).map_err(HuntError::Report)?;
    let worker = Worker::start(&subject.target, &config.limits)?;
    let summary = Session::new(worker, subject, config, emit).run()?;
    emit(Event::Finished(&summary)).map_err(HuntError::Report)?;
    if summary.is_nothing_known() && !summary.interrupted {
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
    /// Failures that were looked at.
    known: HashSet<FailureKey>,
    /// Failures that were reported, in the order of the summary.
    reported: Vec<FailureKey>,
    /// How often each failure was looked at and did not happen again.
    unconfirmed: HashMap<FailureKey, u32>,
    pace: Pace,
    tally: Tally,
    /// Confirmed failures of which it is not known yet whether they depend on timing, and those that need a sleep to be
    /// outlasted or a wait to time out: they come after all others.
    held: Vec<Held>,
    watch: Watch,
    /// `None` if the search is not guided.
    course: Option<Course<'a>>,
    /// Failures of a guided search that have nothing to do with its sequence: they can wait.
    aside: Vec<Aside>,
    summary: Summary,
}

/// A failure that is confirmed and not reported yet.
struct Held {
    key: FailureKey,
    finding: Finding,
    plan: Plan,
}

/// While little is known, the strategy is told of each run before it is asked for the next.
const ONE_AT_A_TIME: u64 = 16;
/// After that, so many runs are made before the strategy is told.
const ROUND: u64 = 16;
/// A program is known to have no threads of its own after so many runs: one may have gone another way than most.
const ENOUGH_WITHOUT_THREADS: u64 = 3;
/// How often a failure is looked at that does not happen again.
const MAX_LOOKS: u32 = 5;
/// The longest that a run without our scheduling may take.
const PLAIN_TIME: Duration = Duration::from_secs(5);
/// A session that wants one finding goes on for so many runs after one that needs something to happen by time.
const RUNS_FOR_A_BETTER_ONE: u64 = 100;

impl<'a> Session<'a> {
    pub fn new(
        worker: Worker,
        subject: &'a Subject,
        config: &'a HuntConfig,
        emit: &'a mut Emit<'_>,
    ) -> Session<'a> {
        let start = Instant::now();
        // The last runs of a hunt have no more time than the hunt.
        let deadline = config.budget.time.map(|time| start + time);
        let limits = Limits { deadline, ..config.limits.clone() };
        let mut worker = worker;
        worker.set_limits(limits.clone());
        let pool = PoolConfig { target: subject.target.clone(), limits };
        Session {
            subject,
            config,
            emit,
            strategy: config.make_strategy(worker.shared_program()),
            pool: Pool::new(config.jobs, &pool),
            worker,
            known: HashSet::new(),
            reported: Vec::new(),
            unconfirmed: HashMap::new(),
            pace: Pace::new(config.budget, start),
            tally: Tally::default(),
            held: Vec::new(),
            watch: Watch::default(),
            course: config.guide().map(Course::new),
            aside: Vec::new(),
            summary: Summary::new(start),
        }
    }

    /// Goes on to the end, and gives the figures. What was found is said also if something went wrong later.
    pub fn run(mut self) -> Result<Summary, HuntError> {
        let searched = self.search();
        self.finish()?;
        searched.map(|()| self.summary)
    }

    fn search(&mut self) -> Result<(), HuntError> {
        self.probe();
        while let Some((count, length)) = self.next_round() {
            let (first, begun) = (self.summary.runs, Instant::now());
            let round = self.ask(count, length);
            if round.is_empty() {
                let is_whole = self.strategy.dropped() == 0 && self.summary.beginnings == 0;
                // A guided search leaves out what does not lead through its sequence.
                let is_guided = self.course.is_some();
                self.summary.exhausted = is_whole && self.config.reports_failures() && !is_guided;
                self.summary.explored = self.strategy.explored();
                if self.summary.exhausted {
                    self.tally.set_all();
                }
                break;
            }
            for outcome in self.pool.run(first, round, self.run_time()) {
                match outcome {
                    Ok(outcome) => self.handle_outcome(outcome, length)?,
                    Err(NotMade::Run(RunError::Cancelled | RunError::Late)) => {}
                    Err(NotMade::Start(StartError::Cancelled)) => {}
                    Err(NotMade::Run(error)) => return Err(error.into()),
                    Err(NotMade::Start(error)) => return Err(error.into()),
                }
            }
            self.summary.dropped = self.strategy.dropped();
            self.summary.explored = self.strategy.explored();
            self.pace.made(length, begun);
            self.note_endless();
            (self.emit)(Event::Progress(&self.summary)).map_err(HuntError::Report)?;
        }
        self.summary.interrupted = self.config.limits.is_cancelled();
        Ok(())
    }

    /// One short run before the search shows how much time the events of this program take.
    fn probe(&mut self) {
        let Some(limit) = self.pace.probe_limit() else { return };
        let time = self.config.limits.time;
        self.worker.set_time_limit(limit.min(time));
        let start = Instant::now();
        let plan = Plan {
            max_events: BEGINNING.min(self.config.max_events),
            seed: self.config.seed,
            ..Plan::default()
        };
        // What is wrong with the program shows in the search.
        if let Ok(run) = self.worker.run(&plan)
            && *run.ended() == End::EventBound
        {
            self.pace.probed(start.elapsed(), self.config.max_events);
            if run.thread_ids().len() as u32 <= self.config.harness_threads {
                self.pace.had_no_threads();
            }
        }
        self.worker.set_time_limit(time);
    }

    /// How long the next runs may take.
    fn run_time(&self) -> Duration {
        let limit = self.config.limits.time;
        let none_ended = self.summary.runs == 0 || self.summary.nothing_ended();
        if none_ended { Pace::whole_run_limit(self.config.budget, limit).0 } else { limit }
    }

    /// When no run is expected to end any more, one without our scheduling shows whether the program ends at all.
    fn note_endless(&mut self) {
        let was_endless = self.summary.endless;
        self.summary.endless |= self.pace.is_endless(&self.summary);
        if self.summary.endless && !was_endless {
            let limits = self.plain_limits();
            self.summary.plain = limits.and_then(|limits| PlainRun::make(&self.subject.target, &limits));
        }
    }

    /// The limits of a run without our scheduling: it takes no more than a part of the time that is left. `None` if no
    /// time is left.
    fn plain_limits(&self) -> Option<Limits> {
        let left = self.pace.time_left().map_or(PLAIN_TIME, |left| left / 2);
        let time = self.config.limits.time.min(PLAIN_TIME).min(left);
        (!time.is_zero()).then(|| Limits { time, ..self.config.limits.clone() })
    }

    /// Says what is still to be said.
    fn finish(&mut self) -> Result<(), HuntError> {
        self.look_aside()?;
        if self.has_no_threads() {
            self.tally.set_all();
        }
        self.release(true)?;
        for (key, figures) in self.reported.iter().zip(&mut self.summary.failures) {
            figures.timing = self.tally.timing(key);
        }
        if let Some(course) = &self.course {
            let mut guided = course.report(&mut self.worker, self.subject, self.config);
            let mut reported = self.reported.iter().zip(&self.summary.failures);
            let real = reported.find(|(key, _)| Some(*key) == course.failure());
            guided.clip = guided.clip.or_else(|| real?.1.clip.clone());
            self.say(Event::Guided(&guided))?;
        }
        self.summary.finish();
        Ok(())
    }

    fn say(&mut self, event: Event<'_>) -> Result<(), HuntError> {
        (self.emit)(event).map_err(HuntError::Report)
    }

    /// How many runs to make next, and how long they may be; `None` when the session is over.
    fn next_round(&self) -> Option<(u64, Length)> {
        let done = self.summary.runs;
        let left = self.config.budget.runs.map_or(u64::MAX, |runs| runs.saturating_sub(done));
        let is_over = left == 0
            || self.pace.is_late()
            || self.is_satisfied()
            || self.has_no_threads()
            || self.summary.is_hopeless()
            || self.config.limits.is_cancelled();
        let length = self.pace.next_length(&self.summary);
        // Where there is hardly time for whole runs, no more than can be made at once.
        let is_rare = length == Length::Whole && self.pace.is_behind(&self.summary);
        let round = if is_rare { ROUND.min(self.config.jobs.into()) } else { ROUND };
        let count = if done < ONE_AT_A_TIME { 1 } else { round.min(left) };
        (!is_over).then_some((count, length))
    }

    /// There is one schedule, because there is one thread.
    fn has_no_threads(&self) -> bool {
        let Summary { runs, beginnings, threads, .. } = self.summary;
        runs - beginnings >= ENOUGH_WITHOUT_THREADS && threads <= self.config.harness_threads
    }

    fn is_satisfied(&self) -> bool {
        let is_last_resort = |Held { finding, .. }: &Held| {
            !finding.needs.is_empty() && self.summary.runs >= finding.run + RUNS_FOR_A_BETTER_ONE
        };
        self.course.as_ref().is_some_and(Course::is_real)
            || self.config.stop_at_first
                && (self.summary.findings > 0 || self.held.iter().any(is_last_resort))
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
        if length == Length::Beginning && outcome.feedback.threads.len() as u32 <= self.config.harness_threads
        {
            self.pace.had_no_threads();
        }
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
            self.tally.count(&outcome);
            self.release(false)?;
            let guarded = outcome.guarded.iter().filter_map(|guarded| guarded.failure.as_ref());
            for (failure, failing) in outcome.failures.iter().chain(guarded) {
                self.handle_failure(failure, failing, &outcome)?;
            }
            self.look_at_stopped(&outcome)?;
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
        let waypoints = self.course.as_ref().map_or(0, Course::waypoints_before_failure);
        if outcome.feedback.passes.len() < waypoints {
            self.put_aside(failure, failing, outcome);
            return Ok(());
        }
        let is_aside =
            self.course.as_ref().is_some_and(|course| waypoints == 0 && course.is_known_aside(failure));
        if self.is_satisfied() || is_aside || !self.known.insert(failure.clone()) {
            return Ok(());
        }
        match self.confirm(failing, failure, waypoints) {
            Ok(Some(Confirmed { plan, trace })) => {
                let finding =
                    Finding::failure(failure.kind, Arc::new(trace), outcome.number + 1, outcome.method);
                match &mut self.course {
                    Some(course) if course.is_meant(&finding.locations) => {
                        course.failed(failure, outcome.feedback.passing_threads());
                    }
                    Some(course) => course.failed_aside(failure.clone()),
                    None => {}
                }
                let finding = Finding { tuple: outcome.tuple, ..finding };
                self.held.push(Held { key: failure.clone(), finding, plan });
                self.release(false)
            }
            // A race that the run had only on its way somewhere else is no loss.
            Ok(None) if failure.kind == FailureKind::DataRace => Ok(()),
            Ok(None) => {
                self.note_unconfirmed(failure, outcome.ended());
                Ok(())
            }
            Err(RunError::Cancelled | RunError::Late) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reports the failures of which it is known whether they depend on timing; all that are held, if this is the end.
    ///
    /// An exit code that every run has is held to the end: it is a failure only if some run has another. So is what needs
    /// something to happen by time: it comes last, or not at all if one finding is enough.
    fn release(&mut self, is_end: bool) -> Result<(), HuntError> {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|held| !held.finding.needs.is_empty());
        for Held { key, mut finding, plan } in held {
            if !finding.needs.is_empty() && self.config.stop_at_first && self.summary.findings > 0 {
                continue;
            }
            let is_decided = self.tally.timing(&key).dependence() == Dependence::Depends
                || key.kind == FailureKind::DataRace;
            if !is_decided
                && self.tally.is_enough()
                && let Some(limits) = self.plain_limits()
            {
                self.tally.run_plainly(&self.subject.target, &limits);
            }
            let code = self.tally.normal_exit_code().filter(|_| !self.config.exit_code_must_be_0);
            let is_normal = code.is_some_and(|code| key.kind == FailureKind::ExitCode(code));
            let is_known = is_decided || self.tally.is_enough() && !is_normal;
            let is_due = is_end || is_known && finding.needs.is_empty();
            if is_end && is_normal {
                self.summary.normal_exit_code = code;
            } else if is_due {
                finding.timing = Some(self.tally.timing(&key));
                self.report(finding, &plan)?;
                self.reported.push(key);
            } else {
                self.held.push(Held { key, finding, plan });
            }
        }
        Ok(())
    }

    /// A run that was stopped though others end may be a hang.
    fn look_at_stopped(&mut self, outcome: &Outcome) -> Result<(), HuntError> {
        let is_suspicious = self.watch.is_suspicious(outcome);
        let (true, false, Some(plan)) = (is_suspicious, self.is_satisfied(), &outcome.stopped) else {
            return Ok(());
        };
        let time = self.config.limits.time;
        self.worker.set_time_limit(self.pace.time_left().map_or(time, |left| time.min(left / 4)));
        let continued = unfinished::go_on(&mut self.worker, plan, self.config.max_events);
        self.worker.set_time_limit(time);
        match continued {
            Ok(Continued::Ended) | Err(RunError::Cancelled | RunError::Late) => Ok(()),
            Ok(Continued::Failed(failure, plan)) => self.handle_failure(&failure, &plan, outcome),
            Ok(Continued::Unfinished(mut unfinished)) => {
                unfinished.clip = unfinished::save(&mut self.worker, plan, self.subject, &self.config.out);
                self.summary.unfinished = Some(unfinished);
                Ok(())
            }
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
            self.summary.influences = self.worker.influences().collect();
            self.summary.failed_once = Some(format!("{failure} at {location}"));
        }
    }

    fn handle_conclusion(&mut self, conclusion: Conclusion, method: &'static str) -> Result<(), HuntError> {
        match conclusion {
            Conclusion::Predicted { kind } => self.summary.predictions().predicted(kind),
            Conclusion::Analysed { events, infeasible } => {
                self.summary.predictions().analysed(events, infeasible);
            }
            Conclusion::Driven { passes, plan } => {
                if let Some(course) = &mut self.course {
                    course.came_further(passes, *plan);
                }
            }
            // The members of a pipeline take it up among themselves.
            Conclusion::NotShown { .. } => {}
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
        self.say(Event::Found(&finding))?;
        if let Some(timing) = finding.timing {
            let place = finding
                .locations
                .first()
                .map_or_else(String::new, |line| format!(" at {}:{}", line.file, line.line));
            let what = format!("{}{place}", finding.kind);
            self.summary.failures.push(FailureFigures { what, clip: finding.clip, timing });
        }
        Ok(())
    }

    fn save(&self, finding: &mut Finding, plan: &Plan, trace: &Trace) -> io::Result<()> {
        self.subject.save_input()?;
        let clip = clip(self.worker.program(), plan, trace, &self.subject.origin);
        finding.save(&clip, &self.subject.name, &self.config.out)
    }
}
