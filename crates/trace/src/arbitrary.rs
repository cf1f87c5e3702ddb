//! Strategies for property tests: any value of the vocabulary, with texts that try the formats' escapes.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{
    End, EndKind, Event, EventKind, Failure, FailureKind, Frame, Location, LocationIndex, MemoryOrder,
    Object, ObjectIndex, ObjectName, Outcome, Pending, Related, Role, StackIndex, StackNode, ThreadId,
    ThreadIndex, Trace, TracePlace,
};

/// Texts as they are in programs, and texts as they should not be.
pub fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        3 => "[a-z_]{1,8}",
        2 => "[-@#|x\\\\ \t\r\n()\\[\\]0-9.:]{0,6}",
        1 => any::<String>(),
    ]
}

/// Numbers of every length.
pub fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
}

pub fn thread() -> impl Strategy<Value = ThreadId> {
    vec(prop_oneof![9 => 1..4u32, 1 => 1..=u32::MAX], 0..4)
        .prop_map(|children| children.into_iter().fold(ThreadId::main(), |thread, child| thread.child(child)))
}

pub fn kind() -> impl Strategy<Value = EventKind> {
    select(EventKind::ALL)
}

fn frame() -> impl Strategy<Value = Frame> {
    (text(), text(), any::<u32>(), 0..200u32).prop_map(|(function, file, line, column)| Frame {
        function,
        file,
        line,
        column,
    })
}

fn location() -> impl Strategy<Value = Location> {
    (number(), vec(frame(), 0..3)).prop_map(|(address, frames)| Location { address, frames })
}

/// Objects with indices that are not in range yet.
fn object() -> impl Strategy<Value = Object> {
    let name = prop_oneof![
        Just(ObjectName::None),
        (text(), number()).prop_map(|(symbol, offset)| ObjectName::Global { symbol, offset }),
        (any::<[u32; 3]>(), number()).prop_map(|([site, thread, ordinal], offset)| ObjectName::Heap {
            site: StackIndex::new(site),
            thread: ThreadIndex::new(thread),
            ordinal,
            offset
        }),
        (any::<u32>(), any::<i64>())
            .prop_map(|(thread, offset)| ObjectName::Stack { thread: ThreadIndex::new(thread), offset }),
        any::<u32>().prop_map(|thread| ObjectName::Thread(ThreadIndex::new(thread))),
        number().prop_map(|address| ObjectName::Memory { address }),
    ];
    (name, text()).prop_map(|(name, display)| Object { name, display })
}

fn event() -> impl Strategy<Value = Event> {
    let detail = (kind(), select(MemoryOrder::ALL), select(Outcome::ALL));
    (any::<[u32; 4]>(), detail, number(), number()).prop_map(
        |([thread, object, location, stack], (kind, order, outcome), size, value)| Event {
            thread: ThreadIndex::new(thread),
            kind,
            order,
            outcome,
            size: size as u32,
            object: ObjectIndex::new(object),
            location: LocationIndex::new(location),
            stack: StackIndex::new(stack),
            value,
        },
    )
}

fn pending() -> impl Strategy<Value = Pending> {
    (any::<[u32; 4]>(), kind(), any::<bool>(), vec(any::<u32>(), 0..3)).prop_map(
        |([thread, object, location, stack], kind, blocked, holders)| Pending {
            thread: ThreadIndex::new(thread),
            kind,
            object: ObjectIndex::new(object),
            location: LocationIndex::new(location),
            stack: StackIndex::new(stack),
            blocked,
            holders: holders.into_iter().map(ThreadIndex::new).collect(),
        },
    )
}

/// Every kind of failure, with any detail.
pub fn failure_kind() -> impl Strategy<Value = FailureKind> + Clone {
    (select(FailureKind::ALL), any::<i32>()).prop_map(|(kind, detail)| kind.with_detail(detail))
}

/// Places in a trace with indices that are not in range yet.
fn trace_place() -> impl Strategy<Value = TracePlace> + Clone {
    any::<[u32; 3]>().prop_map(|[thread, location, stack]| TracePlace {
        thread: ThreadIndex::new(thread),
        location: LocationIndex::new(location),
        stack: StackIndex::new(stack),
    })
}

/// Every way to end, with places of this kind. Each role has at most one place.
pub fn end<P: Clone + fmt::Debug + 'static>(
    place: impl Strategy<Value = P> + Clone + 'static,
) -> impl Strategy<Value = End<P>> {
    let related = vec(option::of(place.clone()), Role::ALL.len()).prop_map(|places| {
        let related = Role::ALL.iter().zip(places);
        related.filter_map(|(&role, at)| Some(Related { role, at: at? })).collect()
    });
    let failure = (failure_kind(), text(), place.clone(), related)
        .prop_map(|(kind, message, at, related)| End::Failed(Failure { kind, message, at, related }));
    select(EndKind::ALL).prop_flat_map(move |kind| match kind {
        EndKind::Finished => Just(End::Finished).boxed(),
        EndKind::Failed => failure.clone().boxed(),
        EndKind::EventBound => Just(End::EventBound).boxed(),
        EndKind::TimeLimit => option::of(place.clone()).prop_map(|at| End::TimeLimit { at }).boxed(),
        EndKind::MemoryLimit => Just(End::MemoryLimit).boxed(),
        EndKind::Diverged => {
            (any::<u32>(), text()).prop_map(|(step, reason)| End::Diverged { step, reason }).boxed()
        }
        EndKind::Unsupported => {
            (text(), place.clone()).prop_map(|(message, at)| End::Unsupported { message, at }).boxed()
        }
        EndKind::Exec => (text(), place.clone()).prop_map(|(program, at)| End::Exec { program, at }).boxed(),
    })
}

/// Any trace whose indices are in range.
pub fn trace() -> impl Strategy<Value = Trace> {
    let tables =
        (vec(thread(), 1..5), vec(location(), 1..5), vec(any::<[u32; 2]>(), 1..6), vec(object(), 1..6));
    let run = (vec(event(), 0..12), vec(pending(), 0..3), end(trace_place()));
    (text(), vec(text(), 0..3), tables, run).prop_map(
        |(program, arguments, (threads, locations, stacks, objects), (events, pending, end))| {
            let stacks = stacks.into_iter().enumerate();
            let stacks = stacks
                .map(|(i, [parent, location])| StackNode {
                    parent: StackIndex::new(parent % i.max(1) as u32),
                    location: LocationIndex::new(location),
                })
                .collect();
            let mut trace =
                Trace { program, arguments, threads, objects, locations, stacks, events, pending, end };
            bring_into_range(&mut trace);
            trace
        },
    )
}

fn bring_into_range(trace: &mut Trace) {
    let (threads, locations) = (trace.threads.len(), trace.locations.len());
    let (stacks, objects) = (trace.stacks.len(), trace.objects.len());
    let thread = |thread: &mut ThreadIndex| *thread = ThreadIndex::at(thread.index() % threads);
    let location = |location: &mut LocationIndex| *location = LocationIndex::at(location.index() % locations);
    let stack = |stack: &mut StackIndex| *stack = StackIndex::at(stack.index() % stacks);
    let object = |object: &mut ObjectIndex| *object = ObjectIndex::at(object.index() % objects);
    for node in &mut trace.stacks {
        location(&mut node.location);
    }
    for object in &mut trace.objects {
        match &mut object.name {
            ObjectName::Heap { site, thread: allocator, .. } => {
                stack(site);
                thread(allocator);
            }
            ObjectName::Stack { thread: index, .. } | ObjectName::Thread(index) => thread(index),
            ObjectName::None | ObjectName::Global { .. } | ObjectName::Memory { .. } => {}
        }
    }
    for event in &mut trace.events {
        thread(&mut event.thread);
        location(&mut event.location);
        stack(&mut event.stack);
        object(&mut event.object);
    }
    for pending in &mut trace.pending {
        thread(&mut pending.thread);
        location(&mut pending.location);
        stack(&mut pending.stack);
        object(&mut pending.object);
        pending.holders.iter_mut().for_each(thread);
    }
    let end = std::mem::replace(&mut trace.end, End::Finished);
    trace.end = end.map(|mut at| {
        thread(&mut at.thread);
        location(&mut at.location);
        stack(&mut at.stack);
        at
    });
}
