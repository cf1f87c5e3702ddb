//! What threads wait for.
//!
//! The state of a pthread object lives where glibc keeps it, in the object itself, in glibc's layout: so static
//! initialisers, `*_init`, `sem_getvalue`, copies and re-use of memory all work as they would, and there is
//! nothing to look up. (The fields used are fixed by the ABI of the static initialisers.)

use std::ffi::c_int;

use threadbare_trace::EventKind;

use crate::os::io;
use crate::schedule::scheduler;
use crate::schedule::scheduler::Scheduler;

/// Why a thread may be unable to do its operation.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    Nothing,
    /// A mutex to be free, or held by the thread itself where that is an answer.
    Mutex(u64),
    SpinLock(u64),
    ReadLock(u64),
    WriteLock(u64),
    Semaphore(u64),
    /// Another thread to end.
    Join(usize),
    /// The last thread to arrive at a barrier; `generation` passes.
    Barrier {
        address: u64,
        generation: u64,
    },
    /// A `once` routine that another thread is in.
    Once(u64),
    /// A wake-up, and then for a condition wait the mutex.
    Wakeup {
        address: u64,
        ticket: u64,
        mask: u32,
        mutex: Option<u64>,
    },
    /// Time.
    Sleep,
    /// One of these signals, a bit each.
    Signal(u64),
    /// A descriptor to be ready: the `count` entries of a `pollfd` array that the thread keeps.
    Ready {
        entries: u64,
        count: u64,
    },
}

/// The pretended address of thread `index`, for waits on its end.
pub fn thread_address(index: usize) -> u64 {
    index as u64
}

impl Wait {
    /// Thread `me` can go on.
    pub fn is_over(&self, sched: &Scheduler, me: usize) -> bool {
        match *self {
            Wait::Nothing => true,
            Wait::Mutex(address) => Mutex::at(address).can_lock(me),
            Wait::SpinLock(address) => *spin_lock(address) > 0,
            Wait::ReadLock(address) => RwLock::at(address).can_read(sched),
            Wait::WriteLock(address) => {
                let lock = RwLock::at(address);
                lock.writer == 0 && lock.readers == 0
            }
            Wait::Semaphore(address) => *semaphore(address) > 0,
            Wait::Join(index) => sched.threads[index].done,
            Wait::Barrier { address, generation } => sched.wakeups.generation(address) > generation,
            Wait::Once(address) => *once(address) & ONCE_STATE != ONCE_RUNNING,
            Wait::Wakeup { address, ticket, mask, mutex } => {
                sched.wakeups.has(address, ticket, mask)
                    && mutex.is_none_or(|mutex| Mutex::at(mutex).can_lock(me))
            }
            Wait::Sleep => false,
            Wait::Signal(wanted) => sched.signals_for(me) & wanted != 0,
            Wait::Ready { entries, count } => io::is_ready(entries, count),
        }
    }

    /// A wait that is given up may return now: nothing else stands in its way.
    pub fn may_end(&self, me: usize) -> bool {
        match *self {
            Wait::Wakeup { mutex: Some(mutex), .. } => Mutex::at(mutex).can_lock(me),
            _ => true,
        }
    }

    /// A change at `address` may end it.
    pub fn concerns(&self, address: u64) -> bool {
        match *self {
            Wait::Nothing | Wait::Sleep | Wait::Signal(_) => false,
            Wait::Ready { .. } => address == io::ANY,
            Wait::Mutex(of)
            | Wait::SpinLock(of)
            | Wait::ReadLock(of)
            | Wait::WriteLock(of)
            | Wait::Semaphore(of)
            | Wait::Once(of)
            | Wait::Barrier { address: of, .. } => of == address,
            Wait::Join(index) => thread_address(index) == address,
            Wait::Wakeup { address: of, mutex, .. } => of == address || mutex == Some(address),
        }
    }

    /// The thread that would have to act first, where that is known.
    pub fn holder(&self, sched: &Scheduler) -> Option<usize> {
        let owner = |number: c_int| usize::try_from(number).ok()?.checked_sub(1);
        match *self {
            Wait::Mutex(address) => owner(Mutex::at(address).owner),
            Wait::ReadLock(address) | Wait::WriteLock(address) => owner(RwLock::at(address).writer as c_int)
                .or_else(|| sched.threads.iter().position(|thread| thread.read_locks.contains(&address))),
            Wait::Join(index) => Some(index),
            _ => None,
        }
    }
}

/// The beginning of glibc's `pthread_mutex_t`.
#[repr(C)]
pub struct Mutex {
    pub lock: c_int,
    pub count: u32,
    /// 1 + the index of the owning thread, where glibc keeps a kernel thread id.
    pub owner: c_int,
    pub users: u32,
    pub kind: c_int,
}

impl Mutex {
    pub const RECURSIVE: c_int = 1;
    pub const ERROR_CHECK: c_int = 2;
    const TYPE: c_int = 3;
    const ROBUST: c_int = 16;
    /// In `count`: the owner died, and nobody has said yet that the data is consistent again.
    pub const INCONSISTENT: u32 = 1 << 31;
    /// In `owner`: a holder gave an inconsistent mutex up.
    pub const LOST: c_int = -1;

    pub fn at(address: u64) -> &'static mut Mutex {
        // SAFETY: the program passed it as a mutex.
        unsafe { &mut *(address as *mut Mutex) }
    }

    pub fn kind(&self) -> c_int {
        self.kind & Mutex::TYPE
    }

    pub fn is_owned_by(&self, thread: usize) -> bool {
        self.lock != 0 && self.owner == thread as c_int + 1
    }

    pub fn is_robust(&self) -> bool {
        self.kind & Mutex::ROBUST != 0
    }

    /// Its owner ended without unlocking it, which only a robust mutex gets over.
    pub fn is_orphan(&self, sched: &Scheduler) -> bool {
        let owner = usize::try_from(self.owner).ok().and_then(|owner| owner.checked_sub(1));
        self.is_robust()
            && self.lock != 0
            && owner.and_then(|owner| sched.threads.get(owner)).is_some_and(|owner| owner.done)
    }

    /// A lock by `thread` returns, be it with an error.
    pub fn can_lock(&self, thread: usize) -> bool {
        self.lock == 0
            || self.is_owned_by(thread) && matches!(self.kind(), Mutex::RECURSIVE | Mutex::ERROR_CHECK)
            || self.is_orphan(scheduler::get())
    }

    pub fn take(&mut self, thread: usize) {
        (self.lock, self.owner, self.users) = (1, thread as c_int + 1, 1);
    }

    pub fn release(&mut self) {
        (self.lock, self.owner, self.users) = (0, 0, 0);
    }
}

/// glibc's `pthread_rwlock_t`, as far as it is used.
#[repr(C)]
pub struct RwLock {
    pub readers: u32,
    unused: [u32; 5],
    /// 1 + the index of the writing thread.
    pub writer: u32,
    unused_too: [u32; 5],
    preference: u32,
}

impl RwLock {
    pub fn at(address: u64) -> &'static mut RwLock {
        // SAFETY: the program passed it as a read-write lock.
        unsafe { &mut *(address as *mut RwLock) }
    }

    /// Readers wait for writers that wait (`PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, and Rust's locks).
    pub fn prefers_writers(&self) -> bool {
        const PREFER_WRITER: u32 = 2;
        self.preference == PREFER_WRITER
    }

    pub fn can_read(&self, sched: &Scheduler) -> bool {
        self.writer == 0 && !(self.prefers_writers() && self.readers > 0 && self.has_waiting_writer(sched))
    }

    fn has_waiting_writer(&self, sched: &Scheduler) -> bool {
        let address = std::ptr::from_ref(self) as u64;
        let waits = |index: usize| matches!(sched.threads[index].wait, Wait::WriteLock(of) if of == address);
        sched.alive.iter().any(waits)
    }
}

/// glibc's spin lock on x86: 1 when free.
pub fn spin_lock(address: u64) -> &'static mut c_int {
    // SAFETY: the program passed it as a spin lock.
    unsafe { &mut *(address as *mut c_int) }
}

/// The value of a `sem_t`.
pub fn semaphore(address: u64) -> &'static mut u32 {
    // SAFETY: the program passed it as a semaphore, whose value is its first word.
    unsafe { &mut *(address as *mut u32) }
}

/// How many threads a `pthread_barrier_t` is for.
pub fn barrier_count(address: u64) -> u32 {
    // SAFETY: the program passed it as a barrier, whose count is its third word.
    unsafe { ((address + 8) as *const u32).read() }
}

/// A `pthread_once_t`.
pub fn once(address: u64) -> &'static mut c_int {
    // SAFETY: the program passed it as one.
    unsafe { &mut *(address as *mut c_int) }
}

pub const ONCE_STATE: c_int = 3;
pub const ONCE_RUNNING: c_int = 1;
pub const ONCE_DONE: c_int = 2;

/// Wake-ups on their way, for condition variables and futexes.
///
/// A notification does not choose whom it wakes: it leaves a token that any thread may take which was already
/// waiting then. Who takes it is up to the schedule.
#[derive(Default)]
pub struct Wakeups {
    /// Counts waits and notifications, to tell which came first.
    clock: u64,
    /// In the order they were left.
    tokens: Vec<Token>,
    /// How often each barrier has opened.
    generations: Vec<(u64, u64)>,
}

struct Token {
    address: u64,
    time: u64,
    mask: u32,
}

impl Wakeups {
    /// A ticket for a wait that begins now.
    pub fn ticket(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The tokens left, each with its address, when it was left, and its mask.
    pub fn tokens(&self) -> impl Iterator<Item = (u64, u64, u32)> {
        self.tokens.iter().map(|token| (token.address, token.time, token.mask))
    }

    fn position(&self, address: u64, ticket: u64, mask: u32) -> Option<usize> {
        self.tokens
            .iter()
            .position(|token| token.address == address && token.time > ticket && token.mask & mask != 0)
    }

    /// There is a token for this wait.
    pub fn has(&self, address: u64, ticket: u64, mask: u32) -> bool {
        self.position(address, ticket, mask).is_some()
    }

    /// Takes the oldest token for this wait.
    pub fn take(&mut self, address: u64, ticket: u64, mask: u32) -> bool {
        let position = self.position(address, ticket, mask);
        position.map(|position| self.tokens.remove(position)).is_some()
    }

    /// How often the barrier has opened.
    pub fn generation(&self, address: u64) -> u64 {
        self.generations.iter().find(|(barrier, _)| *barrier == address).map_or(0, |&(_, count)| count)
    }

    /// Opens the barrier.
    pub fn next_generation(&mut self, address: u64) {
        match self.generations.iter_mut().find(|(barrier, _)| *barrier == address) {
            Some((_, count)) => *count += 1,
            None => self.generations.push((address, 1)),
        }
    }
}

impl Scheduler {
    /// Wakes up to `most` of the threads that wait at `address`; returns how many.
    pub fn notify(&mut self, address: u64, most: u64, wanted: u32) -> u64 {
        let waits = |wait: &Wait| matches!(*wait, Wait::Wakeup { address: of, mask, .. } if of == address && mask & wanted != 0);
        let waiting = self.alive.iter().filter(|&index| waits(&self.threads[index].wait)).count() as u64;
        let given = |token: &&Token| token.address == address && token.mask & wanted != 0;
        let given = self.wakeups.tokens.iter().filter(given).count() as u64;
        let woken = most.min(waiting.saturating_sub(given));
        for _ in 0..woken {
            let time = self.wakeups.ticket();
            self.wakeups.tokens.push(Token { address, time, mask: wanted });
        }
        if woken > 0 {
            self.released(address);
        }
        woken
    }

    /// Threads that wait at the barrier `address` in its present generation.
    pub fn at_barrier(&self, address: u64) -> u32 {
        let now = self.wakeups.generation(address);
        let waits = |wait: &Wait| matches!(*wait, Wait::Barrier { address: of, generation } if of == address && generation == now);
        self.alive.iter().filter(|&index| waits(&self.threads[index].wait)).count() as u32
    }
}

/// The kind of the event that ends a wait for a wake-up.
pub fn resume_kind(mutex: Option<u64>) -> EventKind {
    if mutex.is_some() { EventKind::Wake } else { EventKind::FutexResume }
}
