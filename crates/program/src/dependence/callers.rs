//! From what a function is given to what its callers pass.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::analysis::Analysis;
use super::summarize::bounded;
use super::summary::{Source, Sources, Way};
use super::{Gap, LoadSet};
use crate::unpoisoned;

/// Call sites of one function that are looked at.
const MAX_SITES: usize = 16;
/// How many calls up arguments are followed.
const MAX_DEPTH: usize = 4;
/// Steps for one argument, over all callers.
const MAX_STEPS: usize = 64;

/// The calls of each function of a file.
#[derive(Default)]
pub(super) struct Callers {
    /// The caller, and the number of its block that ends with the call, by entry of the callee.
    sites: FxHashMap<u64, Vec<(u64, usize)>>,
    /// Functions that may be called from elsewhere.
    open: FxHashSet<u64>,
}

impl Callers {
    fn of(analysis: &Analysis<'_>) -> Callers {
        let mut callers = Callers::default();
        let entries = analysis.code.functions();
        for &entry in &entries {
            let Some(flow) = analysis.code.flow(entry) else { continue };
            for (number, block) in flow.blocks.iter().enumerate() {
                let callee = block.call.as_ref().and_then(|call| analysis.followed(&call.callee));
                if let Some(callee) = callee {
                    callers.sites.entry(callee).or_default().push((entry, number));
                }
            }
        }
        callers.open = analysis.code.call_graph().indirect_targets().iter().copied().collect();
        callers.open.extend(entries.iter().filter(|entry| !callers.sites.contains_key(entry)));
        callers
    }
}

impl Analysis<'_> {
    /// The loads behind the sources of a value in a function.
    pub(super) fn loads(&self, entry: u64, sources: Vec<(Way, Source)>) -> LoadSet {
        let mut found = FxHashSet::default();
        for (way, source) in sources {
            match source {
                Source::Load(_) | Source::Gap(_) => {
                    found.insert((way, source));
                }
                Source::Exposed | Source::Behind { .. } => {}
                given => {
                    let passed = self.given(entry, given);
                    found.extend(passed.iter().map(|(next, source)| (way.then(*next), source.clone())));
                }
            }
        }
        let mut loads = LoadSet::default();
        for (way, source) in found {
            match (way, source) {
                (Way::Value, Source::Load(load)) => loads.value.push(load),
                (Way::Address, Source::Load(load)) => loads.through_address.push(load),
                (Way::Control, Source::Load(load)) => loads.through_control.push(load),
                (_, Source::Gap(gap)) => loads.gaps.push(gap),
                _ => {}
            }
        }
        for list in [&mut loads.value, &mut loads.through_address, &mut loads.through_control] {
            list.sort_unstable();
        }
        loads.gaps.sort();
        loads.gaps.dedup();
        loads
    }

    /// The loads and gaps behind something that a function is given, at all its callers and theirs.
    fn given(&self, entry: u64, source: Source) -> Sources {
        let key = (entry, source);
        if let Some(known) = unpoisoned(&self.cache.given).get(&key) {
            return Arc::clone(known);
        }
        let mut found = FxHashSet::default();
        let mut seen = FxHashSet::from_iter([(Way::Value, entry, key.1.clone())]);
        let mut open = std::collections::VecDeque::from([(Way::Value, entry, key.1.clone(), 0)]);
        let mut steps = 0;
        while let Some((way, entry, source, depth)) = open.pop_front() {
            if depth == MAX_DEPTH || steps > MAX_STEPS {
                found.insert((way, Source::Gap(Gap::DeepCalls)));
                continue;
            }
            let (passed, gaps) = self.passed(entry, &source, &mut steps);
            found.extend(gaps.into_iter().map(|gap| (way, Source::Gap(gap))));
            for (caller, next, source) in passed {
                let way = way.then(next);
                match source {
                    Source::Load(_) | Source::Gap(_) => {
                        found.insert((way, source));
                    }
                    Source::Exposed | Source::Behind { .. } => {}
                    given => {
                        if seen.insert((way, caller, given.clone())) {
                            open.push_back((way, caller, given, depth + 1));
                        }
                    }
                }
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        let found = bounded(found);
        unpoisoned(&self.cache.given).insert(key, Arc::clone(&found));
        found
    }

    /// What the callers of a function pass for one of the things it is given, and what is not known of that.
    fn passed(&self, entry: u64, source: &Source, steps: &mut usize) -> (Vec<(u64, Way, Source)>, Vec<Gap>) {
        let callers = self.cache.callers.get_or_init(|| Callers::of(self));
        let mut gaps = Vec::new();
        if callers.open.contains(&entry) {
            gaps.push(Gap::UnknownCallers(entry));
        }
        let sites = callers.sites.get(&entry).map(Vec::as_slice).unwrap_or_default();
        if sites.len() > MAX_SITES {
            gaps.push(Gap::ManyCallers(entry));
        }
        let mut passed = Vec::new();
        let asked: Sources = Arc::from([(Way::Value, source.clone())]);
        for &(caller, block) in sites.iter().take(MAX_SITES) {
            *steps += 1;
            let Some(values) = self.values(caller) else { continue };
            let mut values = unpoisoned(&values);
            if !values.code.reachable.get(block).copied().unwrap_or_default() {
                continue;
            }
            let start = values.of_callee(block, &asked);
            let sources = values.sources(start);
            passed.extend(sources.into_iter().map(|(way, source)| (caller, way, source)));
        }
        (passed, gaps)
    }
}
