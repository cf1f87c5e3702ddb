//! Any text is a sequence or refused, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadbare_guide::sequence::Sequence;

fuzz_target!(|text: &str| {
    match text.parse::<Sequence>() {
        Ok(sequence) => assert_eq!(sequence.to_string().parse(), Ok(sequence)),
        Err(error) => assert!(text.get(error.range.clone()).is_some()),
    }
});
