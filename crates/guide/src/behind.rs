//! Waypoints that a program has passed before its first thread.
//!
//! A run begins where the program creates its first thread. What came before has happened in every run, once, and there
//! are no events of it. In the functions that the main thread is in by then, a place has been passed if every way to where
//! the thread is leads over it.

use std::sync::Arc;

use threadbare_program::Program;
use threadbare_program::flow::{BlockIndex, Flow};
use threadbare_trace::{Demand, ThreadId, Trace, Waypoint, WhichThread};

/// A function that the main thread is in, and the address behind the call that it is at. Addresses are as linked.
struct Activation {
    flow: Arc<Flow>,
    at: u64,
    /// Of the file that the function is in.
    bias: u64,
}

/// A place that was passed: the number of the activation, from the outermost, and the address in its function.
type Position = (usize, u64);

/// How many of the first waypoints were passed before the run of this trace began.
pub fn behind(program: &Program, trace: &Trace, waypoints: &[Waypoint]) -> usize {
    let activations = activations(program, trace);
    let mut last: Option<Position> = None;
    let passed = waypoints.iter().take_while(|waypoint| {
        let next = first_position(&activations, waypoint, last);
        last = next.or(last);
        next.is_some()
    });
    passed.count()
}

/// The waypoints that are left. A variable that the main thread has stood for stands for it from then on.
pub fn left(waypoints: &[Waypoint], behind: usize) -> Arc<[Waypoint]> {
    let (passed, left) = waypoints.split_at(behind);
    let bound = |waypoint: &Waypoint| {
        let is_main = matches!(waypoint.thread, WhichThread::Variable(_))
            && passed.iter().any(|passed| passed.thread == waypoint.thread);
        let thread = if is_main { WhichThread::Id(ThreadId::main()) } else { waypoint.thread.clone() };
        Waypoint { thread, ..waypoint.clone() }
    };
    left.iter().map(bound).collect()
}

/// The functions that the main thread is in when a run begins, outermost first.
fn activations(program: &Program, trace: &Trace) -> Vec<Activation> {
    let Some(first) = trace.events.first() else { return Vec::new() };
    let calls = trace.calls(first.location, first.stack).map(|call| trace.location(call).address);
    let activation = |address: u64| {
        let code = program.code_at(address)?;
        let at = code.linked(address);
        let flow = code.flow(code.function_at(at.checked_sub(1)?)?)?;
        Some(Activation { flow, at, bias: address.wrapping_sub(at) })
    };
    let mut activations: Vec<Activation> = calls.filter_map(activation).collect();
    activations.reverse();
    activations
}

/// The first place of a waypoint that was passed after `last`.
fn first_position(
    activations: &[Activation],
    waypoint: &Waypoint,
    last: Option<Position>,
) -> Option<Position> {
    let may_be_main = match &waypoint.thread {
        WhichThread::Any | WhichThread::Variable(_) => true,
        WhichThread::Id(id) => *id == ThreadId::main(),
    };
    if waypoint.demand != Demand::Pass || !may_be_main {
        return None;
    }
    let positions = activations.iter().enumerate().flat_map(|(number, activation)| {
        let linked = waypoint.points.iter().map(|point| point.wrapping_sub(activation.bias));
        linked.filter(|&place| activation.has_passed(place, activation.at)).map(move |place| (number, place))
    });
    positions.into_iter().find(|&(number, place)| match last {
        Some((earlier, before)) if earlier == number => activations[number].has_passed(before, place),
        Some((earlier, _)) => earlier < number,
        None => true,
    })
}

impl Activation {
    /// Whoever is at `later` has passed `place`.
    fn has_passed(&self, place: u64, later: u64) -> bool {
        let block = |address: u64| -> Option<BlockIndex> { self.flow.block_at(address.checked_sub(1)?) };
        match (block(place), block(later)) {
            (Some(before), Some(after)) if before == after => place < later,
            (Some(before), Some(after)) => self.flow.dominators().dominates(before, after),
            _ => false,
        }
    }
}
