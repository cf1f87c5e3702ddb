//! Wake-ups on their way, for condition variables and futexes.
//!
//! A notification does not choose whom it wakes. It leaves a token, which any thread may take that was waiting at the
//! time. The schedule decides who takes it.

use threadbare_trace::ThreadIndex;

use crate::schedule::scheduler::Scheduler;
use crate::schedule::wait::Wait;

#[derive(Default)]
pub struct Wakeups {
    /// Counts waits and notifications, to tell which came first.
    clock: u64,
    /// In the order they were left.
    tokens: Vec<Token>,
}

/// What a notification leaves.
#[derive(Clone, Copy)]
pub struct Token {
    pub address: u64,
    time: u64,
    pub mask: u32,
}

impl Token {
    /// A wait that began at `ticket` may take it.
    pub fn is_for(&self, address: u64, ticket: u64, mask: u32) -> bool {
        self.address == address && self.time > ticket && self.mask & mask != 0
    }
}

impl Wakeups {
    /// A ticket for a wait that begins now.
    pub fn ticket(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The tokens that nobody has taken yet.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// There is a token for this wait.
    pub fn has(&self, address: u64, ticket: u64, mask: u32) -> bool {
        self.tokens.iter().any(|token| token.is_for(address, ticket, mask))
    }

    /// Takes the oldest token for this wait.
    pub fn take(&mut self, address: u64, ticket: u64, mask: u32) -> bool {
        let position = self.tokens.iter().position(|token| token.is_for(address, ticket, mask));
        position.map(|position| self.tokens.remove(position)).is_some()
    }

    /// Leaves tokens for up to `max` of the `waiting` threads that have none yet; returns how many.
    fn leave(&mut self, address: u64, mask: u32, max: u64, waiting: u64) -> u64 {
        let is_given = |token: &&Token| token.address == address && token.mask & mask != 0;
        let given = self.tokens.iter().filter(is_given).count() as u64;
        let woken = max.min(waiting.saturating_sub(given));
        for _ in 0..woken {
            let time = self.ticket();
            self.tokens.push(Token { address, time, mask });
        }
        woken
    }
}

impl Scheduler {
    /// A thread that waits at `address` and that nothing lets go: more threads wait than there are tokens.
    pub fn left_waiting(&self, address: u64) -> Option<ThreadIndex> {
        let is_left = |&index: &ThreadIndex| {
            let thread = &self.threads[index];
            let waits = matches!(thread.wait, Wait::Wakeup { address: of, .. } if of == address);
            let is_cancelled = thread.cancellable && thread.cancellation.is_due();
            waits && thread.deadline.is_none() && !thread.woken && !is_cancelled
        };
        let tokens = self.wakeups.tokens.iter().filter(|token| token.address == address).count();
        self.alive.iter().filter(is_left).nth(tokens)
    }

    /// Wakes up to `max` of the threads that wait at `address`; returns how many.
    pub fn notify(&mut self, address: u64, max: u64, wanted: u32) -> u64 {
        let waits = |wait: &Wait| matches!(*wait, Wait::Wakeup { address: of, mask, .. } if of == address && mask & wanted != 0);
        let waiting = self.alive.iter().filter(|&index| waits(&self.threads[index].wait)).count() as u64;
        let woken = self.wakeups.leave(address, wanted, max, waiting);
        if woken > 0 {
            self.released(address);
        }
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = u32::MAX;

    /// A notification must not wake a thread that began to wait after it.
    #[test]
    fn a_token_is_for_those_who_were_waiting() {
        let mut wakeups = Wakeups::default();
        let early = wakeups.ticket();
        assert_eq!(wakeups.leave(8, ALL, 1, 1), 1);
        let late = wakeups.ticket();
        assert!(wakeups.has(8, early, ALL));
        assert!(!wakeups.has(8, late, ALL));
        assert!(!wakeups.has(16, early, ALL));
    }

    /// Two waiting threads and one token: either may take it, and then it is gone.
    #[test]
    fn a_token_is_taken_once() {
        let mut wakeups = Wakeups::default();
        let (first, second) = (wakeups.ticket(), wakeups.ticket());
        wakeups.leave(8, ALL, 1, 2);
        assert!(wakeups.has(8, first, ALL) && wakeups.has(8, second, ALL));
        assert!(wakeups.take(8, second, ALL));
        assert!(!wakeups.take(8, first, ALL));
    }

    /// Notifications beyond the number of waiting threads are lost, as POSIX says.
    #[test]
    fn nobody_is_notified_twice() {
        let mut wakeups = Wakeups::default();
        wakeups.ticket();
        assert_eq!(wakeups.leave(8, ALL, 1, 1), 1);
        assert_eq!(wakeups.leave(8, ALL, 1, 1), 0);
        assert_eq!(wakeups.leave(8, ALL, u64::MAX, 3), 2);
    }

    /// A futex wake-up with a mask passes those by whose mask has no bit in common with it.
    #[test]
    fn masks_keep_tokens_apart() {
        let mut wakeups = Wakeups::default();
        let ticket = wakeups.ticket();
        wakeups.leave(8, 1, 1, 1);
        assert!(!wakeups.has(8, ticket, 2));
        assert_eq!(wakeups.leave(8, 2, 1, 1), 1);
        assert!(wakeups.take(8, ticket, 2));
        assert!(wakeups.has(8, ticket, 3));
    }
}
