//! Whether the same plan always gives the same run, byte by byte.

use std::error::Error;

use threadbare_executor::{Limits, Target, Worker, learn};
use threadbare_trace::{Plan, Policy};

use crate::build::{self, INSTRUMENTED};
use crate::subjects;

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
            learn(&mut workers[0], &mut plan)?;
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
