//! The same plan twice.

use std::error::Error;

use threadbare_executor::{Limits, Target, Worker};
use threadbare_trace::{Plan, Policy};

use crate::build::{self, INSTRUMENTED};
use crate::subjects;

/// Runs that learn what is shared, before plans are compared.
const LEARNING: u64 = 4;

pub fn run(plans: u64) -> Result<bool, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut good = true;
    for (source, subject) in subjects::all()? {
        for (version, flags) in [("buggy", &["-O0"][..]), ("fixed", &["-O0", "-DFIXED"][..])] {
            let program = directory.path().join(&subject.name);
            build::compile(&source, &program, &[INSTRUMENTED, flags].concat())?;
            let target = Target { program, ..Target::default() };
            // Two workers: the same bytes must come from another process too.
            let mut workers =
                [Worker::start(&target, &Limits::default())?, Worker::start(&target, &Limits::default())?];
            let mut plan = Plan::default();
            for seed in 0..LEARNING {
                let learning = Plan { learn: true, policy: Policy::Random { seed }, ..plan.clone() };
                let learnt = workers[0].run(&learning)?.learnt();
                plan.tracked.extend(learnt);
            }
            let mut same = 0;
            for seed in 0..plans {
                plan.policy = Policy::Random { seed };
                let [one, other] = &mut workers;
                let first = one.run(&plan)?.bytes().to_vec();
                same += u64::from(one.run(&plan)?.bytes() == first && other.run(&plan)?.bytes() == first);
            }
            good &= same == plans;
            println!(
                "{:<20} {version}   {same} of {plans} plans gave the same bytes three times",
                subject.name
            );
        }
    }
    Ok(good)
}
