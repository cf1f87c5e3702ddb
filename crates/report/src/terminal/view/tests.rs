//! Small runs, and exactly what a person sees of them.

mod run;

use threadbare_trace::{
    EventKind, FailureKind, Frame, Location, LocationIndex, Object, ObjectIndex, ObjectName, Outcome,
    StackIndex, StackNode, ThreadIndex,
};

use run::{Run, WIDTH, frame};

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
    lost_update().shows(
        "\
assertion failed: counter == 2
  in main at main.c:18, thread 0

what happened, in main.c:

thread 0                                 │ thread 0.1             │ thread 0.2
main                                     │ work                   │ work
─────────────────────────────────────────┼────────────────────────┼───────────────────────
14 pthread_create(&a, NULL, work, NULL); │                        │
                                         │    begins              │
                                         │  4 int seen = counter; │
                                         │      reads counter: 0  │
                                         │    ⋯ interrupted       │
                                         │                        │    begins
                                         │                        │  4 int seen = counter;
                                         │                        │      reads counter: 0
                                         │                        │  5 counter = seen + 1;
                                         │                        │      writes counter: 1
                                         │                        │    ends
                                         │  5 counter = seen + 1; │
                                         │      writes counter: 1 │
                                         │    ends                │
17 pthread_join(b, NULL);                │                        │
18 assert(counter == 2);                 │                        │
     reads counter: 1                    │                        │
   ✗ assertion failed: counter == 2      │                        │
",
    );
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
    run.trace
        .objects
        .push(Object { name: ObjectName::Thread(ThreadIndex::new(1)), display: "thread 0.1".into() });
    run.blocked(0, Join, 17, ObjectIndex::new(3), &[1]);
    run.blocked(1, Lock, 5, second, &[2]);
    run.blocked(2, Lock, 5, first, &[1]);
    run.fail(FailureKind::Deadlock, "", 0, 0);
    run.shows(
        "\
deadlock
  thread 0 waits for thread 0.1 to end (main.c:17 in main)
  thread 0.1 waits to lock accounts[1].lock (main.c:5 in work), held by thread 0.2
  thread 0.2 waits to lock accounts[0].lock (main.c:5 in work), held by thread 0.1

what happened, in main.c:

thread 0                        │ thread 0.1                      │ thread 0.2
main                            │ work                            │ work
────────────────────────────────┼─────────────────────────────────┼─────────────────────────────────
                                │    begins                       │
                                │  4 lock(first);                 │
                                │    ⋯ interrupted                │
                                │                                 │    begins
                                │                                 │  4 lock(first);
17 pthread_join(a, NULL);       │  5 lock(second);                │  5 lock(second);
   ✗ waits for thread 0.1 to e… │    ✗ waits to lock accounts[1]… │    ✗ waits to lock accounts[0].…
",
    );
}

#[test]
fn many_threads_share_one_column() {
    use EventKind::{AtomicRmw, Begin, End, Read};
    let mut run = Run::new(5, 20, &[(4, "if (!done)"), (5, "compare_exchange(&done,\t0, 1);")]);
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
    run.shows(
        "\
SIGSEGV: address 0x0
  in work at main.c:5, thread 0.4

what happened, in main.c:

threads: 0.1, 0.2, 0.3, 0.4 work

0.1    begins
     4 if (!done)
         reads done: 0
       ⋯ interrupted
  0.2    begins
       4 if (!done)
           reads done: 0
         ⋯ interrupted
    0.3    begins
         4 if (!done)
             reads done: 0
           ⋯ interrupted
      0.4    begins
           4 if (!done)
               reads done: 0
             ⋯ interrupted
0.1  5 compare_exchange(&done, 0, 1);
         writes done: 1
  0.2  5 compare_exchange(&done, 0, 1);
           exchanges nothing, finds done: 1
    0.3  5 compare_exchange(&done, 0, 1);
             exchanges nothing, finds done: 1
      0.4  5 compare_exchange(&done, 0, 1);
               exchanges nothing, finds done: 1
             ✗ SIGSEGV: address 0x0
",
    );
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
    run.shows(
        "\
finished without a failure

what happened, in main.c:

thread 0          │ thread 0.1
main              │ work
──────────────────┼───────────────────
                  │    begins
                  │  1 in work
                  │      writes x: 1
                  │  2 in work
                  │      writes x: 2
                  │    ⋮ 24 more lines
                  │ 27 in main
                  │      writes x: 27
                  │ 28 in main
                  │      writes x: 28
                  │ 29 in main
                  │      writes x: 29
                  │ 30 in main
                  │      writes x: 30
35 in main        │
     writes x: -1 │
",
    );
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
    let headline = "\
livelock
  no thread got anywhere in the last 150 steps:
  thread 0.1 runs around in
    main.c:7  while (turn != me)
    main.c:8  sched_yield();
  thread 0.2 runs around in
    main.c:7  while (turn != me)
    main.c:8  sched_yield();";
    assert_eq!(shown.split("\n\n").next(), Some(headline));
    assert!(shown.contains("\n⋮ 183 switches left out\n"), "{shown}");
}

/// `strlen` and the headers it is inlined from are nobody's idea of where their program failed.
#[test]
fn library_frames_give_way_to_the_callers_line() {
    let mut run = Run::new(1, 20, &[(12, "return length(name);")]);
    let header =
        Frame { function: "strlen".into(), file: "/usr/include/string.h".into(), line: 9, column: 1 };
    let libc = Frame { function: "__strlen_avx2".into(), ..Frame::default() };
    run.trace.locations.push(Location { address: 99, frames: vec![libc, header] });
    run.trace.stacks.push(StackNode { parent: StackIndex::new(0), location: LocationIndex::new(12) });
    let location = run.trace.locations.len() as u32 - 1;
    let event = run.event(0, EventKind::Read, location, "name", 0);
    (event.stack, event.size) = (StackIndex::new(1), 8);
    run.event(0, EventKind::Failure, location, "", 0).stack = StackIndex::new(1);
    run.fail(FailureKind::Signal(11), "address 0x0", 0, location);
    run.shows(
        "\
SIGSEGV: address 0x0
  in main at main.c:12, thread 0

what happened, in main.c:

thread 0
main
─────────────────────────
12 return length(name);
     reads name: 0
   ✗ SIGSEGV: address 0x0
",
    );
}

#[test]
fn what_went_wrong_on_the_way_is_not_left_out() {
    use EventKind::{Begin, Failure, Read, Wake, Write};
    let mut run = Run::new(1, 40, &[]);
    run.event(1, Begin, 3, "", 0);
    for line in 1..=30 {
        match line {
            9 | 11 | 13 => run.event(1, Wake, line, "full", 0).outcome = Outcome::TimedOut,
            20 => _ = run.event(1, Failure, line, "", 0),
            _ => _ = run.event(1, Write, line, "x", u64::from(line)),
        }
    }
    run.event(0, Read, 35, "x", 30);
    run.event(0, Failure, 35, "", 0);
    run.fail(FailureKind::Panic, "x is 30", 0, 35);
    let shown = run.view(WIDTH, false);
    let middle = "
                       │    ⋮ 10 more lines
                       │ 13 in main
                       │      timed out
                       │    ⋮ 6 more lines
                       │ 20 in main
                       │      panics
                       │    ⋮ 6 more lines
";
    assert!(shown.contains(middle), "{shown}");
    assert!(shown.ends_with("   ✗ panicked: x is 30 │\n"), "{shown}");
}

#[test]
fn files_are_named_where_they_change() {
    let mut run = Run::new(0, 20, &[(12, "push(&queue);"), (13, "pop(&queue);")]);
    run.trace.locations.push(Location { address: 99, frames: vec![frame("queue.h", 120)] });
    run.event(0, EventKind::Read, 12, "queue.size", 0);
    run.event(0, EventKind::Write, 21, "queue.size", 1);
    run.event(0, EventKind::Read, 13, "queue.size", 1);
    run.shows(
        "\
finished without a failure

what happened:

thread 0
main
──────────────────────────
main.c:
 12 push(&queue);
      reads queue.size: 0
queue.h:
120 in main
      writes queue.size: 1
main.c:
 13 pop(&queue);
      reads queue.size: 1
",
    );
}

#[test]
fn a_trace_with_holes_is_still_shown() {
    let mut run = Run::new(0, 0, &[]);
    run.shows("finished without a failure\n");
    run.event(7, EventKind::Lock, 0, "", 0);
    run.event(7, EventKind::Read, 9, "", 1).object = ObjectIndex::new(9);
    run.trace.stacks.push(StackNode { parent: StackIndex::new(1), location: LocationIndex::new(9) });
    run.trace.events[1].stack = StackIndex::new(1);
    run.fail(FailureKind::ExitCode(3), "", 9, 9);
    run.shows(
        "\
exit code 3

what happened:

thread #7        │ thread #9
─────────────────┼─────────────────
lock             │
(no source line) │
  reads 1        │
                 │ (no source line)
                 │ ✗ exit code 3
",
    );
    for width in 0..40 {
        run.view(width, true);
        lost_update().view(width, false);
    }
}
