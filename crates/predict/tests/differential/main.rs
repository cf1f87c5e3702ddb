//! Predictions against brute force, on random small programs: every correct reordering of a trace is gone through,
//! and what it shows is compared with what was predicted.

mod brute_force;
mod generate;

use std::collections::BTreeSet;

use brute_force::{Reorderings, explore};
use generate::{Discipline, random_trace};
use threadbare_predict::exposed::exposed;
use threadbare_predict::pattern::built_in;
use threadbare_predict::search::{Identity, search, search_among};
use threadbare_predict::units::Accesses;
use threadbare_predict::{AnomalyKind, History, Predictions, Verdict, predict};
use threadbare_search::reorder::closure::Closure;
use threadbare_trace::{EventIndex, Trace};

/// Programs tried in each test; more where they are fast. A failure names the seed.
const PROGRAMS: u64 = if cfg!(debug_assertions) { 400 } else { 4000 };

type Lines = BTreeSet<Vec<u32>>;

/// The sorted lines of all predictions of a kind.
fn predicted(trace: &Trace, predictions: &Predictions, kind: AnomalyKind, verdict: Option<Verdict>) -> Lines {
    let of_kind = predictions.list.iter().filter(|prediction| prediction.kind == kind);
    let wanted = of_kind.filter(|prediction| verdict.is_none_or(|verdict| prediction.verdict == verdict));
    wanted.map(|prediction| lines(trace, &prediction.events)).collect()
}

fn lines(trace: &Trace, events: &[EventIndex]) -> Vec<u32> {
    let mut lines: Vec<u32> = events.iter().map(|&event| generate::line(trace, event)).collect();
    lines.sort_unstable();
    lines
}

fn all_lines(trace: &Trace, found: &BTreeSet<Vec<EventIndex>>) -> Lines {
    found.iter().map(|events| lines(trace, events)).collect()
}

#[test]
fn sound_races_are_all_that_keep_the_order_of_critical_sections() {
    for seed in 0..PROGRAMS {
        let trace = random_trace(seed, Discipline::Any);
        let Some(truth) = explore(&trace, Reorderings::KeepingSections) else { continue };
        let history = History::new(trace.clone()).unwrap();
        let closure = Closure::of(&history);
        for pair in brute_force::conflicting_pairs(&trace) {
            let claimed = closure.next_together(&history, &pair).is_some();
            assert_eq!(claimed, truth.races.contains(&pair), "seed {seed}, events {pair:?}");
        }
    }
}

#[test]
fn what_is_witnessed_is_real() {
    for seed in 0..PROGRAMS {
        let trace = random_trace(seed, Discipline::Any);
        let Some(truth) = explore(&trace, Reorderings::All) else { continue };
        let predictions = predict(trace.clone(), &built_in()).unwrap();
        let races = predicted(&trace, &predictions, AnomalyKind::DataRace, Some(Verdict::Witnessed));
        let real = all_lines(&trace, &truth.races);
        assert!(races.is_subset(&real), "seed {seed}: {races:?} of {real:?}");
        let deadlocks = predicted(&trace, &predictions, AnomalyKind::Deadlock, Some(Verdict::Witnessed));
        let real = all_lines(&trace, &truth.deadlocks);
        assert!(deadlocks.is_subset(&real), "seed {seed}: {deadlocks:?} of {real:?}");
    }
}

#[test]
fn every_sound_race_is_witnessed() {
    for seed in 0..PROGRAMS {
        let trace = random_trace(seed, Discipline::Any);
        let Some(truth) = explore(&trace, Reorderings::KeepingSections) else { continue };
        let predictions = predict(trace.clone(), &built_in()).unwrap();
        let witnessed = predicted(&trace, &predictions, AnomalyKind::DataRace, Some(Verdict::Witnessed));
        let sound = all_lines(&trace, &truth.races);
        assert!(sound.is_subset(&witnessed), "seed {seed}: {sound:?} not all in {witnessed:?}");
    }
}

#[test]
fn with_nested_locks_no_real_race_or_deadlock_is_missed() {
    for seed in 0..PROGRAMS {
        let trace = random_trace(seed, Discipline::Nested);
        let Some(truth) = explore(&trace, Reorderings::All) else { continue };
        let predictions = predict(trace.clone(), &built_in()).unwrap();
        let races = predicted(&trace, &predictions, AnomalyKind::DataRace, None);
        let real = all_lines(&trace, &truth.races);
        assert!(real.is_subset(&races), "seed {seed}: {real:?} not all in {races:?}");
        let deadlocks = predicted(&trace, &predictions, AnomalyKind::Deadlock, None);
        let real = all_lines(&trace, &truth.deadlocks);
        assert!(real.is_subset(&deadlocks), "seed {seed}: {real:?} not all in {deadlocks:?}");
    }
}

/// Leaving out what locks make impossible loses nothing that the search would have found.
#[test]
fn what_is_not_exposed_is_in_no_anomaly() {
    let (patterns, mut left_out) = (built_in(), 0);
    for seed in 0..PROGRAMS {
        let discipline = if seed % 4 == 0 { Discipline::Any } else { Discipline::Guarded };
        let mut trace = random_trace(seed, discipline);
        // With addresses, passes through functions are units too.
        if seed % 2 == 0 {
            let lines = trace.locations.iter_mut();
            lines.for_each(|place| place.address = place.frames.first().map_or(0, |frame| frame.line.into()));
        }
        let history = History::new(trace.clone()).unwrap();
        let accesses = Accesses::of(&history);
        let all: BTreeSet<Identity> =
            search_among(&history, &patterns, &accesses).candidates.into_keys().collect();
        let found: BTreeSet<Identity> = search(&history, &patterns).candidates.into_keys().collect();
        assert!(all.is_subset(&found), "seed {seed}: {:?}", all.difference(&found));
        left_out += exposed(&history, &accesses, &patterns).iter().filter(|&&exposed| !exposed).count();
    }
    assert!(left_out > PROGRAMS as usize / 4, "only {left_out}");
}

/// The tests above would pass if nothing ever happened in the programs.
#[test]
fn the_programs_have_something_to_find() {
    let (mut explored, mut races, mut unsound, mut deadlocks) = (0usize, 0usize, 0usize, 0usize);
    for seed in 0..PROGRAMS {
        let trace = random_trace(seed, Discipline::Nested);
        let (Some(all), Some(sound)) =
            (explore(&trace, Reorderings::All), explore(&trace, Reorderings::KeepingSections))
        else {
            continue;
        };
        explored += 1;
        races += all.races.len();
        unsound += all.races.difference(&sound.races).count();
        deadlocks += all.deadlocks.len();
    }
    println!(
        "{explored} programs: {races} races, {unsound} that are not sync-preserving, {deadlocks} deadlocks"
    );
    let programs = PROGRAMS as usize;
    assert!(explored > programs / 2 && races > 2 * programs);
    assert!(unsound > programs / 20 && deadlocks > programs / 100);
}
