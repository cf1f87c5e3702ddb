//! Small runs, and exactly what a person sees of them.

use threadbare_trace::{
    End, Event, EventKind, FailureKind, Frame, Location, MemoryOrder, Object, ObjectName, Outcome, Pending,
    StackNode, ThreadId, Trace,
};

use super::View;

const WIDTH: usize = 100;

/// A run in the making. Location `n` is line `n` of `main.c`; objects are named as they come.
struct Run {
    trace: Trace,
    source: Vec<(u32, &'static str)>,
}

impl Run {
    fn new(children: u32, lines: u32, source: &[(u32, &'static str)]) -> Run {
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

    fn object(&mut self, display: &str) -> u32 {
        let known = self.trace.objects.iter().position(|object| object.display == display);
        let index = known.unwrap_or(self.trace.objects.len());
        if known.is_none() {
            let name = ObjectName::Global { symbol: display.into(), offset: 0 };
            self.trace.objects.push(Object { name, display: display.into() });
        }
        index as u32
    }

    fn event(&mut self, thread: u32, kind: EventKind, line: u32, object: &str, value: u64) -> &mut Event {
        let object = if object.is_empty() { 0 } else { self.object(object) };
        self.trace.events.push(Event {
            thread,
            kind,
            order: MemoryOrder::Relaxed,
            outcome: Outcome::Done,
            size: if kind.is_access() { 4 } else { 0 },
            object,
            location: line,
            stack: 0,
            value,
        });
        self.trace.events.last_mut().expect("just pushed")
    }

    fn blocked(&mut self, thread: u32, kind: EventKind, line: u32, object: u32, holders: &[u32]) {
        let holders = holders.to_vec();
        let pending = Pending { thread, kind, object, location: line, stack: 0, blocked: true, holders };
        self.trace.pending.push(pending);
    }

    fn fail(&mut self, kind: FailureKind, message: &str, thread: u32, location: u32) {
        self.trace.end = End::Failed { kind, message: message.into(), thread, location };
    }

    fn view(&self, width: usize, colour: bool) -> String {
        let source = |file: &str, line: u32| {
            let known = self.source.iter().find(|(number, _)| file == "/src/main.c" && *number == line);
            known.map(|(_, text)| (*text).to_string())
        };
        View { trace: &self.trace, source: &source, width, colour }.to_string()
    }

    #[track_caller]
    fn shows(&self, expected: &str) {
        let shown = self.view(WIDTH, false);
        assert!(shown == expected, "shown:\n{shown}\nexpected:\n{expected}");
    }
}

fn frame(file: &str, line: u32) -> Frame {
    let function = if line < 10 { "work" } else { "main" };
    Frame { function: function.into(), file: format!("/src/{file}"), line, column: 1 }
}

const COUNTER: [(u32, &str); 5] = [
    (4, "int seen = counter;"),
    (5, "counter = seen + 1;"),
    (14, "pthread_create(&a, NULL, work, NULL);"),
    (17, "pthread_join(b, NULL);"),
    (18, "assert(counter == 2);"),
];

/// Two threads read a counter before either writes it.
fn lost_update() -> Run {
    use EventKind::{Begin, End, Fork, Join, Read, Write};
    let mut run = Run::new(2, 20, &COUNTER);
    run.event(0, Fork, 14, "thread 0.1", 1);
    run.event(0, Fork, 14, "thread 0.2", 2);
    run.event(1, Begin, 3, "", 0);
    run.event(1, Read, 4, "counter", 0);
    run.event(2, Begin, 3, "", 0);
    run.event(2, Read, 4, "counter", 0);
    run.event(2, Write, 5, "counter", 1);
    run.event(2, End, 0, "", 0);
    run.event(1, EventKind::Allocate, 4, "", 0);
    run.event(1, Write, 5, "counter", 1);
    run.event(1, End, 0, "", 0);
    run.event(0, Join, 17, "thread 0.2", 2);
    run.event(0, Read, 18, "counter", 1);
    run.fail(FailureKind::Assertion, "counter == 2", 0, 18);
    run
}

#[test]
fn a_lost_update_is_seen_across_the_columns() {
    lost_update().shows("");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let run = lost_update();
    let coloured = run.view(WIDTH, true);
    assert!(coloured.starts_with("\x1b[1;31massertion failed: counter == 2\x1b[0m\n"));
    let plain: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').map_or("", |(_, text)| text) })
        .collect();
    assert_eq!(plain, run.view(WIDTH, false));
}

#[test]
fn a_deadlock_says_who_waits_for_whom() {
    use EventKind::{Begin, Join, Lock};
    let mut run =
        Run::new(2, 20, &[(4, "lock(first);"), (5, "lock(second);"), (17, "pthread_join(a, NULL);")]);
    run.event(1, Begin, 3, "", 0);
    run.event(1, Lock, 4, "accounts[0].lock", 0);
    run.event(2, Begin, 3, "", 0);
    run.event(2, Lock, 4, "accounts[1].lock", 0);
    let (first, second) = (run.object("accounts[0].lock"), run.object("accounts[1].lock"));
    run.trace.objects.push(Object { name: ObjectName::Thread(1), display: "thread 0.1".into() });
    run.blocked(0, Join, 17, 3, &[1]);
    run.blocked(1, Lock, 5, second, &[2]);
    run.blocked(2, Lock, 5, first, &[1]);
    run.fail(FailureKind::Deadlock, "", 0, 0);
    run.shows("");
}

#[test]
fn many_threads_share_one_column() {
    use EventKind::{AtomicRmw, Begin, End, Read};
    let mut run = Run::new(5, 20, &[(4, "if (!done)"), (5, "\tcompare_exchange(&done, 0, 1);")]);
    for thread in 1..=4 {
        run.event(thread, Begin, 3, "", 0);
        run.event(thread, Read, 4, "done", 0);
    }
    run.event(5, Begin, 3, "", 0);
    run.event(5, End, 0, "", 0);
    for thread in 1..=4 {
        let event = run.event(thread, AtomicRmw, 5, "done", 1);
        event.outcome = if thread == 1 { Outcome::Done } else { Outcome::Failed };
    }
    run.fail(FailureKind::Signal(11), "address 0x0", 4, 5);
    run.shows("");
}

#[test]
fn the_middle_of_a_long_stretch_is_left_out() {
    use EventKind::{Begin, Write};
    let mut run = Run::new(1, 40, &[]);
    run.event(1, Begin, 3, "", 0);
    for line in 1..=30 {
        run.event(1, Write, line, "x", u64::from(line));
    }
    run.event(0, Write, 35, "x", 0xffff_ffff);
    run.shows("");
}

#[test]
fn a_livelock_names_the_lines_it_runs_around_in() {
    use EventKind::{AtomicLoad, Yield};
    let mut run = Run::new(2, 20, &[(7, "while (turn != me)"), (8, "sched_yield();")]);
    for _ in 0..100 {
        for thread in [1, 2] {
            run.event(thread, AtomicLoad, 7, "turn", 0);
            run.event(thread, AtomicLoad, 7, "turn", 0);
            run.event(thread, Yield, 8, "", 0);
        }
    }
    run.fail(FailureKind::Livelock, "", 0, 0);
    let shown = run.view(WIDTH, false);
    println!("{shown}");
    let headline = "";
    assert_eq!(shown.split("\n\n").next(), Some(headline));
    assert!(shown.contains("\n⋮ 183 switches left out\n"), "{shown}");
}

/// `strlen` and the headers it is inlined from are nobody's idea of where their program failed.
#[test]
fn library_frames_give_way_to_the_callers_line() {
    let mut run = Run::new(0, 20, &[(12, "return length(name);")]);
    let header =
        Frame { function: "strlen".into(), file: "/usr/include/string.h".into(), line: 9, column: 1 };
    let libc = Frame { function: "__strlen_avx2".into(), ..Frame::default() };
    run.trace.locations.push(Location { address: 99, frames: vec![libc, header] });
    run.trace.stacks.push(StackNode { parent: 0, location: 12 });
    let location = run.trace.locations.len() as u32 - 1;
    let event = run.event(0, EventKind::Read, location, "name", 0);
    (event.stack, event.size) = (1, 8);
    run.event(0, EventKind::Failure, location, "", 0).stack = 1;
    run.fail(FailureKind::Signal(11), "address 0x0", 0, location);
    run.shows("");
}

#[test]
fn files_are_named_where_they_change() {
    let mut run = Run::new(0, 20, &[(12, "push(&queue);"), (13, "pop(&queue);")]);
    run.trace.locations.push(Location { address: 99, frames: vec![frame("queue.h", 120)] });
    run.event(0, EventKind::Read, 12, "queue.size", 0);
    run.event(0, EventKind::Write, 21, "queue.size", 1);
    run.event(0, EventKind::Read, 13, "queue.size", 1);
    run.shows("");
}

#[test]
fn a_trace_with_holes_is_still_shown() {
    let mut run = Run::new(0, 0, &[]);
    run.shows("finished without a failure\n");
    run.event(7, EventKind::Lock, 0, "", 0);
    run.event(7, EventKind::Read, 9, "", 1).object = 9;
    run.trace.stacks.push(StackNode { parent: 1, location: 9 });
    run.trace.events[1].stack = 1;
    run.fail(FailureKind::ExitCode(3), "", 9, 9);
    run.shows("");
    for width in 0..40 {
        run.view(width, true);
        lost_update().view(width, false);
    }
}

#[test]
fn every_end_has_a_line() {
    let title = |end| super::headline::title(&end, 500);
    let step = End::Diverged { step: 3, reason: "thread 0.1 has ended".into() };
    let unsupported = End::Unsupported { message: "fork".into(), thread: 0, location: 0 };
    assert_eq!(title(End::EventBound), "stopped at the limit on events (500), but was getting somewhere");
    assert_eq!(title(End::TimeLimit), "stopped at the time limit, while a thread ran without synchronising");
    assert_eq!(title(End::MemoryLimit), "stopped because it used too much memory");
    assert_eq!(title(step), "the run left its schedule at step 3: thread 0.1 has ended");
    assert_eq!(title(unsupported), "not supported: fork");
}
