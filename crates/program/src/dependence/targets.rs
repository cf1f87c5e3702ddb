//! What is asked for: the branches, stores, addresses, locks and indirect calls of a function.

use super::analysis::{Analysis, own_gaps};
use super::location::Location;
use super::pointer::Place;
use super::summary::Way;
use super::values::{Origins, Values};
use super::{Dependent, FunctionDependence, Gap, LoadSet, library};
use crate::flow::{BlockEnd, Callee};
use crate::unpoisoned;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Branch,
    Store,
    Address,
    Lock,
    IndirectCall,
}

struct Target {
    kind: Kind,
    address: u64,
    hook: Option<u64>,
    start: Origins,
}

pub(super) fn of_function(analysis: &Analysis<'_>, entry: u64) -> Option<FunctionDependence> {
    let shared = analysis.values(entry)?;
    let (found, gaps) = {
        let mut values = unpoisoned(&shared);
        let targets = targets(analysis, &mut values);
        let gaps = own_gaps(&values);
        let found: Vec<_> = targets
            .into_iter()
            .map(|target| (target.kind, target.address, target.hook, values.sources(target.start)))
            .collect();
        (found, gaps)
    };
    let mut dependence = FunctionDependence {
        entry,
        branches: Vec::new(),
        stores: Vec::new(),
        addresses: Vec::new(),
        locks: Vec::new(),
        indirect_calls: Vec::new(),
    };
    for (kind, address, hook, sources) in found {
        let loads = with_gaps(analysis.loads(entry, sources), &gaps);
        let list = match kind {
            Kind::Branch => &mut dependence.branches,
            Kind::Store => &mut dependence.stores,
            Kind::Address => &mut dependence.addresses,
            Kind::Lock => &mut dependence.locks,
            Kind::IndirectCall => &mut dependence.indirect_calls,
        };
        list.push(Dependent { address, hook, loads });
    }
    Some(dependence)
}

fn with_gaps(mut loads: LoadSet, gaps: &[Gap]) -> LoadSet {
    loads.gaps.extend_from_slice(gaps);
    loads.gaps.sort();
    loads.gaps.dedup();
    loads
}

fn targets(analysis: &Analysis<'_>, values: &mut Values) -> Vec<Target> {
    let mut targets = Vec::new();
    for block in
        (0..values.code.blocks.len()).filter(|&block| values.code.reachable[block]).collect::<Vec<_>>()
    {
        for number in values.code.blocks[block].clone() {
            accesses(values, number, &mut targets);
        }
        let Some(last) = values.code.blocks[block].clone().last() else { continue };
        let address = values.code.instructions[last].ip();
        let end = values.code.flow.blocks[block].end.clone();
        if is_branch(&end) {
            let start = value_of(values, last);
            targets.push(Target { kind: Kind::Branch, address, hook: None, start });
        }
        call(analysis, values, block, last, &mut targets);
    }
    targets.sort_by_key(|target| target.address);
    targets
}

fn is_branch(end: &BlockEnd) -> bool {
    matches!(
        end,
        BlockEnd::Branch | BlockEnd::Switch(_) | BlockEnd::UnresolvedJump | BlockEnd::ConditionalTailCall
    )
}

fn value_of(values: &mut Values, number: usize) -> Origins {
    Origins { edges: vec![(Way::Value, values.instruction(number))], sources: Vec::new() }
}

/// The stores and addresses of an instruction. An access of a local counts if it is announced, because other threads
/// may have the local's address.
fn accesses(values: &mut Values, number: usize, targets: &mut Vec<Target>) {
    let hook = values.hooks.get(&number).copied();
    let places = values.tracking.places[number].iter().zip(&values.code.effects[number].memory);
    let seen = |place: &Place| (!place.is_frame() && *place != Place::ReadOnly) || hook.is_some();
    let (mut is_access, mut is_store) = (false, false);
    for (_, access) in places.filter(|(place, _)| seen(place)) {
        is_access |= access.reads || access.writes;
        is_store |= access.writes;
    }
    let address = values.code.instructions[number].ip();
    if is_store {
        let start = value_of(values, number);
        targets.push(Target { kind: Kind::Store, address, hook, start });
    }
    if is_access {
        let locations = values.code.effects[number].address_reads.clone();
        let edges = locations.into_iter().map(|location| (Way::Value, values.before(number, location)));
        let start = Origins { edges: edges.collect(), sources: Vec::new() };
        targets.push(Target { kind: Kind::Address, address, hook, start });
    }
}

fn call(analysis: &Analysis<'_>, values: &mut Values, block: usize, last: usize, targets: &mut Vec<Target>) {
    let Some(call) = values.code.flow.blocks[block].call.clone() else { return };
    let (address, hook) = (call.address, Some(call.return_address));
    if call.callee == Callee::Indirect {
        let start = value_of(values, last);
        targets.push(Target { kind: Kind::IndirectCall, address, hook, start });
        return;
    }
    let Some(name) = analysis.code.callee_name(&call.callee) else { return };
    for &register in library::lock_operands(name) {
        let start = argument(values, block, last, register);
        targets.push(Target { kind: Kind::Lock, address, hook, start });
    }
    // What a library function writes is stored by the call itself.
    let is_followed = analysis.followed(&call.callee).is_some();
    let (Some(summary), Some(passed)) =
        (values.code.calls[block].clone(), values.tracking.calls[block].clone())
    else {
        return;
    };
    for write in summary.writes.iter().filter(|write| !is_followed && write.certain_or_atomic(name)) {
        let range = summary.range(write, &passed.registers);
        let pointer = passed.registers[usize::from(write.register)];
        if !Place::of(pointer, range.map_or(0, |(_, size)| size)).is_frame() {
            let mut start = values.of_callee(block, &write.sources);
            start.edges.extend(
                argument(values, block, last, write.register)
                    .edges
                    .into_iter()
                    .map(|(_, node)| (Way::Address, node)),
            );
            targets.push(Target { kind: Kind::Store, address, hook, start });
            let start = argument(values, block, last, write.register);
            targets.push(Target { kind: Kind::Address, address, hook, start });
        }
    }
}

/// A register that is passed to a call.
fn argument(values: &mut Values, block: usize, call: usize, register: u8) -> Origins {
    let is_fixed = values.tracking.calls[block]
        .as_ref()
        .is_some_and(|passed| passed.registers[usize::from(register)].is_fixed());
    let locations = Location::both(register).into_iter().filter(|_| !is_fixed);
    let edges = locations.map(|location| (Way::Value, values.before(call, location))).collect();
    Origins { edges, sources: Vec::new() }
}
