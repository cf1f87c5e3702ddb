//! Sequences as a user types them, and as a property test makes them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use threadbare_trace::arbitrary::{text, thread};
use threadbare_trace::{Frame, ThreadId};

use super::suite::Entry;
use super::*;

fn parsed(text: &str) -> Sequence {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<Sequence>().expect_err(text).to_string()
}

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame { function: function.into(), file: file.into(), line, column: 7 }
}

#[test]
fn a_sequence_has_places_threads_and_callers() {
    let sequence = parsed("account.c:40@0.1,account.c:70:3, main > bank::pay > deposit@a");
    let waypoints: Vec<&Waypoint> = sequence.waypoints().collect();
    let file = FilePattern::new("account.c").expect("a name");
    assert_eq!(waypoints[0].thread, Some(ThreadName::Id(ThreadId::main().child(1))));
    assert_eq!(waypoints[1].place, Place::Line { file, line: 70, column: Some(3) });
    assert_eq!(waypoints[2].place, Place::Function("deposit".into()));
    assert_eq!(waypoints[2].thread, Some(ThreadName::Variable("a".into())));
    assert_eq!(waypoints[2].callers, ["main", "bank::pay"].map(|name| Place::Function(name.into())));
}

/// Protects what the documentation of the grammar shows, and the names that programs have.
#[test]
fn what_is_written_in_other_ways_means_the_same() {
    for (text, meaning) in [
        (" a.c:1 ,\n b.c:2 ", "a.c:1, b.c:2"),
        ("{ a.c:35 ,b.c:52@b }", "{a.c:35, b.c:52@b}"),
        ("init before worker before {f, g}", "init, worker, {f, g}"),
        ("free_all between queue.c:10 and queue.c:12", "queue.c:10@a, free_all@b, queue.c:12@a"),
        ("f between g@a and h", "g@a, f@c, h@a"),
        ("f@b between g and h@0.1, x between y and z", "g@0.1, f@b, h@0.1, y@a, x@c, z@a"),
        ("main>f > src/queue.rs:12 @ t2", "main > f > src/queue.rs:12@t2"),
        ("\"deposit\"", "deposit"),
        ("\"my file.c\":40", "\"my file.c\":40"),
        ("std::map<int, long>::at(int)@a", "std::map<int, long>::at(int)@a"),
        ("demo::main::{{closure}}, demo::{impl#0}::run", "demo::main::{{closure}}, demo::{impl#0}::run"),
        ("**/queue.rs:3, *.c:4, /abs/x.c:5", "**/queue.rs:3, *.c:4, /abs/x.c:5"),
        ("\"between\", \"x.c\"", "\"between\", \"x.c\""),
    ] {
        assert_eq!(parsed(text).to_string(), meaning, "{text}");
    }
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (text, message) in [
        ("", "expected a location, such as `account.c:40` or a function, found the end\n  \n  ^"),
        (
            "a.c:1,,b",
            "expected a location, such as `account.c:40` or a function, found `,`\n  a.c:1,,b\n        ^",
        ),
        ("a.c:1x", "`1x` is not a line\n  a.c:1x\n      ^^"),
        ("a.c:0", "a line is a number from 1\n  a.c:0\n      ^"),
        ("a.c:99999999999", "`99999999999` is not a line\n  a.c:99999999999\n      ^^^^^^^^^^^"),
        ("a.c", "expected a line after the file, such as `a.c:40`\n  a.c\n  ^^^"),
        ("f@", "expected a thread after `@`, such as `0.1` or `a`, found the end\n  f@\n    ^"),
        ("f@1.2", "`1.2` is not a thread id (such as 0 or 0.2.1)\n  f@1.2\n    ^^^"),
        ("f@_x", "`_x` is not a thread, such as `0.1`, `a` or `writer`\n  f@_x\n    ^^"),
        ("f g", "expected `,` or the end of the sequence, found `g`\n  f g\n    ^"),
        ("{f}", "expected two locations or more in `{}`, one for each thread\n  {f}\n  ^^^"),
        ("{f, g", "expected `,` or `}`, found the end\n  {f, g\n       ^"),
        ("{f@a, g@a}", "thread `a` cannot be at two locations at the same time\n  {f@a, g@a}\n  ^^^^^^^^^^"),
        ("f between g", "expected `and` and a second location, found the end\n  f between g\n             ^"),
        (
            "f between g@a and h@b",
            "the locations around are in one thread, not in `a` and `b`\n  f between g@a and h@b\n  ^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "f@a between g@a and h",
            "what comes between is in another thread than `a`\n  f@a between g@a and h\n  ^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "before",
            "expected a location, found `before`; a function of this name is written in quotes\n  before\n  ^^^^^^",
        ),
        ("\"f", "this quote is not closed\n  \"f\n  ^"),
        ("\"f\\q\"", "a backslash is written `\\\\`\n  \"f\\q\"\n    ^"),
        ("vec<int", "this bracket is not closed; such a name is written in quotes\n  vec<int\n     ^"),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn a_waypoint_matches_a_stack_with_its_callers() {
    let stack = [
        frame("bank::deposit", "/home/me/src/bank.rs", 40),
        frame("bank::pay", "/home/me/src/bank.rs", 50),
        frame("core::ops::call", "/rustc/x/function.rs", 250),
        frame("demo::main", "/home/me/src/main.rs", 9),
    ];
    let matches = |text: &str| match &parsed(text).steps[..] {
        [Step::Pass(waypoint)] => waypoint.matches(&stack),
        _ => panic!("one waypoint expected: {text}"),
    };
    for text in [
        "deposit",
        "bank.rs:40",
        "src/bank.rs:40:7",
        "main > deposit",
        "main > pay > bank.rs:40",
        "main.rs:9 > bank.rs:40",
    ] {
        assert!(matches(text), "{text}");
    }
    for text in
        ["pay", "bank.rs:41", "bank.rs:40:8", "main.rs:40", "pay > main > deposit", "deposit > deposit"]
    {
        assert!(!matches(text), "{text}");
    }
}

#[test]
fn threads_and_callers_can_be_left_open() {
    let sequence = parsed("main > f@a, {g@b, h@0}");
    assert_eq!(sequence.without_threads().to_string(), "main > f, {g, h}");
    assert_eq!(sequence.without_callers().to_string(), "f@a, {g@b, h@0}");
    assert_eq!(sequence.threads().len(), 3);
}

const SUITE: &str = "\
threadbare sequences 1

# The two withdrawals that were lost in March.
sequence lost update
expect real
through account.c:40@a, account.c:40@b, account.c:41@a

sequence closed while in use
expect not shown
through {close_all, queue.c:12}
";

#[test]
fn a_suite_reads_like_the_documentation() {
    let suite: Suite = SUITE.parse().expect("the suite is right");
    assert_eq!(suite.to_string(), SUITE);
    assert_eq!(suite.entries[0].name, "lost update");
    assert_eq!(suite.entries[0].expectation, Verdict::Real);
    assert_eq!(suite.entries[1].expectation, Verdict::NotShown);
    let documentation: String = include_str!("suite.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! ").or(line.strip_prefix("//!")))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(documentation.contains(SUITE), "the documentation shows another suite");
}

#[test]
fn a_long_sequence_may_be_on_several_lines() {
    let text = "threadbare sequences 1\nsequence x\nthrough f\n  # in the middle\nthrough g, h\nexpect reached\n# last\n";
    let suite: Suite = text.parse().expect("the suite is right");
    assert_eq!(suite.entries[0].sequence, parsed("f, g, h"));
    assert_eq!(suite.closing_comments, [" in the middle", " last"]);
}

#[test]
fn a_wrong_suite_is_refused_with_its_line() {
    for (text, message) in [
        ("", "line 1: expected `threadbare sequences 1`"),
        ("threadbare clip 3", "line 1: expected `threadbare sequences 1`"),
        ("threadbare sequences 2", "line 1: the file has version 2; this Threadbare reads versions up to 1"),
        ("threadbare sequences 1\nthrough f", "line 2: expected `sequence` and a name before `through`"),
        ("threadbare sequences 1\nsequence x\nexpect real", "line 2: the sequence `x` has no `through`"),
        ("threadbare sequences 1\nsequence x\nthrough f", "line 2: the sequence `x` has no `expect`"),
        (
            "threadbare sequences 1\nsequence x\nthrough f\nsequence y",
            "line 2: the sequence `x` has no `expect`",
        ),
        (
            "threadbare sequences 1\nsequence x\nexpect so",
            "line 3: expected `real`, `reached` or `not shown`, found `so`",
        ),
        ("threadbare sequences 1\nsequence x\nexpect real\nexpect real", "line 4: `expect` is there twice"),
        (
            "threadbare sequences 1\n\nname x",
            "line 3: expected `sequence`, `expect` or `through`, found `name`",
        ),
        (
            "threadbare sequences 1\nsequence x\nexpect real\nthrough f\nsequence x",
            "line 5: there are two sequences with the name `x`",
        ),
        (
            "threadbare sequences 1\nsequence x\nthrough f@",
            "line 3: expected a thread after `@`, such as `0.1` or `a`, found the end\n  f@\n    ^",
        ),
    ] {
        assert_eq!(text.parse::<Suite>().expect_err(text).to_string(), message, "{text}");
    }
}

fn name() -> impl Strategy<Value = String> + Clone {
    let names = prop_oneof![
        2 => text(),
        1 => "[a-z<>(){}:,@\" .*/0-9]{1,12}",
        1 => prop::sample::select(vec!["between", "and", "before", "a.c", "a::b", "f<int, g>", "m::{{closure}}"])
            .prop_map(str::to_owned),
    ];
    names.prop_filter("a name is not empty", |name| !name.is_empty())
}

fn place() -> impl Strategy<Value = Place> + Clone {
    let file = name().prop_filter_map("a name is not empty", FilePattern::new);
    let line = (file, 1..=u32::MAX, option::of(1..=u32::MAX));
    prop_oneof![
        line.prop_map(|(file, line, column)| Place::Line { file, line, column }),
        name().prop_map(Place::Function),
    ]
}

fn thread_name() -> impl Strategy<Value = ThreadName> {
    prop_oneof![thread().prop_map(ThreadName::Id), "[a-zA-Z][a-z0-9_]{0,3}".prop_map(ThreadName::Variable)]
}

fn waypoint() -> impl Strategy<Value = Waypoint> {
    (place(), option::of(thread_name()), vec(place(), 0..3)).prop_map(|(place, thread, callers)| Waypoint {
        place,
        thread,
        callers,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let group = vec(waypoint(), 2..4).prop_filter("a group is of different threads", |waypoints| {
        let named: Vec<_> = waypoints.iter().filter_map(|waypoint| waypoint.thread.as_ref()).collect();
        named.iter().collect::<BTreeSet<_>>().len() == named.len()
    });
    prop_oneof![3 => waypoint().prop_map(Step::Pass), 1 => group.prop_map(Step::Together)]
}

fn sequence() -> impl Strategy<Value = Sequence> {
    vec(step(), 1..5).prop_map(|steps| Sequence { steps })
}

fn suite() -> impl Strategy<Value = Suite> {
    let comments = || vec("[ -~]{0,8}".prop_map(|comment| comment.trim_end().to_owned()), 0..3);
    let entry = (comments(), text(), prop::sample::select(Verdict::ALL.to_vec()), sequence())
        .prop_map(|(comments, name, expectation, sequence)| Entry { comments, name, expectation, sequence });
    let entries = vec(entry, 0..4).prop_filter("names are different", |entries| {
        entries.iter().map(|entry| &entry.name).collect::<BTreeSet<_>>().len() == entries.len()
    });
    (entries, comments()).prop_map(|(entries, closing_comments)| Suite { entries, closing_comments })
}

proptest! {
    #[test]
    fn a_sequence_reads_back_as_it_is_written(sequence in sequence()) {
        prop_assert_eq!(sequence.to_string().parse(), Ok(sequence));
    }

    #[test]
    fn any_text_is_a_sequence_or_refused(text in prop_oneof![any::<String>(), "[a-c.:0-9@,{}<>()\" \\\\u]{0,30}", "((a|f\\.c:1|between|and|before|@a|@0\\.1|,|\\{|\\}|>) ?){0,12}"]) {
        match text.parse::<Sequence>() {
            Ok(sequence) => prop_assert_eq!(sequence.to_string().parse(), Ok(sequence)),
            Err(error) => {
                prop_assert!(text.get(error.range.clone()).is_some());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn a_suite_reads_back_as_it_is_written(suite in suite()) {
        prop_assert_eq!(suite.to_string().parse(), Ok(suite));
    }

    #[test]
    fn any_text_is_a_suite_or_refused(text in any::<String>(), at in 0..SUITE.len(), length in 0..40usize) {
        let _ = text.parse::<Suite>();
        let end = (at + length).min(SUITE.len());
        let mutated = format!("{}{text}{}", &SUITE[..at], &SUITE[end..]);
        if let Ok(suite) = mutated.parse::<Suite>() {
            prop_assert_eq!(suite.to_string().parse(), Ok(suite));
        }
    }

    #[test]
    fn any_names_can_be_compared(pattern in name(), path in any::<String>(), other in name()) {
        let pattern = FilePattern::new(pattern).expect("it is not empty");
        let _ = (pattern.matches(&path), pattern.closest([path.as_str(), other.as_str()]));
        let _ = function_name::matches(&other, &path);
        let short = function_name::short(&other);
        prop_assert!(!short.is_empty());
    }

    #[test]
    fn a_path_matches_itself_and_its_ends(path in "/[a-z*?]{1,5}(/[a-z*?.]{1,5}[a-z]){0,3}") {
        for (at, _) in path.match_indices('/') {
            let end = FilePattern::new(&path[at + 1..]).expect("it is not empty");
            prop_assert!(end.matches(&path), "{:?}", end);
        }
        prop_assert!(FilePattern::new(path.as_str()).expect("it is not empty").matches(&path));
    }
}
