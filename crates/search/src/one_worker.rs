//! Ask, run, tell: the loop of one worker.
//!
//! There are two such loops. This one has one run at a time and tells the strategy of each before it asks for the next, so
//! that a search is the same whenever it is made: tests and measurements use it. The session of a hunt asks for a round
//! of schedules, lets several workers run them by [`run_schedule`], and between two rounds looks at the budget, at the
//! lengths of runs and at what was found. With one worker that would be this loop and a great deal that it does not need.

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
    /// The snapshots to keep, if not those that [`run_schedule`] keeps.
    snapshots: Option<Option<Keep>>,
}

/// A schedule that was run, and what came of it.
pub struct Answered {
    pub schedule: Schedule,
    pub feedback: Feedback,
}

impl<'a> Search<'a> {
    pub fn new(worker: &'a mut Worker, strategy: &'a mut dyn Strategy) -> Search<'a> {
        Search { worker, strategy, snapshots: None }
    }

    /// The same search, with these snapshots instead of those that its schedules call for.
    pub fn with_snapshots(self, snapshots: Option<Keep>) -> Search<'a> {
        Search { snapshots: Some(snapshots), ..self }
    }

    /// The next step, whose run is shown to `look` before the next one overwrites it; `None` when the strategy is
    /// exhausted.
    pub fn step(&mut self, look: impl FnOnce(&Run<'_>)) -> Result<Option<Answered>, RunError> {
        // With one run at a time there is never anything to wait for.
        let Next::Run(schedule) = self.strategy.ask() else { return Ok(None) };
        let run = match self.snapshots {
            None => run_schedule(self.worker, &schedule)?,
            Some(snapshots) => {
                self.worker.keep_snapshots(snapshots);
                self.worker.run(&schedule.plan)?
            }
        };
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
