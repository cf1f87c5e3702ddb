//! The threads that the variables of a sequence stand for.
//!
//! A run lets a variable stand for the first thread that passes a location with it. That need not be the thread that can
//! pass the others too. So further searches have the variables bound to threads from the start, to different ones each,
//! drawn at random. Each such binding is drawn once.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use threadbare_trace::hash::mix;
use threadbare_trace::{Random, ThreadId, Waypoint, WhichThread};

/// The bindings that were drawn.
#[derive(Debug, Default)]
pub struct Bindings {
    drawn: FxHashSet<u64>,
}

/// So many bindings are drawn at most. With more threads and variables there are too many to try them all.
const MAX_DRAWN: usize = 64;
/// Draws in a row that bring nothing new, before it is given up.
const MAX_TRIES: u32 = 16;

impl Bindings {
    /// The same sequence with its variables bound to some of these threads, in a way that is new; `None` if there is none.
    pub fn draw(
        &mut self,
        waypoints: &[Waypoint],
        threads: &[ThreadId],
        random: &mut Random,
    ) -> Option<Arc<[Waypoint]>> {
        let variables = variables(waypoints);
        if variables.is_empty() || variables.len() > threads.len() || self.drawn.len() >= MAX_DRAWN {
            return None;
        }
        for _ in 0..MAX_TRIES {
            let mut left: Vec<&ThreadId> = threads.iter().collect();
            let mut take = |_: &u8| left.swap_remove(random.below(left.len() as u64) as usize).clone();
            let chosen: Vec<ThreadId> = variables.iter().map(&mut take).collect();
            let bound = bind(waypoints, &variables, &chosen);
            if self.drawn.insert(self.number(&bound)) {
                return Some(bound);
            }
        }
        None
    }

    /// A number for the threads that a sequence names.
    pub fn number(&self, waypoints: &[Waypoint]) -> u64 {
        let thread = |waypoint: &Waypoint| match &waypoint.thread {
            WhichThread::Any => 0,
            WhichThread::Variable(number) => 1 + u64::from(*number),
            WhichThread::Id(id) => {
                mix(std::iter::once(1 << 32).chain(id.path().iter().map(|&ordinal| ordinal.into())))
            }
        };
        mix(waypoints.iter().map(thread))
    }
}

/// The variables of a sequence, each once.
fn variables(waypoints: &[Waypoint]) -> Vec<u8> {
    let mut variables: Vec<u8> = waypoints
        .iter()
        .filter_map(|waypoint| match waypoint.thread {
            WhichThread::Variable(number) => Some(number),
            WhichThread::Any | WhichThread::Id(_) => None,
        })
        .collect();
    variables.sort_unstable();
    variables.dedup();
    variables
}

fn bind(waypoints: &[Waypoint], variables: &[u8], threads: &[ThreadId]) -> Arc<[Waypoint]> {
    let bound = |waypoint: &Waypoint| {
        let mut waypoint = waypoint.clone();
        if let WhichThread::Variable(number) = waypoint.thread
            && let Some(position) = variables.iter().position(|&variable| variable == number)
        {
            waypoint.thread = WhichThread::Id(threads[position].clone());
        }
        waypoint
    };
    waypoints.iter().map(bound).collect()
}

#[cfg(test)]
mod tests {
    use threadbare_trace::Demand;

    use super::*;

    fn waypoint(thread: WhichThread) -> Waypoint {
        Waypoint::new(Vec::new(), thread, Demand::Pass)
    }

    /// Protects sequences with variables: every binding is tried, and a variable is the same thread everywhere.
    #[test]
    fn every_binding_is_drawn_once() {
        let [a, b] = [WhichThread::Variable(0), WhichThread::Variable(1)];
        let sequence = [waypoint(a.clone()), waypoint(b), waypoint(WhichThread::Any), waypoint(a)];
        let threads: Vec<ThreadId> = (1..4).map(|number| ThreadId::main().child(number)).collect();
        let (mut bindings, mut random) = (Bindings::default(), Random(1));
        let mut seen = std::collections::BTreeSet::new();
        while let Some(bound) = bindings.draw(&sequence, &threads, &mut random) {
            assert_eq!((&bound[0].thread, &bound[2].thread), (&bound[3].thread, &WhichThread::Any));
            assert_ne!(bound[0].thread, bound[1].thread);
            seen.insert(format!("{:?}", (&bound[0].thread, &bound[1].thread)));
        }
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn without_variables_there_is_nothing_to_bind() {
        let main = ThreadId::main();
        let sequence = [waypoint(WhichThread::Any), waypoint(WhichThread::Id(main.clone()))];
        assert_eq!(Bindings::default().draw(&sequence, &[main], &mut Random(1)), None);
    }
}
