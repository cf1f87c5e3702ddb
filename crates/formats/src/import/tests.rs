use proptest::prelude::*;

use super::*;

fn message(result: Result<Trace, ImportError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn every_operation_of_std_becomes_an_event() {
    let text =
        b"T0|fork(T1)|3\nT1|begin()|0\nT1|acq(l)|7\nT1|w(x)|8\nT1|r(x)|8\nT1|branch()|8\nT1|rel(l)|9\n\
                 T1|end()|0\nT0|join(T1)|4\n";
    let trace = std(text).unwrap();
    let kinds: Vec<EventKind> = trace.events.iter().map(|event| event.kind).collect();
    use EventKind::*;
    assert_eq!(kinds, [Fork, Begin, Lock, Write, Read, Unlock, End, Join]);
    assert_eq!(trace.threads, [ThreadId::main(), ThreadId::main().child(1)]);
    assert_eq!(trace.location(trace.events[3].location).to_string(), "location:8");
    assert_eq!(trace.object(trace.events[3].object).display, "x");
    assert_eq!(trace.events[3].location, trace.events[4].location);
}

#[test]
fn csv_has_a_column_for_each_thread() {
    let trace = csv(b"start(T1)\n,acq(l)\r\n,rel(l)\njoin(T1)\n").unwrap();
    let threads: Vec<u32> = trace.events.iter().map(|event| event.thread.number()).collect();
    assert_eq!(threads, [0, 1, 1, 0]);
    assert_eq!(trace.location(trace.events[1].location).to_string(), "acq(l)");
}

#[test]
fn what_cannot_be_a_trace_is_refused_with_its_line() {
    let cases: &[(&[u8], &str)] = &[
        (b"T0|acq(l)|1\nT1|rel(l)|2\n", "line 2: T1 releases l, which T0 holds"),
        (b"T0|rel(l)|1\n", "line 1: T0 releases l, which nobody holds"),
        (b"T0|acq(l)|1\n\nT1|acq(l)|2\n", "line 3: T1 takes l, which T0 holds"),
        (b"T0|w(x)|1\nT0|jump(x)|2\n", "line 2: unknown operation `jump`"),
        (
            b"T0|w(x)|1\nT1|acq(lo",
            "line 2: the file ends where an operation such as T1|acq(lock)|7 is expected",
        ),
        (
            b"T0|w(x)|1\nT1|acq(lo)|1|2\n",
            "line 2: expected an operation such as T1|acq(lock)|7, found `T1|acq(lo)|1|2`",
        ),
        (b"T0|w(x)|main.c:3\n", "line 1: expected a location number below 2^32, found `main.c:3`"),
        (b"T0|w(x)|1\nT0|fork(T0)|1\n", "line 2: T0 is forked, but it exists already"),
        (b"T0|w(\xff)|1\n", "line 1: not text in UTF-8"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(message(std(bytes)), *expected);
    }
    assert_eq!(message(csv(b"r(x),r(y)\n")), "line 1: expected one operation in the line, found 2");
    assert_eq!(message(csv(b",,\n")), "line 1: expected one operation in the line, found 0");
}

#[test]
fn a_file_with_more_events_than_numbers_is_refused() {
    let take = |builder: &mut Builder, line: &str| builder.operation("T0", line, "x", LocationIndex::NONE);
    let error = read(b"r\nw\nr\n", 2, take).unwrap_err();
    assert_eq!(error, ImportError { line: 3, wrong: Wrong::TooManyEvents });
    assert_eq!(Wrong::TooManyEvents.to_string(), "more than 4294967294 events");
}

#[test]
fn what_was_exported_is_read_again() {
    let text = b"T0|fork(T1)|3\nT1|acq(l)|7\nT1|w(x)|8\nT1|rel(l)|9\nT0|join(T1)|4\n";
    let trace = std(text).unwrap();
    let (mut as_std, mut as_csv) = (Vec::new(), Vec::new());
    crate::export::std(&trace, &mut as_std).unwrap();
    crate::export::csv(&trace, &mut as_csv).unwrap();
    let kinds =
        |trace: &Trace| trace.events.iter().map(|event| (event.thread, event.kind)).collect::<Vec<_>>();
    assert_eq!(kinds(&std(&as_std).unwrap()), kinds(&trace));
    assert_eq!(kinds(&csv(&as_csv).unwrap()), kinds(&trace));
}

/// The corpus: files that once were trouble, or could be.
#[test]
fn no_file_of_the_corpus_is_trouble() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let mut files = 0;
    for entry in ::std::fs::read_dir(directory).unwrap() {
        let bytes = ::std::fs::read(entry.unwrap().path()).unwrap();
        for trace in [std(&bytes), csv(&bytes)].into_iter().flatten() {
            assert!(trace.events.iter().all(|event| event.thread.index() < trace.threads.len()));
        }
        let _ = crate::trace_file::read(&bytes);
        files += 1;
    }
    assert!(files >= 6, "the corpus is gone");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (std(&bytes), csv(&bytes));
    }

    #[test]
    fn anything_like_a_trace_is_read_or_refused(
        lines in proptest::collection::vec(
            "(T[0-3])?\\|?(r|w|acq|rel|fork|join|begin|end|start|,)*\\(?[xyT][0-2]?\\)?\\|?[0-9]{0,11}", 0..20)
    ) {
        let text = lines.join("\n");
        let _ = (std(text.as_bytes()), csv(text.as_bytes()));
    }
}
