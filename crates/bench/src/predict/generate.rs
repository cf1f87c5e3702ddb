//! Traces of any length, that look like those of a program: objects with a few fields, each guarded by a lock; methods
//! that access the fields of one object in a fixed order; and here and there a lock that is forgotten, or two that are
//! taken in either order.

use threadbare_trace::{
    End, Event, EventKind, Frame, Location, LocationIndex, MemoryOrder, Object, ObjectIndex, ObjectName,
    Outcome, StackIndex, StackNode, ThreadId, ThreadIndex, Trace,
};

pub const DESCRIPTION: &str = "8 threads, 1000 variables, 20 locks, 10 % synchronisation";

const THREADS: u64 = 8;
const LOCKS: u64 = 20;
/// Each lock guards so many variables: the fields of a few objects.
const GUARDED: u64 = 50;
const FIELDS: u64 = 5;
/// Methods that objects have, and the accesses that each of them makes.
const METHODS: u64 = 8;
const ACCESSES: u64 = 9;
/// The last method forgets the lock of objects under the last lock.
const FORGETFUL: (u64, u64) = (METHODS - 1, LOCKS - 1);
/// One piece of work in so many takes a second lock inside.
const NESTS: u64 = 50;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Objects: variables, locks, threads, in this order after "none".
fn variable(lock: u64, number: u64) -> u32 {
    (1 + lock * GUARDED + number) as u32
}

fn lock(number: u64) -> u32 {
    (1 + LOCKS * GUARDED + number) as u32
}

fn thread(number: u64) -> u32 {
    (1 + LOCKS * GUARDED + LOCKS + number) as u32
}

/// Lines: few for each kind of object, as in code that is run many times.
const LINES: u32 = 200;

pub fn trace(events: usize) -> Trace {
    let mut generator = Generator { random: Random(events as u64), trace: empty(events), left: events };
    for number in 1..THREADS {
        generator.push(0, EventKind::Fork, thread(number), 1);
    }
    while generator.left > 0 {
        generator.round();
    }
    generator.trace
}

/// A method being run.
struct Call {
    thread: u64,
    guard: u64,
    object: u64,
    method: u64,
    done: u64,
}

impl Call {
    fn is_locked(&self) -> bool {
        (self.method, self.guard) != FORGETFUL
    }
}

struct Generator {
    random: Random,
    trace: Trace,
    left: usize,
}

impl Generator {
    fn push(&mut self, thread: u64, kind: EventKind, object: u32, line: u32) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.trace.events.push(Event {
            thread: ThreadIndex::at(thread as usize),
            kind,
            order: MemoryOrder::Relaxed,
            outcome: Outcome::Done,
            size: 4,
            object: ObjectIndex::new(object),
            location: LocationIndex::new(1 + line % LINES),
            stack: StackIndex::EMPTY,
            value: 0,
        });
    }

    /// Two threads call a method each, of objects under different locks, their accesses mixed.
    fn round(&mut self) {
        let one = self.random.below(THREADS);
        let other = (one + 1 + self.random.below(THREADS - 1)) % THREADS;
        let first = self.random.below(LOCKS);
        let second = (first + 1 + self.random.below(LOCKS - 1)) % LOCKS;
        let mut calls = [(one, first), (other, second)].map(|(thread, guard)| Call {
            thread,
            guard,
            object: self.random.below(GUARDED / FIELDS),
            method: self.random.below(METHODS),
            done: 0,
        });
        for Call { thread, guard, .. } in calls.iter().filter(|call| call.is_locked()) {
            self.push(*thread, EventKind::Lock, lock(*guard), 2 + *guard as u32);
        }
        while calls.iter().any(|call| call.done < ACCESSES) {
            let call = &mut calls[self.random.below(2) as usize];
            if call.done < ACCESSES {
                self.access(call);
                call.done += 1;
            }
        }
        for Call { thread, guard, .. } in calls.iter().filter(|call| call.is_locked()) {
            self.push(*thread, EventKind::Unlock, lock(*guard), 30 + *guard as u32);
        }
        if self.random.below(NESTS) == 0 {
            self.nest(one, first, second);
        }
    }

    fn access(&mut self, call: &Call) {
        // What a method does is the same every time, and as good as random.
        let mut code = Random(call.method * ACCESSES + call.done);
        let field = call.object * FIELDS + code.below(FIELDS);
        let kind = if code.below(4) == 0 { EventKind::Write } else { EventKind::Read };
        let line = 60 + (call.method * ACCESSES + call.done) as u32;
        self.push(call.thread, kind, variable(call.guard, field), line);
    }

    fn nest(&mut self, thread: u64, outer: u64, inner: u64) {
        self.push(thread, EventKind::Lock, lock(outer), 2 + outer as u32);
        self.push(thread, EventKind::Lock, lock(inner), 190);
        self.push(thread, EventKind::Read, variable(inner, 0), 192);
        self.push(thread, EventKind::Unlock, lock(inner), 191);
        self.push(thread, EventKind::Unlock, lock(outer), 30 + outer as u32);
    }
}

fn empty(events: usize) -> Trace {
    let named =
        |name: String| Object { name: ObjectName::Global { symbol: name.clone(), offset: 0 }, display: name };
    let mut objects = vec![Object::none()];
    objects.extend((0..LOCKS * GUARDED).map(|number| named(format!("v{number}"))));
    objects.extend((0..LOCKS).map(|number| named(format!("l{number}"))));
    objects.extend((0..THREADS as u32).map(|number| Object {
        name: ObjectName::Thread(ThreadIndex::new(number)),
        display: format!("thread {number}"),
    }));
    let place = |line: u32| Location {
        address: 0,
        frames: vec![Frame { file: "generated".into(), line: line + 1, ..Frame::default() }],
    };
    let children = (1..THREADS as u32).map(|ordinal| ThreadId::main().child(ordinal));
    Trace {
        program: String::new(),
        arguments: Vec::new(),
        threads: std::iter::once(ThreadId::main()).chain(children).collect(),
        objects,
        locations: std::iter::once(Location::default()).chain((0..LINES).map(place)).collect(),
        stacks: vec![StackNode::default()],
        events: Vec::with_capacity(events),
        pending: Vec::new(),
        end: End::Finished,
    }
}
