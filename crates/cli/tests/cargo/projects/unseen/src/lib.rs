//! Text that the standard library reads in code that comes compiled.

/// A pointer that is sent to another thread.
pub struct Sent(pub *const str);

// SAFETY: the tests say when the text is there.
unsafe impl Send for Sent {}

impl Sent {
    /// # Safety
    /// The text is there.
    pub unsafe fn count(self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (*self.0).chars().count() } // here
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::Sent;

    fn text() -> String {
        "counted ".repeat(20)
    }

    #[test]
    fn counts_freed_text() {
        let text = text();
        let sent = Sent(text.as_str());
        let counter = thread::spawn(move || unsafe { sent.count() });
        drop(text);
        let _ = counter.join();
    }

    #[test]
    fn counts_text() {
        let text = text();
        let sent = Sent(text.as_str());
        let counter = thread::spawn(move || unsafe { sent.count() });
        assert_eq!(counter.join().unwrap(), 160);
        drop(text);
    }

    #[test]
    fn counts_freed_text_alone() {
        let text = text();
        let sent = Sent(text.as_str());
        drop(text);
        let _ = unsafe { sent.count() };
    }
}
