//! A number for the class of equivalent interleavings that a run belongs to.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use threadbare_search::Feedback;

use crate::execution::Execution;
use crate::rounds::Rounds;
use crate::step::{Names, Step, Taken};

/// The class of each beginning of the run: after its first step, after two, and so on. Two beginnings are in the same
/// class if their steps are the same and the same steps happen before each. This is what searches are compared with
/// brute force by.
pub fn classes(feedback: &Feedback) -> Vec<u64> {
    let Taken { steps, .. } = Taken::of(feedback, &mut Names::default());
    let rounds = Rounds::default();
    let execution = Execution::new(&steps, &[], &rounds);
    let mut class = 0u64;
    let number = |(position, step): (usize, &Step)| {
        let mut hasher = FxHasher::default();
        (step.thread.number(), execution.clock(position)).hash(&mut hasher);
        class = class.wrapping_add(hasher.finish());
        class
    };
    steps.iter().enumerate().map(number).collect()
}
