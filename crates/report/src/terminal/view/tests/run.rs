//! Traces built by hand.

use threadbare_trace::{
    End, Event, EventKind, Failure, FailureKind, Frame, Location, LocationIndex, MemoryOrder, Object,
    ObjectIndex, ObjectName, Outcome, Pending, StackIndex, StackNode, ThreadId, ThreadIndex, Trace,
    TracePlace,
};

use super::super::View;

pub const WIDTH: usize = 100;

/// A run in the making. Location `n` is line `n` of `main.c`; objects are named as they come.
pub struct Run {
    pub trace: Trace,
    source: Vec<(u32, &'static str)>,
}

impl Run {
    pub fn new(children: u32, lines: u32, source: &[(u32, &'static str)]) -> Run {
        let main = ThreadId::main();
        let line = |line| Location { address: u64::from(line), frames: vec![frame("main.c", line)] };
        let trace = Trace {
            program: "main".into(),
            arguments: Vec::new(),
            threads: (0..=children).map(|i| if i == 0 { main.clone() } else { main.child(i) }).collect(),
            objects: vec![Object::none()],
            locations: std::iter::once(Location::default()).chain((1..=lines).map(line)).collect(),
            stacks: vec![StackNode::default()],
            events: Vec::new(),
            pending: Vec::new(),
            end: End::Finished,
        };
        Run { trace, source: source.to_vec() }
    }

    pub fn object(&mut self, display: &str) -> ObjectIndex {
        let known = self.trace.objects.iter().position(|object| object.display == display);
        let index = known.unwrap_or(self.trace.objects.len());
        if known.is_none() {
            let name = ObjectName::Global { symbol: display.into(), offset: 0 };
            self.trace.objects.push(Object { name, display: display.into() });
        }
        ObjectIndex::at(index)
    }

    pub fn event(&mut self, thread: u32, kind: EventKind, line: u32, object: &str, value: u64) -> &mut Event {
        let object = if object.is_empty() { ObjectIndex::NONE } else { self.object(object) };
        self.trace.events.push(Event {
            thread: ThreadIndex::new(thread),
            kind,
            order: MemoryOrder::Relaxed,
            outcome: Outcome::Done,
            size: if kind.is_access() { 4 } else { 0 },
            object,
            location: LocationIndex::new(line),
            stack: StackIndex::EMPTY,
            value,
        });
        self.trace.events.last_mut().expect("just pushed")
    }

    pub fn blocked(&mut self, thread: u32, kind: EventKind, line: u32, object: ObjectIndex, holders: &[u32]) {
        self.trace.pending.push(Pending {
            thread: ThreadIndex::new(thread),
            kind,
            object,
            location: LocationIndex::new(line),
            stack: StackIndex::EMPTY,
            blocked: true,
            holders: holders.iter().copied().map(ThreadIndex::new).collect(),
        });
    }

    pub fn fail(&mut self, kind: FailureKind, message: &str, thread: u32, location: u32) {
        let at = TracePlace {
            thread: ThreadIndex::new(thread),
            location: LocationIndex::new(location),
            stack: StackIndex::EMPTY,
        };
        self.trace.end = End::Failed(Failure::new(kind, message, at));
    }

    pub fn view(&self, width: usize, colour: bool) -> String {
        let source = |file: &str, line: u32| {
            let known = self.source.iter().find(|(number, _)| file == "/src/main.c" && *number == line);
            known.map(|(_, text)| (*text).to_string())
        };
        View { trace: &self.trace, source: &source, width, colour }.to_string()
    }

    #[track_caller]
    pub fn shows(&self, expected: &str) {
        let shown = self.view(WIDTH, false);
        assert!(shown == expected, "shown:\n{shown}\nexpected:\n{expected}");
    }
}

/// The lines before 10 are of `work`, the others of `main`.
pub fn frame(file: &str, line: u32) -> Frame {
    let function = if line < 10 { "work" } else { "main" };
    Frame { function: function.into(), file: format!("/src/{file}"), line, column: 1 }
}
