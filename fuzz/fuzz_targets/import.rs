//! Any bytes are read as a trace or refused. Start from `crates/formats/corpus`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = threadbare_formats::import::std(bytes);
    let _ = threadbare_formats::import::csv(bytes);
    let _ = threadbare_formats::trace_file::read(bytes);
});
