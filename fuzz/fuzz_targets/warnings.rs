//! Any bytes are reports or warnings, or refused. Start from `crates/guide/tests/reports`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadbare_guide::sequence::{gcc_json, report, sarif, warning};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = (sarif::read(&text), gcc_json::read(&text));
    let mut warnings = report::read(&text);
    warnings.extend(warning::read(bytes).unwrap_or_default());
    for warning in warnings {
        assert_eq!(warning.sequence.to_string().parse(), Ok(warning.sequence));
    }
});
