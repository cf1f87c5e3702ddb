//! Any bytes are read as a trace or refused. Start from `crates/trace/corpus`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = threadbare_trace::import::std(bytes);
    let _ = threadbare_trace::import::csv(bytes);
    let _ = threadbare_trace::format::read(bytes);
});
