//! Ask, run, tell: the loop of one worker.
//!
//! Whoever has several workers makes the runs elsewhere, by [`run_schedule`], and tells the strategy itself.

use threadbare_executor::{Keep, Run, RunError, Worker};

use crate::{Feedback, Next, Schedule, Strategy};

/// Makes the run that a schedule asks for.
pub fn run_schedule<'w>(worker: &'w mut Worker, schedule: &Schedule) -> Result<Run<'w>, RunError> {
    // A strategy that asks for decisions means to go on from them, where a snapshot helps.
    worker.keep_snapshots(schedule.plan.decisions.then(Keep::default));
    worker.run(&schedule.plan)
}

/// A search by one strategy with one worker. Each step asks for a schedule, runs it, and tells the strategy.
pub struct Search<'a> {
    worker: &'a mut Worker,
    strategy: &'a mut dyn Strategy,
}

/// A schedule that was run, and what came of it.
pub struct Answered {
    pub schedule: Schedule,
    pub feedback: Feedback,
}

impl<'a> Search<'a> {
    pub fn new(worker: &'a mut Worker, strategy: &'a mut dyn Strategy) -> Search<'a> {
        Search { worker, strategy }
    }

    /// The next step, whose run is shown to `look` before the next one overwrites it; `None` when the strategy is
    /// exhausted.
    pub fn step(&mut self, look: impl FnOnce(&Run<'_>)) -> Result<Option<Answered>, RunError> {
        // With one run at a time there is never anything to wait for.
        let Next::Run(schedule) = self.strategy.ask() else { return Ok(None) };
        let run = run_schedule(self.worker, &schedule)?;
        look(&run);
        let feedback = Feedback::of(&run, &schedule);
        self.strategy.tell(schedule.token, &feedback);
        Ok(Some(Answered { schedule, feedback }))
    }
}

impl Iterator for Search<'_> {
    type Item = Result<Answered, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(|_| {}).transpose()
    }
}
