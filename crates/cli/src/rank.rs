//! `threadbare rank`: schedules in the order of a strategy, the ranking of RankChecker unless another is named.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::arguments::RankOptions;
use crate::hunt::{self, Chosen, Terms};
use crate::problem::Problem;
use crate::target;

pub fn run(options: &RankOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    let ready = target::prepare(&options.program.target, &options.program.launch, &options.search.out)?;
    let chosen = Chosen {
        name: options.strategy,
        bound: options.bound,
        tuples: (!options.tuples.is_empty()).then(|| options.tuples.clone()),
        memory: options.search_memory.saturating_mul(1 << 20),
    };
    let terms =
        Terms { strategy: Some(chosen), ..hunt::terms(&options.program, &options.search, &ready, cancelled) };
    hunt::aloud(&ready, &terms, options.search.json, "threadbare replay")
}
