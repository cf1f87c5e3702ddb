//! What the facade puts in the place of `std`'s is used here in every way that `std`'s can be.

use std::fmt::{Debug, Display};
use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::{
    Arc, Barrier, BarrierWaitResult, Condvar, LazyLock, LockResult, Mutex, MutexGuard, Once, OnceLock,
    PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult, WaitTimeoutResult,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

static COUNTER: Mutex<u32> = Mutex::new(0);
static TABLE: RwLock<Vec<u32>> = RwLock::new(Vec::new());
static CHANGED: Condvar = Condvar::new();
static MEETING: Barrier = Barrier::new(2);
static NAMES: LazyLock<Mutex<Vec<&'static str>>> = LazyLock::new(|| Mutex::new(vec!["a"]));
static LIMIT: OnceLock<RwLock<u32>> = OnceLock::new();
static START: Once = Once::new();

fn is_shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
fn is_shown<T: Debug + Display + Sync>() {}

#[test]
fn traits_are_there() {
    is_shared::<Mutex<String>>();
    is_shared::<RwLock<String>>();
    is_shared::<Condvar>();
    is_shared::<Barrier>();
    is_shown::<MutexGuard<'_, String>>();
    is_shown::<RwLockReadGuard<'_, String>>();
    is_shown::<RwLockWriteGuard<'_, String>>();
    let default: (Mutex<u8>, RwLock<u8>, Condvar) = Default::default();
    assert_eq!(*default.0.lock().unwrap() + *default.1.read().unwrap(), 0);
    assert_eq!(Mutex::from(1).into_inner().unwrap() + RwLock::from(2).into_inner().unwrap(), 3);
}

#[test]
fn debugging_output_is_the_same() {
    let mutex = Mutex::new(1);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 1, poisoned: false, .. }");
    let guard = mutex.lock().unwrap();
    assert_eq!(format!("{mutex:?} {guard:?} {guard}"), format!("{} 1 1", env!("LOCKED_MUTEX")));
    let lock = RwLock::new("x");
    assert_eq!(format!("{lock:?}"), r#"RwLock { data: "x", poisoned: false, .. }"#);
    assert_eq!(format!("{:?}", Condvar::new()), "Condvar { .. }");
    assert_eq!(format!("{:?}", Barrier::new(1)), "Barrier { .. }");
    assert_eq!(format!("{:?}", Barrier::new(1).wait()), "BarrierWaitResult { is_leader: true }");
}

#[test]
fn unsized_data_can_be_locked() {
    let call: Arc<Mutex<dyn Fn() -> u32 + Send>> = Arc::new(Mutex::new(|| 3));
    assert_eq!((call.lock().unwrap())(), 3);
    let slice: &RwLock<[u8]> = &RwLock::new([1, 2, 3]);
    slice.write().unwrap()[0] = 4;
    assert_eq!(slice.read().unwrap().iter().sum::<u8>(), 9);
}

#[test]
fn statics_are_made_at_compile_time_and_are_new_in_every_run() {
    START.call_once(|| assert_eq!(*COUNTER.lock().unwrap(), 0));
    thread::scope(|scope| {
        scope.spawn(|| *COUNTER.lock().unwrap() += 1);
        scope.spawn(|| TABLE.write().unwrap().push(1));
        scope.spawn(|| NAMES.lock().unwrap().push("b"));
        scope.spawn(|| *LIMIT.get_or_init(|| RwLock::new(7)).read().unwrap());
    });
    assert_eq!((*COUNTER.lock().unwrap(), TABLE.read().unwrap().len()), (1, 1));
    assert_eq!(NAMES.lock().unwrap().len(), 2);
}

#[test]
fn tries_fail_while_others_hold_the_lock() {
    let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
    let _held = mutex.lock().unwrap();
    assert!(matches!(mutex.try_lock(), Err(TryLockError::WouldBlock)));
    let reading = lock.read().unwrap();
    assert!(lock.try_read().is_ok());
    let tried: TryLockResult<RwLockWriteGuard<'_, ()>> = lock.try_write();
    assert!(matches!(tried, Err(TryLockError::WouldBlock)));
    drop(tried);
    drop(reading);
    let writing = lock.try_write().unwrap();
    assert!(lock.try_read().is_err());
    let reading = RwLockWriteGuard::downgrade(writing);
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    drop(reading);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_panic_poisons_what_was_locked() {
    let (mutex, lock) = (Arc::new(Mutex::new(1)), Arc::new(RwLock::new(1)));
    let (their_mutex, their_lock) = (Arc::clone(&mutex), Arc::clone(&lock));
    let thread = thread::spawn(move || {
        let _locked = (their_mutex.lock().unwrap(), their_lock.write().unwrap());
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    assert!(mutex.is_poisoned() && lock.is_poisoned());
    let poisoned: LockResult<MutexGuard<'_, i32>> = mutex.lock();
    assert_eq!(*poisoned.unwrap_or_else(PoisonError::into_inner), 1);
    assert!(matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_))));
    mutex.clear_poison();
    lock.clear_poison();
    assert!(mutex.lock().is_ok() && lock.read().is_ok());
    // A reader changes nothing that others could find half done.
    assert!(catch_unwind(|| { let _read = lock.read().unwrap(); panic!("on purpose") }).is_err());
    assert!(!lock.is_poisoned());
}

#[test]
fn conditions_are_waited_for_and_time_out() {
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            *ready.lock().unwrap() = true;
            changed.notify_all();
        });
        let guard = changed.wait_while(ready.lock().unwrap(), |ready| !*ready).unwrap();
        assert!(*guard);
    });
    wait_in_vain(Duration::from_millis(1));
    CHANGED.notify_one();
}

/// Skipped where time is not virtual.
#[test]
fn a_minute_passes_at_once() {
    wait_in_vain(Duration::from_secs(60));
}

fn wait_in_vain(time: Duration) {
    let (ready, changed) = (Mutex::new(false), Condvar::new());
    let start = Instant::now();
    let guard = ready.lock().unwrap();
    let (_guard, result): (_, WaitTimeoutResult) = changed.wait_timeout_while(guard, time, |_| true).unwrap();
    assert!(result.timed_out() && start.elapsed() >= time);
}

/// Work takes time, whoever does it: a division by zero would panic.
#[test]
fn rates_can_be_measured() {
    let (start, wall) = (Instant::now(), SystemTime::now());
    let work = || (0..20_000u64).map(|number| vec![number].len() as u128).sum::<u128>();
    let done = work() + thread::spawn(work).join().unwrap();
    assert!(done / start.elapsed().as_micros() < done);
    assert!(done / wall.elapsed().unwrap().as_micros() < done);
    while start.elapsed() < Duration::from_millis(10) {}
}

/// A time that was sent is not later than what its receiver sees.
#[test]
fn time_does_not_run_backwards() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let latest = Mutex::new(Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5 {
                *latest.lock().unwrap() = Instant::now();
            }
            sender.send((Instant::now(), SystemTime::now())).unwrap();
        });
        let (sent, wall) = receiver.recv().unwrap();
        assert!(Instant::now() >= sent && SystemTime::now() >= wall);
    });
    assert!(Instant::now() >= *latest.lock().unwrap());
}

#[test]
fn a_barrier_has_one_leader() {
    let leaders = thread::scope(|scope| {
        let other = scope.spawn(|| MEETING.wait());
        let mine: BarrierWaitResult = MEETING.wait();
        u32::from(mine.is_leader()) + u32::from(other.join().unwrap().is_leader())
    });
    assert_eq!(leaders, 1);
}

#[test]
fn a_hook_of_the_users_own_still_runs() {
    static CALLED: Mutex<bool> = Mutex::new(false);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| *CALLED.lock().unwrap() = true));
    assert!(thread::spawn(|| panic!("on purpose")).join().is_err());
    std::panic::set_hook(before);
    assert!(*CALLED.lock().unwrap());
}

#[test]
fn thread_locals_are_destroyed_before_a_join_returns() {
    struct Tells(Arc<Mutex<u32>>);
    impl Drop for Tells {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    thread_local!(static TELLS: std::cell::RefCell<Option<Tells>> = const { std::cell::RefCell::new(None) });
    let dropped = Arc::new(Mutex::new(0));
    let theirs = Arc::clone(&dropped);
    thread::spawn(move || TELLS.with(|tells| *tells.borrow_mut() = Some(Tells(theirs)))).join().unwrap();
    assert_eq!(*dropped.lock().unwrap(), 1);
}

#[test]
fn a_thread_that_spins_lets_others_run() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| ready.store(true, Ordering::Release));
        while !ready.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    });
}

#[test]
fn parking_and_channels_work() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let waits = thread::spawn(move || {
        thread::park();
        receiver.iter().sum::<u32>()
    });
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    drop(sender);
    waits.thread().unpark();
    assert_eq!(waits.join().unwrap(), 3);
}
