//! Learning which memory is shared, before anything is searched.

use threadbare_trace::{Plan, Policy};

use crate::worker::{RunError, Worker};

/// Runs that are enough to learn what most programs share.
pub const LEARNING_RUNS: u64 = 4;

/// The plan of the `number`-th run that learns (from 0): the simplest schedule first, then random ones.
pub fn learning_plan(plan: &Plan, number: u64) -> Plan {
    let policy = match number {
        0 => Policy::RunToBlock,
        _ => Policy::Random { seed: plan.seed.wrapping_add(number) },
    };
    Plan { policy, learn: true, ..plan.clone() }
}

/// Makes the runs that learn, and adds to `plan` the memory that turned out to be shared.
pub fn learn(worker: &mut Worker, plan: &mut Plan) -> Result<(), RunError> {
    for number in 0..LEARNING_RUNS {
        let learnt = worker.run(&learning_plan(plan, number))?.learnt();
        plan.tracked.extend(learnt);
    }
    Ok(())
}
