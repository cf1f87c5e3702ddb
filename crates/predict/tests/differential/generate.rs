//! Random small programs, and a random run of each.

use threadbare_trace::{
    End, Event, EventIndex, EventKind, Frame, Location, LocationIndex, MemoryOrder, Object, ObjectIndex,
    ObjectName, Outcome, StackIndex, StackNode, ThreadId, ThreadIndex, Trace,
};

/// How locks are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Released in the reverse order of acquisition, no read-write locks: the programs of the paper's theorem.
    Nested,
    Any,
    /// As `Nested`, and nearly every access is to a variable whose own lock is held.
    Guarded,
}

const LOCKS: u64 = 3;
const VARIABLES: u64 = 3;
const MAX_EVENTS: u64 = 12;
/// Few lines for each thread, so that equal events are there to be merged.
const LINES: u64 = 5;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// One operation: what, on which object, on which line.
type Operation = (EventKind, ObjectIndex, u32);

/// The line of an event. The main thread has lines from 1, thread n from 100 n.
pub fn line(trace: &Trace, event: EventIndex) -> u32 {
    trace.location(trace.event(event).location).frames[0].line
}

fn variable(number: u64) -> ObjectIndex {
    ObjectIndex::new(1 + number as u32)
}

fn lock(number: u64) -> ObjectIndex {
    ObjectIndex::new((1 + VARIABLES + number) as u32)
}

fn thread_object(thread: u64) -> ObjectIndex {
    ObjectIndex::new((1 + VARIABLES + LOCKS + thread) as u32)
}

pub fn random_trace(seed: u64, discipline: Discipline) -> Trace {
    let mut random = Random(seed);
    let children = 2 + random.below(2);
    let mut programs: Vec<Vec<Operation>> = vec![Vec::new()];
    for thread in 1..=children {
        programs[0].push((EventKind::Fork, thread_object(thread), thread as u32));
        programs.push(child(&mut random, thread, discipline));
    }
    if discipline != Discipline::Guarded && random.below(2) == 0 {
        let joined = 1 + random.below(children);
        programs[0].push((EventKind::Join, thread_object(joined), 10));
        programs[0].push((EventKind::Write, variable(random.below(VARIABLES)), 11));
    }
    run(&mut random, &programs)
}

fn child(random: &mut Random, thread: u64, discipline: Discipline) -> Vec<Operation> {
    let mut operations = Vec::new();
    // Locks held, with whether their read side is.
    let mut held: Vec<(u64, bool)> = Vec::new();
    let count = 3 + random.below(MAX_EVENTS - 5);
    while (operations.len() + held.len()) < count as usize {
        let line = (100 * thread + 1 + random.below(LINES)) as u32;
        match random.below(10) {
            0..=2 if held.len() < 2 => {
                let lock_number = random.below(LOCKS);
                let shared = discipline == Discipline::Any && random.below(3) == 0;
                if held.iter().all(|(other, _)| *other != lock_number) {
                    held.push((lock_number, shared));
                    let kind = if shared { EventKind::ReadLock } else { EventKind::Lock };
                    operations.push((kind, lock(lock_number), line + 20));
                }
            }
            3 | 4 if !held.is_empty() => {
                let at = match discipline {
                    Discipline::Nested | Discipline::Guarded => held.len() - 1,
                    Discipline::Any => random.below(held.len() as u64) as usize,
                };
                operations.push(release(held.remove(at), line));
            }
            choice => {
                let kind = if choice < 8 { EventKind::Write } else { EventKind::Read };
                let number = accessed(random, &held, discipline);
                operations.extend(number.map(|number| (kind, variable(number), line)));
            }
        }
    }
    while let Some(last) = held.pop() {
        operations.push(release(last, 100 * thread as u32));
    }
    operations
}

/// Which variable is accessed next, if any.
fn accessed(random: &mut Random, held: &[(u64, bool)], discipline: Discipline) -> Option<u64> {
    if discipline != Discipline::Guarded || random.below(30) == 0 {
        return Some(random.below(VARIABLES));
    }
    (!held.is_empty()).then(|| held[random.below(held.len() as u64) as usize].0)
}

fn release((number, shared): (u64, bool), line: u32) -> Operation {
    (if shared { EventKind::ReadUnlock } else { EventKind::Unlock }, lock(number), line)
}

/// Runs the programs in turns of a few operations, as locks allow. A run that gets stuck ends there.
fn run(random: &mut Random, programs: &[Vec<Operation>]) -> Trace {
    let mut trace = empty(programs.len());
    let mut done = vec![0; programs.len()];
    let mut begun = vec![false; programs.len()];
    begun[0] = true;
    // Holders of each object that is a lock: thread, shared.
    let mut holders: Vec<Vec<(usize, bool)>> = vec![Vec::new(); trace.objects.len()];
    loop {
        let can_run = |thread: usize| {
            let Some(&(kind, object, _)) = programs[thread].get(done[thread]) else { return false };
            let holders = &holders[object.index()];
            begun[thread]
                && match kind {
                    EventKind::Lock => holders.is_empty(),
                    EventKind::ReadLock => holders.iter().all(|(_, shared)| *shared),
                    EventKind::Join => {
                        let child = object.index() - thread_object(0).index();
                        done[child] == programs[child].len()
                    }
                    _ => true,
                }
        };
        let ready: Vec<usize> = (0..programs.len()).filter(|&thread| can_run(thread)).collect();
        if ready.is_empty() {
            return trace;
        }
        let thread = ready[random.below(ready.len() as u64) as usize];
        let (kind, object, line) = programs[thread][done[thread]];
        match kind {
            EventKind::Lock => holders[object.index()].push((thread, false)),
            EventKind::ReadLock => holders[object.index()].push((thread, true)),
            EventKind::Unlock | EventKind::ReadUnlock => {
                holders[object.index()].retain(|(of, _)| *of != thread)
            }
            EventKind::Fork => begun[object.index() - thread_object(0).index()] = true,
            _ => {}
        }
        done[thread] += 1;
        push(&mut trace, ThreadIndex::at(thread), kind, object, line);
    }
}

fn empty(threads: usize) -> Trace {
    let named =
        |name: String| Object { name: ObjectName::Global { symbol: name.clone(), offset: 0 }, display: name };
    let mut objects = vec![Object::none()];
    objects.extend((0..VARIABLES).map(|number| named(format!("x{number}"))));
    objects.extend((0..LOCKS).map(|number| named(format!("l{number}"))));
    objects.extend(
        ThreadIndex::first(threads)
            .map(|thread| Object { name: ObjectName::Thread(thread), display: format!("thread {thread}") }),
    );
    let children = (1..threads as u32).map(|ordinal| ThreadId::main().child(ordinal));
    Trace {
        program: String::new(),
        arguments: Vec::new(),
        threads: std::iter::once(ThreadId::main()).chain(children).collect(),
        objects,
        locations: vec![Location::default()],
        stacks: vec![StackNode::default()],
        events: Vec::new(),
        pending: Vec::new(),
        end: End::Finished,
    }
}

fn push(trace: &mut Trace, thread: ThreadIndex, kind: EventKind, object: ObjectIndex, line: u32) {
    let location =
        Location { address: 0, frames: vec![Frame { file: "f".into(), line, ..Frame::default() }] };
    let known = trace.locations.iter().position(|other| *other == location);
    let location = known.unwrap_or_else(|| {
        trace.locations.push(location);
        trace.locations.len() - 1
    });
    trace.events.push(Event {
        thread,
        kind,
        order: MemoryOrder::Relaxed,
        outcome: Outcome::Done,
        size: 4,
        object,
        location: LocationIndex::at(location),
        stack: StackIndex::EMPTY,
        value: 0,
    });
}
