//! Selectively uniform random walk: the accesses to one variable, another in each run, are done in an order that is
//! evenly random among all their orders.

use std::collections::BTreeMap;

use threadbare_trace::{Plan, Policy, Random, ThreadId, ThreadIndex, Weights};

use crate::{Feedback, Knowledge, Next, Schedule, Settings, Strategy, StrategyEntry, Token};

/// This strategy, by name.
pub const STRATEGY: StrategyEntry = StrategyEntry {
    name: "surw",
    summary: "selectively uniform random walk",
    make: |settings| Box::new(surw(settings)),
};

#[derive(Debug)]
struct Surw {
    knowledge: Knowledge,
    random: Random,
    asked: u64,
    /// How often each thread accessed each variable, in the run that had the most.
    counts: BTreeMap<[u64; 2], BTreeMap<ThreadId, u64>>,
}

fn surw(settings: Settings) -> Surw {
    let random = Random(settings.plan.seed);
    let plan = Plan { decisions: true, ..settings.plan };
    Surw { knowledge: Knowledge::new(plan), random, asked: 0, counts: BTreeMap::new() }
}

impl Surw {
    /// A variable that several threads access, if there is one yet.
    fn draw(&mut self) -> Weights {
        let seed = self.random.next();
        let shared: Vec<_> = self.counts.iter().filter(|(_, threads)| threads.len() > 1).collect();
        if shared.is_empty() {
            return Weights { seed, ..Weights::default() };
        }
        let (variable, threads) = shared[self.random.below(shared.len() as u64) as usize];
        let counts = threads.iter().map(|(thread, &count)| (thread.clone(), count)).collect();
        Weights { seed, interesting: *variable, counts }
    }

    fn count(&mut self, feedback: &Feedback) {
        let mut counts: BTreeMap<([u64; 2], ThreadIndex), u64> = BTreeMap::new();
        for decision in &feedback.decisions {
            if let Some(operation) = decision.operation.filter(|operation| operation.kind.is_access()) {
                *counts.entry(([operation.object, operation.size], decision.picked)).or_default() += 1;
            }
        }
        for ((variable, thread), count) in counts {
            let Some(thread) = feedback.threads.get(thread.index()) else { continue };
            let known = self.counts.entry(variable).or_default().entry(thread.clone()).or_default();
            *known = count.max(*known);
        }
    }
}

impl Strategy for Surw {
    fn name(&self) -> &'static str {
        "surw"
    }

    fn ask(&mut self) -> Next {
        let token = Token(self.asked);
        let plan = self.knowledge.sample(self.asked);
        self.asked += 1;
        Next::Run(Schedule::new(token, self.name(), Plan { policy: Policy::Weighted(self.draw()), ..plan }))
    }

    fn tell(&mut self, _: Token, feedback: &Feedback) {
        self.observe(feedback);
        self.count(feedback);
    }

    fn observe(&mut self, feedback: &Feedback) {
        self.knowledge.update(feedback);
    }

    fn is_random(&self) -> bool {
        true
    }
}
