//! A run that starts from a snapshot is the run it would have been from the start.

mod support;

use support::exhaust::exhaust;
use support::{Built, Subject, outcome};
use threadbare_executor::Keep;
use threadbare_trace::{Plan, Policy, Turns};

/// Everything that one run of an exhaustive search shows: its end, its output and its whole log.
fn everything(subject: &mut Subject) -> Vec<(String, Vec<u8>, u64)> {
    let mut seen = Vec::new();
    exhaust(&mut subject.worker, &subject.plan, 150, |run| {
        let state = run.decisions().last().map_or(0, |decision| decision.state);
        seen.push((outcome(run), run.bytes().to_vec(), state));
    })
    .expect("the search ends");
    seen
}

/// Searches with and without snapshots see the same, run by run.
fn sees_the_same(source: &str, scenarios: &[&str]) {
    let built = Built::new(source);
    for scenario in scenarios {
        let mut subject = built.scenario(scenario);
        subject.learn();
        let plain = everything(&mut subject);
        subject.worker.keep_snapshots(Some(Keep { gap: Some(2), ..Keep::default() }));
        let kept = everything(&mut subject);
        assert_eq!(plain.len(), kept.len(), "{scenario}");
        for (number, (plain, kept)) in plain.iter().zip(&kept).enumerate() {
            assert!(plain == kept, "{scenario}: run {number}: {} and {}", plain.0, kept.0);
        }
    }
}

/// Protects that snapshots of programs which do this change nothing but the time that a search takes.
mod an_exhaustive_search_sees_the_same_with_and_without {
    use super::sees_the_same;

    #[test]
    fn mutexes() {
        sees_the_same("mutex.c", &["order", "unprotected", "timed", "crossed", "robust"]);
    }

    #[test]
    fn conditions() {
        sees_the_same("condition.c", &["lost", "everybody", "timed", "predicate"]);
    }

    #[test]
    fn other_locks() {
        sees_the_same("rwlock.c", &["readers", "spinning"]);
    }

    #[test]
    fn other_waits() {
        sees_the_same("waiting.c", &["one_of_two", "two_meet", "only_once", "futexes"]);
    }

    #[test]
    fn threads() {
        sees_the_same("threads.c", &["joins", "main_leaves", "errnos", "nested", "keys"]);
    }

    #[test]
    fn memory() {
        sees_the_same("memory.c", &["printing", "copies", "blocks", "guarded"]);
    }

    #[test]
    fn the_outside() {
        sees_the_same("outside.c", &["pipes", "forks", "file_position", "early_output", "loopback"]);
    }

    #[test]
    fn cplusplus() {
        sees_the_same("std_threads.cpp", &["statics", "exceptions"]);
    }
}

/// Plans that begin alike and then differ in policy, steps and length.
#[test]
fn plans_that_share_a_beginning_may_go_on_as_they_like() {
    let built = Built::new("memory.c");
    let (mut plain, mut keeping) = (built.scenario("blocks"), built.scenario("blocks"));
    plain.learn();
    keeping.plan = plain.plan.clone();
    keeping.worker.keep_snapshots(Some(Keep { gap: Some(5), ..Keep::default() }));
    for seed in 0..40 {
        let first = plain.under(Policy::Random { seed: seed % 4 });
        let (turns, steps) = {
            let run = plain.run(&first);
            (run.turns(), run.steps())
        };
        keeping.run(&first);
        let beginning: Vec<Turns> = turns.into_iter().take(1 + seed as usize).collect();
        let policy = match seed % 3 {
            0 => Policy::RunToBlock,
            1 => Policy::Random { seed },
            _ => Policy::Priorities { seed, changes: vec![seed, 2 * seed] },
        };
        let steps = if seed % 2 == 0 { Vec::new() } else { steps };
        let plan = Plan { turns: beginning, steps, policy, ..first };
        let (one, other) = (plain.run(&plan).bytes().to_vec(), keeping.run(&plan).bytes().to_vec());
        assert!(one == other, "seed {seed}");
    }
}
