//! Clips as a user meets them: written, annotated, damaged by hand.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use threadbare_trace::arbitrary::{kind, number, text, thread};

/// What the module's documentation shows.
const EXAMPLE: &str = "\
threadbare clip 5
directory ..
target subjects/c/account_ring.c
compiler-argument -DFIXED
argument 2
input 0xaf63bd4c8601b7df input.txt
finding assertion
message assertion failed: `accounts[i].amount == 200`
seed 0
max-events 1000000
spurious-wakeups 2
outlasted-sleeps 1 1000000
guarded-heap

[sites]
0 main account_ring.c:60:5 pthread_create 0 | pthread_create(&thread, 0, transfer, 0);
1 transfer account_ring.c:42:18 __tsan_write4 0 | to->amount = amount + 100;
2 0x7ffff7e01234

[tracked]
global accounts 0..80
heap @0 @1 8..16
stack 0.1 -48..-40
memory 0x7ffff0000000..0x7ffff0001000

[watched]
@1

[steps]
0.1 until write @1 #2
0 until ended

[events]
0 fork @0 thread 0.1
0.1 begin
0.1 write @1 accounts[1].amount
0.1 unlock @2 lock
";

fn example() -> Clip {
    let child = ThreadId::main().child(1);
    let site = |function: &str, line, column, callee: &str, text: &str| {
        ClipSite::Source(Site {
            function: function.into(),
            file: "account_ring.c".into(),
            line,
            column,
            text: text.into(),
            callee: callee.into(),
            nth: 0,
        })
    };
    let event = |thread: &ThreadId, kind, site, object: &str| ClipEvent {
        thread: thread.clone(),
        kind,
        site: Option::map(site, SiteIndex::new),
        object: object.into(),
    };
    Clip {
        directory: Some("..".into()),
        target: "subjects/c/account_ring.c".into(),
        compiler_arguments: vec!["-DFIXED".into()],
        arguments: vec!["2".into()],
        input: Some(ClipInput {
            path: "input.txt".into(),
            fingerprint: threadbare_trace::hash::fingerprint(b"\0"),
        }),
        finding: "assertion".into(),
        message: "assertion failed: `accounts[i].amount == 200`".into(),
        seed: 0,
        max_events: 1_000_000,
        spurious: 2,
        outlasting: Outlasting { sleeps: 1, longest: 1_000_000 },
        guarded: true,
        sites: vec![
            site("main", 60, 5, "pthread_create", "pthread_create(&thread, 0, transfer, 0);"),
            site("transfer", 42, 18, "__tsan_write4", "to->amount = amount + 100;"),
            ClipSite::Address(0x7fff_f7e0_1234),
        ],
        tracked: vec![
            ClipExtent::Global { symbol: "accounts".into(), offset: 0, len: 80 },
            ClipExtent::Heap { calls: [0, 1].map(SiteIndex::new).to_vec(), start: 8, len: 8 },
            ClipExtent::Stack { thread: child.clone(), start: -48, len: 8 },
            ClipExtent::Memory { start: 0x7fff_f000_0000, len: 0x1000 },
        ],
        watched: vec![SiteIndex::new(1)],
        steps: vec![
            ClipStep {
                thread: child.clone(),
                until: ClipUntil::Before {
                    kind: EventKind::Write,
                    site: Some(SiteIndex::new(1)),
                    occurrence: 2,
                },
            },
            ClipStep { thread: ThreadId::main(), until: ClipUntil::End },
        ],
        events: vec![
            event(&ThreadId::main(), EventKind::Fork, Some(0), "thread 0.1"),
            event(&child, EventKind::Begin, None, ""),
            event(&child, EventKind::Write, Some(1), "accounts[1].amount"),
            event(&child, EventKind::Unlock, Some(2), "lock"),
        ],
    }
}

#[test]
fn a_clip_reads_like_the_documentation() {
    assert_eq!(example().to_string(), EXAMPLE);
    assert_eq!(EXAMPLE.parse(), Ok(example()));
}

#[test]
fn the_example_is_that_of_the_documentation() {
    let documentation: String =
        EXAMPLE.lines().map(|line| format!("//! {line}").trim_end().to_owned() + "\n").collect();
    assert!(include_str!("../clip.rs").contains(&documentation));
}

#[test]
fn people_may_write_into_a_clip() {
    let annotated: String = EXAMPLE
        .lines()
        .enumerate()
        .map(
            |(i, line)| {
                if i == 0 { format!("{line}\r\n") } else { format!("\n  # look here:\n  {line} \r\n") }
            },
        )
        .collect();
    assert_eq!(annotated.parse(), Ok(example()));
}

#[test]
fn empty_sections_may_be_left_out() {
    let clip: Clip =
        "threadbare clip 1\ntarget a\nfinding crash\nmessage\nseed 0x10\nmax-events 5\n[events]\n0 exit"
            .parse()
            .expect("the clip is complete");
    assert_eq!((clip.message.as_str(), clip.seed, clip.sites.len(), clip.events.len()), ("", 16, 0, 1));
}

/// Protects clips of users: an address of version 1 looked like a function.
#[test]
fn version_1_is_still_read() {
    let site = |line: &str| {
        let text =
            format!("threadbare clip 1\ntarget a\nfinding\nmessage\nseed 0\nmax-events 5\n[sites]\n0 {line}");
        text.parse::<Clip>().map(|clip| clip.site(SiteIndex::new(0)).clone())
    };
    let function = |function: &str| ClipSite::Source(Site { function: function.into(), ..Site::default() });
    assert_eq!(site("0x7ffff7e01234 -:0:0 - 0 |"), Ok(ClipSite::Address(0x7fff_f7e0_1234)));
    assert_eq!(site("0xcafe_babe -:0:0 - 0 |"), Ok(function("0xcafe_babe")));
    assert_eq!(site("main -:0:0 - 0 |"), Ok(function("main")));
    assert!(site("0x7ffff7e01234").is_err(), "the short form is of version 2");
}

/// Protects clips of users: version 2 had no directory, version 3 no watched places, and version 4 no guarded heap.
#[test]
fn versions_2_to_4_are_still_read() {
    let unguarded = EXAMPLE.replace("guarded-heap\n", "");
    let clip = Clip { guarded: false, ..example() };
    assert_eq!(unguarded.replace("clip 5", "clip 4").parse(), Ok(clip.clone()));
    let unwatched = unguarded.replace("[watched]\n@1\n\n", "");
    let clip = Clip { watched: Vec::new(), ..clip };
    assert_eq!(unwatched.replace("clip 5", "clip 3").parse(), Ok(clip.clone()));
    let older = unwatched.replace("clip 5\ndirectory ..\n", "clip 2\n");
    assert_eq!(older.parse(), Ok(Clip { directory: None, ..clip }));
}

#[test]
fn strange_strings_are_escaped_and_plain_ones_are_not() {
    let texts = [
        ("-O2 -g", "target -O2 -g"),
        ("", "target"),
        (" a\u{a0}", r"target \sa\u{a0}"),
        ("a\\b\nc\td\u{1b}", r"target a\\b\nc\td\u{1b}"),
        ("# größe @1 | -", "target # größe @1 | -"),
    ];
    for (target, line) in texts {
        let clip = Clip { target: target.into(), ..example() };
        assert_eq!(clip.to_string().lines().nth(2), Some(line));
        assert_eq!(clip.to_string().parse(), Ok(clip));
    }
    let words = [("", "-"), ("-", r"\-"), ("-x", "-x"), ("a b:c", r"a\sb:c"), ("f<T, U>", r"f<T,\sU>")];
    for (word, written) in words {
        let mut clip = example();
        let ClipSite::Source(site) = &mut clip.sites[0] else { panic!("the first site is in the source") };
        (site.function, site.file) = (word.into(), word.into());
        let start = format!("0 {written} {written}:60:5 pthread_create ");
        assert!(clip.to_string().lines().any(|line| line.starts_with(&start)), "{clip}");
        assert_eq!(clip.to_string().parse(), Ok(clip));
    }
}

#[test]
fn an_object_is_not_taken_for_a_site() {
    let mut clip = example();
    clip.events[1].object = "@1 x".into();
    assert!(clip.to_string().contains("\n0.1 begin \\@1 x\n"));
    assert_eq!(clip.to_string().parse(), Ok(clip));
}

#[test]
fn ended_is_not_the_name_of_a_kind() {
    assert_eq!(EventKind::from_name("ended"), None);
}

#[test]
fn errors_say_which_line_and_what_was_expected() {
    let error = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from:?} is not in the example");
        EXAMPLE.replacen(from, to, 1).parse::<Clip>().expect_err("the clip is broken").to_string()
    };
    assert_eq!(
        error("clip 5", "clip 6"),
        "line 1: the clip is of version 6, and this build of Threadbare reads versions up to 5"
    );
    assert_eq!(
        error("threadbare", "\nthreadbare"),
        "line 1: expected a clip, which begins with `threadbare clip 5`"
    );
    assert_eq!(
        error("argument 2", "arguments 2"),
        "line 5: expected a field such as `target` or `seed`, found `arguments`"
    );
    assert_eq!(
        error("input 0xaf63bd4c8601b7df", "input"),
        "line 6: expected a fingerprint, found `input.txt`"
    );
    assert_eq!(error("argument 2", "seed 3"), "line 9: `seed` is there twice");
    assert_eq!(error("seed 0", "seed x"), "line 9: expected a seed, found `x`");
    assert_eq!(error("seed 0", "seed -1"), "line 9: expected a seed, found `-1`");
    assert_eq!(
        error("-DFIXED", "-D\\FIXED"),
        "line 4: `\\F` is not an escape; a backslash is written `\\\\`"
    );
    assert_eq!(error("-DFIXED", "\\"), "line 4: a backslash at the end of a line is written `\\\\`");
    assert_eq!(
        error("-DFIXED", "\\u{d800}"),
        "line 4: expected a character's number after `\\u`, such as `\\u{1b}`"
    );
    assert_eq!(
        error("finding assertion", ""),
        "line 37: expected a line that begins with `finding`, found none before the sections"
    );
    assert_eq!(
        error("[sites]", "[site]"),
        "line 15: expected one of [sites] [tracked] [watched] [steps] [events], found `[site]`"
    );
    assert_eq!(
        error("[events]", "[tracked]"),
        "line 33: `[tracked]` is there twice or too late; the order is [sites] [tracked] [watched] [steps] [events]"
    );
    assert_eq!(error("\n1 transfer", "\n2 transfer"), "line 17: expected site 1 to come next, found site 2");
    assert_eq!(
        error("account_ring.c:60:5", "account_ring.c"),
        "line 16: expected a place such as `account.c:42:18`, found `account_ring.c`"
    );
    assert_eq!(error(" | to->", " to->"), "line 17: expected `|` and the source line, found `to->amount`");
    assert_eq!(error("@0 @1 8..16", "@0 @3 8..16"), "line 22: expected one of the 3 sites above, found `@3`");
    assert_eq!(error("8..16", "16..8"), "line 22: expected a range of bytes such as `8..16`, found `16..8`");
    assert_eq!(error("stack 0.1", "stack 1"), "line 23: `1` is not a thread id (such as 0 or 0.2.1)");
    assert_eq!(error("0..80", "0..80 9"), "line 21: expected the end of the line, found `9`");
    assert_eq!(
        error("global", "static"),
        "line 21: expected `global`, `heap`, `stack` or `memory`, found `static`"
    );
    assert_eq!(error("until write", "before write"), "line 30: expected `until`, found `before`");
    assert_eq!(error("@1 #2", "@1"), "line 30: expected `#` and which occurrence, found the end of the line");
    assert_eq!(error("begin", "start"), "line 35: expected an event kind such as `write`, found `start`");
    assert_eq!(error("0 fork", "0  fork"), "line 34: expected an event kind, found a second blank");
}

#[test]
fn bytes_that_are_not_text_have_a_line_too() {
    let mut bytes = EXAMPLE.as_bytes().to_vec();
    assert_eq!(Clip::read(&bytes), Ok(example()));
    let position = EXAMPLE.find("-DFIXED").expect("the example has it");
    bytes[position] = 0xff;
    let error = Clip::read(&bytes).expect_err("the clip is broken");
    assert_eq!(error.to_string(), "line 4: expected text, found bytes that are not UTF-8");
}

fn site() -> impl Strategy<Value = ClipSite> {
    prop_oneof![source().prop_map(ClipSite::Source), any::<u64>().prop_map(ClipSite::Address)]
}

fn source() -> impl Strategy<Value = Site> {
    ([text(), text(), text(), text()], any::<[u32; 3]>()).prop_map(
        |([function, file, text, callee], [line, column, nth])| Site {
            function,
            file,
            line,
            column,
            text,
            callee,
            nth,
        },
    )
}

fn site_index() -> impl Strategy<Value = SiteIndex> {
    any::<u32>().prop_map(SiteIndex::new)
}

/// Extents whose sites are not in range yet.
fn extent() -> impl Strategy<Value = ClipExtent> {
    prop_oneof![
        (text(), number(), number()).prop_map(|(symbol, offset, len)| ClipExtent::Global {
            symbol,
            offset,
            len
        }),
        (vec(site_index(), 0..4), number(), number()).prop_map(|(calls, start, len)| ClipExtent::Heap {
            calls,
            start,
            len
        }),
        (thread(), any::<i64>(), number()).prop_map(|(thread, start, len)| ClipExtent::Stack {
            thread,
            start,
            len
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(start, len)| ClipExtent::Memory { start, len }),
    ]
}

fn step() -> impl Strategy<Value = ClipStep> {
    let until = prop_oneof![
        (kind(), option::of(site_index()), any::<u32>())
            .prop_map(|(kind, site, occurrence)| ClipUntil::Before { kind, site, occurrence }),
        Just(ClipUntil::End),
    ];
    (thread(), until).prop_map(|(thread, until)| ClipStep { thread, until })
}

fn event() -> impl Strategy<Value = ClipEvent> {
    (thread(), kind(), option::of(site_index()), text()).prop_map(|(thread, kind, site, object)| ClipEvent {
        thread,
        kind,
        site,
        object,
    })
}

fn clip() -> impl Strategy<Value = Clip> {
    let arguments = (vec(text(), 0..3), vec(text(), 0..3));
    let input =
        option::of((text(), any::<u64>()).prop_map(|(path, fingerprint)| ClipInput { path, fingerprint }));
    let watched = vec(site_index(), 0..3);
    let lists = (vec(site(), 1..4), vec(extent(), 0..4), watched, vec(step(), 0..4), vec(event(), 0..5));
    let texts = (option::of(text()), [text(), text(), text()]);
    (texts, arguments, input, [number(), number()], lists).prop_map(
        |(
            (directory, [target, finding, message]),
            (compiler_arguments, arguments),
            input,
            [seed, max_events],
            (sites, mut tracked, mut watched, mut steps, mut events),
        )| {
            let bring_into_range = |site: &mut SiteIndex| *site = SiteIndex::at(site.index() % sites.len());
            watched.iter_mut().for_each(bring_into_range);
            for extent in &mut tracked {
                if let ClipExtent::Heap { calls, .. } = extent {
                    calls.iter_mut().for_each(bring_into_range);
                }
            }
            for step in &mut steps {
                if let ClipUntil::Before { site: Some(site), .. } = &mut step.until {
                    bring_into_range(site);
                }
            }
            events.iter_mut().filter_map(|event| event.site.as_mut()).for_each(bring_into_range);
            Clip {
                directory,
                target,
                compiler_arguments,
                arguments,
                input,
                finding,
                message,
                seed,
                max_events,
                spurious: seed as u32,
                outlasting: Outlasting { sleeps: (seed >> 32) as u32, longest: max_events },
                guarded: seed % 2 == 1,
                sites,
                tracked,
                watched,
                steps,
                events,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_clip_survives(clip in clip()) {
        let text = clip.to_string();
        prop_assert!(!text.lines().any(|line| line.ends_with(' ')), "blanks at the end of a line:\n{text}");
        prop_assert_eq!(text.parse(), Ok(clip), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = text.parse::<Clip>();
    }

    /// Lines that are nearly right, in any order.
    #[test]
    fn any_lines_are_read_or_refused(
        clip in clip(),
        order in vec(any::<prop::sample::Index>(), 0..30),
        garbage in "[-0-9@#.|: a-z\\\\]{0,20}",
        at in any::<prop::sample::Index>(),
    ) {
        let text = clip.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let mut shuffled = String::from("threadbare clip 3\n");
        for index in order {
            shuffled.push_str(lines[index.index(lines.len())]);
            shuffled.push('\n');
        }
        let _ = shuffled.parse::<Clip>();
        let mut cut = at.index(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let _ = format!("{}{garbage}{}", &text[..cut], &text[cut..]).parse::<Clip>();
        let _ = text[..cut].parse::<Clip>();
    }
}
