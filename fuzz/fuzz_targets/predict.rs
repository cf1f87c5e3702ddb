//! Whatever was read can be predicted from, or is refused. Start from `crates/formats/corpus`.
#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use threadbare_formats::{import, trace_file};

fuzz_target!(|bytes: &[u8]| {
    let written = import::std(operations(bytes).as_bytes());
    let traces = [import::std(bytes).ok(), import::csv(bytes).ok(), trace_file::read(bytes).ok(), written.ok()];
    for trace in traces.into_iter().flatten() {
        let _ = threadbare_predict::predict(trace, &threadbare_predict::pattern::built_in());
    }
});

/// The bytes as a trace in STD, an operation each: bytes that are text hardly ever become one with something in it.
fn operations(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, byte) in bytes.iter().enumerate() {
        let (thread, object) = (byte >> 6, byte & 7);
        let _ = match byte >> 3 & 7 {
            0 | 1 => writeln!(text, "T{thread}|r(x{object})|{line}"),
            2 | 3 => writeln!(text, "T{thread}|w(x{object})|{line}"),
            4 => writeln!(text, "T{thread}|acq(l{object})|{line}"),
            5 => writeln!(text, "T{thread}|rel(l{object})|{line}"),
            6 => writeln!(text, "T{thread}|fork(T{object})|{line}"),
            _ => writeln!(text, "T{thread}|join(T{object})|{line}"),
        };
    }
    text
}
