//! What a run learns to be shared is what a look at all of its accesses says.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::Built;
use threadbare_trace::{Extent, Plan, Policy};

/// What is known of a byte: who accessed it, and whether anybody wrote.
type Past = (BTreeSet<u64>, bool);

#[derive(Default)]
struct Model {
    field: BTreeMap<u64, Past>,
    block: BTreeMap<u64, Past>,
    /// What was shared of blocks that are gone.
    shared_before: BTreeSet<u64>,
}

fn access(memory: &mut BTreeMap<u64, Past>, thread: u64, bytes: std::ops::Range<u64>, write: bool) {
    for byte in bytes {
        let (threads, written) = memory.entry(byte).or_default();
        threads.insert(thread);
        *written |= write;
    }
}

fn shared(memory: &BTreeMap<u64, Past>) -> BTreeSet<u64> {
    let shared = memory.iter().filter(|(_, (threads, written))| threads.len() > 1 && *written);
    shared.map(|(&byte, _)| byte).collect()
}

impl Model {
    /// Takes note of what the program says that it did.
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        match words[0] {
            // To free memory is to write to it, eight bytes at a time, wherever somebody was before.
            "renew" => {
                let words: BTreeSet<u64> = self.block.keys().map(|byte| byte / 8 * 8).collect();
                words.into_iter().for_each(|at| access(&mut self.block, number(1), at..at + 8, true));
                self.shared_before.extend(shared(&std::mem::take(&mut self.block)));
            }
            "block" => access(&mut self.block, number(1), number(2)..number(2) + number(3), number(4) == 1),
            "field" => access(&mut self.field, number(1), number(2)..number(2) + number(3), number(4) == 1),
            other => panic!("{other} is unknown"),
        }
    }
}

#[test]
fn what_is_learnt_is_what_is_shared() {
    let built = Built::new("sharing.c");
    for seed in 0..40 {
        let mut subject = built.scenario(&seed.to_string());
        let plan = Plan { learn: true, ..subject.under(Policy::Random { seed }) };
        let run = subject.run(&plan);
        let output = run.output(1 << 20);
        let (field, lines) = output.split_once('\n').expect("the program says something");
        let field: u64 = field.parse().expect("where the field is");
        let mut model = Model::default();
        lines.lines().for_each(|line| model.take(line));
        assert!(lines.lines().count() == 600 && !model.shared_before.is_empty(), "{output}");

        let (mut of_field, mut of_block) = (BTreeSet::new(), BTreeSet::new());
        for extent in run.learnt() {
            match extent {
                Extent::Fixed { start, len } => of_field.extend(start..start + len),
                Extent::Heap { start, len, .. } => of_block.extend(start..start + len),
                Extent::Stack { .. } => {}
            }
        }
        let in_field: BTreeSet<u64> = shared(&model.field).into_iter().map(|byte| field + byte).collect();
        of_field.retain(|byte| (field..field + (1 << 19)).contains(byte));
        assert_eq!(of_field, in_field, "seed {seed}");
        assert_eq!(of_block, &shared(&model.block) | &model.shared_before, "seed {seed}");
    }
}
