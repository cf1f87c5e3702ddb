//! Whatever was read can be predicted from, or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadbare_trace::{format, import};

fuzz_target!(|bytes: &[u8]| {
    let traces = [import::std(bytes).ok(), import::csv(bytes).ok(), format::read(bytes).ok()];
    for trace in traces.into_iter().flatten() {
        let _ = threadbare_predict::predict(&trace, &threadbare_predict::pattern::built_in());
    }
});
