//! Whatever a trace holds, it is analysed or refused: files come from anywhere.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use threadbare_formats::{import, trace_file};
use threadbare_predict::pattern::built_in;
use threadbare_predict::{History, predict};
use threadbare_search::reorder::plan;
use threadbare_trace::{
    End, Event, EventKind, Frame, Location, LocationIndex, MemoryOrder, Object, ObjectIndex, ObjectName,
    Outcome, StackIndex, StackNode, ThreadId, ThreadIndex, Trace,
};

const THREADS: usize = 3;
const OBJECTS: usize = 7;

/// Two pairs of variables that overlap, a lock, and the threads.
fn objects() -> Vec<Object> {
    let global = |offset| ObjectName::Global { symbol: "g".into(), offset };
    let threads = ThreadIndex::first(THREADS).map(ObjectName::Thread);
    let names = [ObjectName::None, global(0), global(2), global(8)].into_iter().chain(threads);
    names.map(|name| Object { name, display: "o".into() }).collect()
}

fn event() -> impl Strategy<Value = Event> {
    let often = vec![EventKind::Read, EventKind::Write, EventKind::Lock, EventKind::Unlock];
    let kind = prop_oneof![3 => select(often), 1 => select(EventKind::ALL)];
    let outcome = prop_oneof![8 => Just(Outcome::Done), 1 => select(Outcome::ALL)];
    (kind, outcome, 0..THREADS, 0..OBJECTS, 0..4usize, select(vec![0u32, 1, 4, 8])).prop_map(
        |(kind, outcome, thread, object, location, size)| Event {
            thread: ThreadIndex::at(thread),
            kind,
            order: MemoryOrder::Relaxed,
            outcome,
            size,
            object: ObjectIndex::at(object),
            location: LocationIndex::at(location),
            stack: StackIndex::EMPTY,
            value: 1,
        },
    )
}

fn trace(events: Vec<Event>) -> Trace {
    let place = |line: u32| Location {
        address: u64::from(line) * 16,
        frames: vec![Frame { file: "f".into(), line, ..Frame::default() }],
    };
    Trace {
        program: String::new(),
        arguments: Vec::new(),
        threads: vec![ThreadId::main(), ThreadId::main().child(1), ThreadId::main().child(2)],
        objects: objects(),
        locations: (0..4).map(place).collect(),
        stacks: vec![StackNode::default()],
        events,
        pending: Vec::new(),
        end: End::Finished,
    }
}

/// The corpus that fuzzing starts from: the figures of the paper, and files that once were trouble or could be.
#[test]
fn every_file_of_the_corpus_is_analysed_or_refused() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/corpus");
    let mut predictions = 0;
    for entry in std::fs::read_dir(directory).expect("the corpus is there") {
        let bytes = std::fs::read(entry.expect("it can be listed").path()).expect("it can be read");
        let traces = [import::std(&bytes).ok(), import::csv(&bytes).ok(), trace_file::read(&bytes).ok()];
        for trace in traces.into_iter().flatten() {
            predictions += predict(trace.clone(), &built_in()).map_or(0, |found| found.list.len());
        }
    }
    assert!(predictions >= 10, "only {predictions}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_trace_is_analysed_or_refused(events in vec(event(), 0..30)) {
        let trace = trace(events);
        if let Ok(predictions) = predict(trace.clone(), &built_in()) {
            let history = History::new(trace.clone()).expect("it was analysed before");
            for prediction in predictions.list {
                prop_assert!(!plan::turns(&history, &prediction.schedule).is_empty());
            }
        }
    }
}
