use std::sync::Mutex;

/// Money behind a lock.
#[derive(Debug, Default)]
pub struct Account {
    balance: Mutex<i64>,
}

impl Account {
    /// Reads and writes in two critical sections: an update in between is lost.
    pub fn deposit_in_two_steps(&self, sum: i64) {
        let balance = *self.balance.lock().unwrap();
        *self.balance.lock().unwrap() = balance + sum;
    }

    pub fn deposit(&self, sum: i64) {
        *self.balance.lock().unwrap() += sum;
    }

    pub fn balance(&self) -> i64 {
        *self.balance.lock().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    fn two_deposits(deposit: impl Fn(&Account) + Sync) -> i64 {
        let account = Account::default();
        thread::scope(|scope| {
            scope.spawn(|| deposit(&account));
            scope.spawn(|| deposit(&account));
        });
        account.balance()
    }

    #[test]
    fn loses_a_deposit() {
        assert_eq!(two_deposits(|account| account.deposit_in_two_steps(1)), 2);
    }

    #[test]
    fn keeps_deposits() {
        assert_eq!(two_deposits(|account| account.deposit(1)), 2);
    }

    #[test]
    fn loses_a_count() {
        let count = Arc::new(AtomicU64::new(0));
        let threads = [(); 2].map(|()| {
            let count = Arc::clone(&count);
            thread::spawn(move || count.store(count.load(Ordering::SeqCst) + 1, Ordering::SeqCst))
        });
        threads.map(|thread| thread.join().unwrap());
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn locks_in_two_orders() {
        let accounts = Arc::new((Account::default(), Account::default()));
        let other = Arc::clone(&accounts);
        let thread = thread::spawn(move || {
            let first = other.0.balance.lock().unwrap();
            *first + *other.1.balance.lock().unwrap()
        });
        let second = accounts.1.balance.lock().unwrap();
        let sum = *second + *accounts.0.balance.lock().unwrap();
        drop(second);
        assert_eq!(sum, thread.join().unwrap());
    }

    #[test]
    fn has_no_threads() {
        let account = Account::default();
        account.deposit(macros::answer!());
        assert_eq!(account.balance(), 42);
    }

    #[test]
    #[should_panic(expected = "no money")]
    fn panics_as_it_should() {
        let thread = thread::spawn(|| panic!("no money"));
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }

    #[test]
    #[ignore = "for another day"]
    fn is_ignored() {
        unreachable!("it is ignored");
    }

    #[test]
    fn runs_in_the_packages_directory() {
        assert!(std::path::Path::new("macros/Cargo.toml").exists());
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some_and(|it| it == env!("CARGO_MANIFEST_DIR")));
    }

    #[test]
    fn sums_without_std() {
        let sum = plain::Sum::default();
        thread::scope(|scope| {
            scope.spawn(|| sum.add_all(&vec![1, 2]));
            scope.spawn(|| sum.add_all(&vec![3]));
        });
        assert_eq!(sum.get(), 6);
    }

    #[test]
    #[cfg(feature = "interest")]
    fn has_a_feature() {}
}
