//! Any text is a file of sequences or refused, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadbare_guide::sequence::Suite;

fuzz_target!(|text: &str| {
    // The first line is hardly ever hit upon.
    for text in [text.to_owned(), format!("threadbare sequences 1\n{text}")] {
        if let Ok(suite) = text.parse::<Suite>() {
            assert_eq!(suite.to_string().parse(), Ok(suite));
        }
    }
});
