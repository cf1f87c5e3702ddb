//! Snapshots that a worker keeps, and which of them a plan can start from.
//!
//! A snapshot is a process that stands where a run stood after some of its turns. A plan that begins with the same turns,
//! and is otherwise the same, can start from the snapshot instead of the beginning. What the earlier run had written to
//! the shared file by then is put back from a copy, which is kept here.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::futex;
use threadbare_trace::{Guidance, Plan, Policy, ThreadIndex, Turns};
use threadbare_wire::{Control, Snapshot, snapshot};

use crate::memory::{Contents, Lengths, Memory};

/// The limits of a worker's snapshots.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    pub max_snapshots: usize,
    /// The most bytes of memory that all snapshots together may have to themselves.
    pub memory: u64,
    /// The turns between two snapshots; `None` chooses them by cost.
    pub gap: Option<u64>,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { max_snapshots: snapshot::SLOTS / 2, memory: 1 << 30, gap: None }
    }
}

/// The snapshots of one worker.
#[derive(Default)]
pub struct Snapshots {
    keep: Option<Keep>,
    kept: Vec<Kept>,
    /// The number of runs so far. It dates the last use of each snapshot.
    clock: u64,
    /// How many turns the last run took, and how long each.
    turns: u64,
    turn_time: Duration,
    /// The time to take a snapshot, from the latest ones.
    cost: Option<Duration>,
}

struct Kept {
    slot: usize,
    /// The plan of its run, without the parts that may differ.
    plan: Arc<Plan>,
    /// The turns that its run had taken.
    turns: Vec<Turns>,
    lengths: Lengths,
    contents: Arc<Contents>,
    /// The output of its run, perhaps with more than it had printed by then.
    output: Arc<[u8]>,
    memory: u64,
    used: u64,
}

/// The least that a snapshot costs.
const MIN_COST: Duration = Duration::from_micros(300);
/// The whole cost of a snapshot, as a multiple of the time to take it: later its pages are copied and its process
/// ends.
const COST_FACTOR: u32 = 3;

impl Snapshots {
    /// From now on keeps snapshots within these limits; with `None`, takes no new ones.
    pub fn keep(&mut self, keep: Option<Keep>) {
        self.keep =
            keep.map(|keep| Keep { max_snapshots: keep.max_snapshots.min(snapshot::SLOTS - 1), ..keep });
    }

    /// Finds the deepest snapshot that `plan` can start from, puts back what it had written to the shared file, and
    /// returns its slot.
    ///
    /// A guarded run always starts from the beginning: few are, and its heap is another. A run that learns what is shared
    /// goes on from one that has learnt on the way.
    pub fn restore(&mut self, plan: &Plan, memory: &mut Memory, output: &File) -> Option<usize> {
        self.clock += 1;
        if plan.guarded {
            return None;
        }
        let fits = |kept: &&mut Kept| {
            kept.lengths.turns <= max_turns(&plan.policy)
                && begins_with(&plan.turns, &kept.turns)
                && *kept.plan == common(plan)
        };
        let kept = self.kept.iter_mut().filter(fits).max_by_key(|kept| kept.lengths.turns)?;
        kept.used = self.clock;
        memory.restore(&kept.contents, &kept.lengths);
        let printed = &kept.output[..kept.lengths.output as usize];
        output.set_len(0).and_then(|()| output.write_all_at(printed, 0)).ok()?;
        Some(kept.slot)
    }

    /// Decides where the run of `plan` from `start` takes snapshots: at even distances up to the length of the last run,
    /// and where the plan's turns end, because other plans are likely to branch off there.
    pub fn ask(&mut self, plan: &Plan, start: Option<usize>, memory: &Memory) {
        let control = memory.control();
        control.snapshots_taken.store(0, Ordering::Relaxed);
        let wanted: Vec<(u64, usize)> = match self.keep {
            Some(keep) if !plan.guarded => {
                self.positions(plan, keep, start).into_iter().zip(free_slots(control)).collect()
            }
            _ => Vec::new(),
        };
        for (i, place) in control.snapshots_wanted.iter().enumerate() {
            let (turns, slot) = wanted.get(i).copied().unwrap_or((0, 0));
            place.turns.store(turns, Ordering::Relaxed);
            place.slot.store(slot as u32, Ordering::Relaxed);
        }
    }

    fn positions(&self, plan: &Plan, keep: Keep, start: Option<usize>) -> Vec<u64> {
        let first = self.turns_before(start);
        let closest = keep.gap.unwrap_or_else(|| self.worthwhile_gap()).max(1);
        let gap = closest.max(self.turns / snapshot::MAX_WANTED as u64);
        let spread = (1..).map(|i| i * gap).take_while(|&at| at + gap <= self.turns);
        let branch = Turns::total(&plan.turns);
        let mut positions: Vec<u64> = spread
            .chain([branch])
            .filter(|&at| at >= first + closest && at + closest <= self.turns)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions.truncate(keep.max_snapshots);
        positions
    }

    /// Turns that were taken before the snapshot in this slot.
    fn turns_before(&self, slot: Option<usize>) -> u64 {
        self.kept.iter().find(|kept| Some(kept.slot) == slot).map_or(0, |kept| kept.lengths.turns)
    }

    /// The turns between two snapshots. If a run of length R has n snapshots of cost c each, a run that starts from one
    /// repeats R / 2n on average. So n · c + R / 2n should be small.
    fn worthwhile_gap(&self) -> u64 {
        let turn = (self.turn_time.as_nanos() as u64).max(1);
        let cost = self.cost.map_or(MIN_COST, |cost| MIN_COST.max(cost * COST_FACTOR));
        let gap = (2 * cost.as_nanos() as u64).saturating_mul(self.turns.saturating_mul(turn)).isqrt();
        gap / turn
    }

    /// Keeps the snapshots of a run of `plan`, which started from `start` or from the beginning, and notes its time.
    pub fn collect(
        &mut self,
        plan: &Plan,
        start: Option<usize>,
        time: Duration,
        memory: &Memory,
        output: &File,
    ) {
        let Some(keep) = self.keep else { return };
        let control = memory.control();
        let first = self.turns_before(start);
        self.turns = control.turns.load(Ordering::Relaxed);
        self.turn_time = time / u32::try_from(self.turns.saturating_sub(first)).unwrap_or(u32::MAX).max(1);
        let taken = control.snapshots_taken.load(Ordering::Relaxed) as usize;
        let wanted = &control.snapshots_wanted[..taken.min(snapshot::MAX_WANTED)];
        let new: Vec<(usize, Lengths)> = wanted
            .iter()
            .map(|wanted| wanted.slot.load(Ordering::Relaxed) as usize)
            .filter(|&slot| control.snapshots[slot].pid.load(Ordering::Acquire) != 0)
            .map(|slot| (slot, Lengths::of(&control.snapshots[slot])))
            .collect();
        let costs = new.iter().map(|(slot, _)| control.snapshots[*slot].cost.load(Ordering::Relaxed));
        // Where none were taken because they cost too much, that may have been chance.
        self.cost = costs.min().map(Duration::from_nanos).or(self.cost.map(|cost| cost / 2));
        let Some((_, longest)) = new.last() else { return };
        let mut printed = vec![0; longest.output as usize];
        if output.read_exact_at(&mut printed, 0).is_err() {
            new.iter().for_each(|(slot, _)| dismiss(&control.snapshots[*slot]));
            return;
        }
        let (contents, plan, output) =
            (Arc::new(memory.copy(longest)), Arc::new(common(plan)), Arc::from(printed));
        self.kept.extend(new.into_iter().map(|(slot, lengths)| Kept {
            slot,
            plan: Arc::clone(&plan),
            turns: contents.turns(&lengths),
            lengths,
            contents: Arc::clone(&contents),
            output: Arc::clone(&output),
            memory: own_memory(&control.snapshots[slot]),
            used: self.clock,
        }));
        self.evict(keep, memory);
    }

    /// Drops the snapshots that were not used for longest, until the limits are met.
    fn evict(&mut self, keep: Keep, memory: &Memory) {
        let is_too_much = |kept: &[Kept]| {
            kept.len() > keep.max_snapshots || kept.iter().map(|kept| kept.memory).sum::<u64>() > keep.memory
        };
        while is_too_much(&self.kept) {
            let oldest =
                (0..self.kept.len()).min_by_key(|&i| (self.kept[i].used, self.kept[i].lengths.turns));
            let Some(oldest) = oldest else { return };
            let kept = self.kept.remove(oldest);
            dismiss(&memory.control().snapshots[kept.slot]);
        }
    }

    /// Drops the snapshot in this slot, because its process has ended.
    pub fn forget(&mut self, slot: Option<usize>) {
        self.kept.retain(|kept| Some(kept.slot) != slot);
    }
}

/// The plan without the parts in which a run from a snapshot may differ.
fn common(plan: &Plan) -> Plan {
    let policy = match &plan.policy {
        // How far a run has come on its way is part of it.
        Policy::Guided(guidance) => Policy::Guided(Guidance { seed: 0, ..guidance.clone() }),
        _ => Policy::RunToBlock,
    };
    Plan { turns: Vec::new(), steps: Vec::new(), strict: false, policy, ..plan.clone() }
}

/// How many turns a run may have taken that a plan with this policy goes on from. What comes after that can wake threads.
fn max_turns(policy: &Policy) -> u64 {
    match policy {
        Policy::Awake { from, .. } => *from,
        _ => u64::MAX,
    }
}

fn free_slots(control: &Control) -> impl Iterator<Item = usize> {
    (0..snapshot::SLOTS).filter(|&slot| control.snapshots[slot].pid.load(Ordering::Acquire) == 0)
}

/// Whether `turns` begin with `first`. Consecutive turns of a thread may be split in different ways.
fn begins_with(turns: &[Turns], first: &[Turns]) -> bool {
    let mut turns = turns.iter().copied().filter(|turns| turns.count > 0);
    let mut rest = Turns { thread: ThreadIndex::MAIN, count: 0 };
    first.iter().all(|&Turns { thread, mut count }| {
        while count > 0 {
            if rest.count == 0 {
                let Some(next) = turns.next() else { return false };
                rest = next;
            }
            if rest.thread != thread {
                return false;
            }
            let both = count.min(rest.count);
            (count, rest.count) = (count - both, rest.count - both);
        }
        true
    })
}

/// Tells a snapshot to end.
fn dismiss(slot: &Snapshot) {
    slot.command.store(snapshot::LEAVE, Ordering::Release);
    // Not private: the one that waits is another process. If nobody waits any more, nobody has to be told.
    let _ = futex::wake(&slot.command, futex::Flags::empty(), 1);
}

/// An upper bound on the bytes that the process has to itself.
fn own_memory(slot: &Snapshot) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", slot.pid.load(Ordering::Acquire)));
    let kilobytes = status.ok().and_then(|status| {
        let line =
            status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.trim().strip_suffix(" kB")?;
        line.parse::<u64>().ok()
    });
    kilobytes.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(counts: &[(u32, u32)]) -> Vec<Turns> {
        counts.iter().map(|&(thread, count)| Turns { thread: ThreadIndex::new(thread), count }).collect()
    }

    #[test]
    fn turns_begin_alike_however_they_are_counted_together() {
        let first = turns(&[(0, 3), (1, 2)]);
        for alike in
            [&[(0, 3), (1, 2)][..], &[(0, 1), (0, 2), (1, 5)], &[(0, 3), (2, 0), (1, 1), (1, 1), (0, 1)]]
        {
            assert!(begins_with(&turns(alike), &first), "{alike:?}");
        }
        for other in [&[][..], &[(0, 3), (1, 1)], &[(0, 4), (1, 2)], &[(0, 2), (1, 3)], &[(1, 3), (1, 2)]] {
            assert!(!begins_with(&turns(other), &first), "{other:?}");
        }
        assert!(begins_with(&first, &[]));
    }
}
