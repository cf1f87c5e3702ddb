//! A growable character buffer in the manner of JDK 1.4, each of whose methods locks the buffer. One thread
//! appends a shared buffer to a private one while another replaces the shared text by a shorter one.
//!
//! The bug: `append_buffer` asks the other buffer for its length and then for its characters, in two critical
//! sections. If the text is deleted between them, the range asked for no longer exists. There is no data race in
//! it. The fix reads the length and the characters under one hold of the other's lock.

use std::sync::Mutex;
use std::thread;

use subjects::{FIXED, read_sizes, size};

#[derive(Default)]
struct StringBuffer {
    text: Mutex<String>,
}

fn copy_range(text: &str, end: usize) -> String {
    assert!(end <= text.len(), "the range ends after the text");
    text[..end].to_owned()
}

impl StringBuffer {
    fn length(&self) -> usize {
        self.text.lock().unwrap().len()
    }

    fn delete(&self, end: usize) {
        self.text.lock().unwrap().drain(..end);
    }

    fn append(&self, more: &str) {
        self.text.lock().unwrap().push_str(more);
    }

    fn append_buffer(&self, other: &StringBuffer) {
        let mut text = self.text.lock().unwrap();
        let more = if FIXED {
            let other = other.text.lock().unwrap();
            copy_range(&other, other.len())
        } else {
            let length = other.length();
            copy_range(&other.text.lock().unwrap(), length)
        };
        text.push_str(&more);
    }
}

fn main() {
    let [rounds] = read_sizes([size("rounds", 1, 1, 1000)]);
    let (shared, private) = (StringBuffer::default(), StringBuffer::default());
    shared.append("abc");
    thread::scope(|scope| {
        scope.spawn(|| (0..rounds).for_each(|_| private.append_buffer(&shared)));
        // The only thread that changes the shared buffer, so its length cannot be outdated here.
        scope.spawn(|| {
            for _ in 0..rounds {
                shared.delete(shared.length());
                shared.append("x");
            }
        });
    });
}
