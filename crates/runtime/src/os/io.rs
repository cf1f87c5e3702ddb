//! Input and output that may have to be waited for: pipes, sockets, event descriptors.
//!
//! The kernel does the call, once it will not block. Before that the scheduler makes the thread wait until the
//! descriptor is ready. A call on one descriptor may make another one ready, so after each call all waiting threads
//! look again. When no thread can run, the runtime waits for other processes, in real time. If only the program itself
//! can make the descriptors ready, it is a deadlock.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use threadbare_trace::{EventKind, Influence};

use super::descriptors::{self, is_the_tools};
use super::{channels, system};
use crate::active;
use crate::entry::log::{self, Entry};
use crate::entry::modules::users_call;
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{self, Operation, Scheduler, point};
use crate::schedule::state;
use crate::schedule::wait::Wait;
use crate::sync::cancellation;
use crate::time::{alarms, clock, timers};

/// The pretended address of "some descriptor".
pub const ANY: u64 = u64::MAX;

/// Descriptors whose other end this process has.
static OWN: Carrier<Vec<c_int>> = Carrier::new(Vec::new());
/// A child process may hold any descriptor's other end.
static FORKED: Carrier<bool> = Carrier::new(false);
/// A pipe, a socket or the like has been used, or a file changed.
static USED: Carrier<bool> = Carrier::new(false);
/// What [`changes`] says.
static CHANGES: Carrier<u64> = Carrier::new(0);

/// The program makes a child process.
pub fn forked() {
    if active() {
        FORKED.set(true);
        log::influenced_by(Influence::Children);
    }
}

/// The program has made a child process at some time.
pub fn has_forked() -> bool {
    FORKED.get()
}

/// The program changes something outside that stays changed when the run is over.
pub fn goes_outside() {
    if active() && scheduler::is_running() {
        USED.set(true);
        log::influenced_by(Influence::Files);
    }
}

/// The program has, or may have, done something that a snapshot cannot take back: input, output, changes of files.
pub fn has_been_outside() -> bool {
    has_forked() || USED.get() || OWN.with(|own| !own.is_empty()) || channels::are_new()
}

/// Any of the descriptors is ready.
pub fn is_ready(entries: &[Cell<libc::pollfd>]) -> bool {
    system::poll(entries, 0) > 0
}

/// What kind of thing a descriptor is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// A file, a terminal: never waited for.
    Plain,
    Pipe,
    Socket,
    /// An event, timer, signal or epoll descriptor.
    Event,
}

pub fn nature(descriptor: c_int) -> Nature {
    match system::status(descriptor).map(|status| status.st_mode & libc::S_IFMT) {
        Some(libc::S_IFIFO) => Nature::Pipe,
        Some(libc::S_IFSOCK) => Nature::Socket,
        Some(0) => Nature::Event,
        Some(_) | None => Nature::Plain,
    }
}

/// Waiting is left to the scheduler: there are several threads, or a timer that only the scheduler knows of.
pub fn is_controlled() -> bool {
    active() && (scheduler::is_running() || timers::are_running() || alarms::are_running())
}

/// A call on this descriptor concerns the schedule.
pub fn is_modelled(descriptor: c_int) -> bool {
    is_controlled() && !is_the_tools(descriptor) && nature(descriptor) != Nature::Plain
}

pub fn may_block(descriptor: c_int) -> bool {
    system::fcntl(descriptor, libc::F_GETFL, 0) & i64::from(libc::O_NONBLOCK) == 0
}

/// Waits until one of the entries is ready; `true` when the time was up first.
pub fn wait(entries: &mut [libc::pollfd], blocking: bool, deadline: Option<u64>, pc: u64) -> bool {
    wait_as(entries, deadline, pc, |entries| if blocking { Wait::Ready(entries) } else { Wait::Nothing })
}

/// Waits for what `waiting` makes of the entries; `true` when the time was up first.
fn wait_as(
    entries: &mut [libc::pollfd],
    deadline: Option<u64>,
    pc: u64,
    waiting: impl FnOnce(&'static [Cell<libc::pollfd>]) -> Wait,
) -> bool {
    let entries = Cell::from_mut(entries).as_slice_of_cells();
    // SAFETY: only the thread's `Wait` has the longer lifetime, and `point` takes that back before it returns.
    let entries: &'static [Cell<libc::pollfd>] =
        unsafe { std::slice::from_raw_parts(entries.as_ptr(), entries.len()) };
    let operation = Operation::new(EventKind::Io, pc, 0).waiting(waiting(entries));
    let timed_out = point(operation.until(deadline).cancellable());
    cancellation::act_at(EventKind::Io, pc, 0);
    timed_out
}

/// How long the program may wait for these events on a descriptor, in nanoseconds, if it has set a limit: sockets can
/// have one.
fn time_limit(descriptor: c_int, events: i16) -> Option<u64> {
    if nature(descriptor) != Nature::Socket {
        return None;
    }
    let mut limit = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut size = size_of_val(&limit) as libc::socklen_t;
    let (place, size) = ((&raw mut limit) as u64, (&raw mut size) as u64);
    let option = if events == libc::POLLOUT { libc::SO_SNDTIMEO } else { libc::SO_RCVTIMEO };
    let arguments = [descriptor as u64, libc::SOL_SOCKET as u64, option as u64, place, size, 0];
    // SAFETY: the kernel writes to the time, whose size it is told, and to the size.
    unsafe { system::call(libc::SYS_getsockopt, arguments) };
    clock::from_timeval(limit).filter(|&nanoseconds| nanoseconds > 0)
}

/// A call on a descriptor that the kernel may not be able to do at once.
pub struct Call {
    descriptor: c_int,
    /// What the descriptor has to be ready for.
    events: i16,
    /// The program's call waits.
    pub blocking: bool,
    deadline: Option<u64>,
    pc: u64,
}

impl Call {
    /// One that does not look at the descriptor's own flags and time limits.
    pub fn on_file(descriptor: c_int, waits: bool, pc: u64) -> Call {
        Call { descriptor, events: 0, blocking: waits, deadline: None, pc: users_call(pc) }
    }

    /// `waits`: no flag of the call itself says that it must not wait. The time that it has begins now.
    pub fn new(descriptor: c_int, events: i16, waits: bool, pc: u64) -> Call {
        let blocking = waits && may_block(descriptor);
        let limit = if blocking { time_limit(descriptor, events) } else { None };
        let deadline = limit.map(|limit| scheduler::now().saturating_add(limit));
        Call { descriptor, events, blocking, deadline, pc: users_call(pc) }
    }

    /// The call's place in the program.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Makes it when the descriptor is ready; `None` when the time is up.
    pub fn once(&self, call: impl FnOnce() -> isize) -> Option<isize> {
        let mut entry = [libc::pollfd { fd: self.descriptor, events: self.events, revents: 0 }];
        let timed_out = wait(&mut entry, self.blocking, self.deadline, self.pc);
        let result = (!timed_out).then(call);
        if !self.blocking && result.is_some_and(would_block) {
            looked_in_vain();
        }
        done(self.descriptor, self.pc);
        result
    }

    /// Makes it again until it does not fail for want of waiting. `call` itself must not wait.
    pub fn until_done(&self, mut call: impl FnMut() -> isize) -> Option<isize> {
        loop {
            let result = self.once(&mut call)?;
            if !self.blocking || !would_block(result) {
                return Some(result);
            }
            if self.waits_in_vain() {
                return None;
            }
        }
    }

    /// Makes it, whether the descriptor is ready or not.
    pub fn at_once(&self, call: impl FnOnce() -> isize) -> isize {
        wait(&mut [], false, None, self.pc);
        let result = call();
        done(self.descriptor, self.pc);
        result
    }

    /// The same, again after each change until it does not fail for want of waiting. `None` when the time is up.
    pub fn again_until_done(&self, mut call: impl FnMut() -> isize) -> Option<isize> {
        loop {
            let result = self.at_once(&mut call);
            if !self.blocking || !would_block(result) {
                return Some(result);
            }
            if self.waits_in_vain() {
                return None;
            }
        }
    }

    /// Waits until something was done on any descriptor; `true` when the time was up first. A descriptor may be ready
    /// for less than the call needs.
    pub fn waits_in_vain(&self) -> bool {
        // No event is asked for: the descriptor may be ready all the time.
        let mut entry = [libc::pollfd { fd: self.descriptor, events: 0, revents: 0 }];
        let since = changes();
        let timed_out =
            wait_as(&mut entry, self.deadline, self.pc, |descriptors| Wait::Change { since, descriptors });
        Entry::new(EventKind::Io, self.pc, 0).value(self.descriptor as u64).write();
        timed_out
    }
}

/// The call failed because it would have had to wait.
pub fn would_block(result: isize) -> bool {
    result < 0 && system::errno() == libc::EAGAIN
}

/// What a call returns whose time is up.
pub fn or_out_of_time(result: Option<isize>) -> isize {
    result.unwrap_or_else(|| system::fail(libc::EAGAIN) as isize)
}

/// Does `call` on a descriptor when it will not block. It fails when the time for that is up.
pub fn with(descriptor: c_int, events: i16, pc: u64, call: impl FnOnce() -> isize) -> isize {
    or_out_of_time(Call::new(descriptor, events, true, pc).once(call))
}

/// The running thread looked at a descriptor and found nothing. Time passes by a little, so that a thread which polls a
/// timer sees its end.
pub fn looked_in_vain() {
    const LOOK_NS: u64 = 1_000_000;
    if timers::are_running() {
        scheduler::with(|sched| sched.advance_to(sched.now.saturating_add(LOOK_NS)));
    }
}

/// How often something was done on a descriptor, or may have been done outside.
pub fn changes() -> u64 {
    CHANGES.get()
}

/// A call on a descriptor was made.
pub fn done(descriptor: c_int, pc: u64) {
    system::keeping_errno(|| {
        USED.set(true);
        CHANGES.set(CHANGES.get() + 1);
        Entry::new(EventKind::Io, pc, 0).value(descriptor as u64).write();
        scheduler::released(ANY);
    });
}

/// The running thread has these bytes from outside.
///
/// # Safety
/// `got` is how many bytes of the buffer can be read, or negative.
pub unsafe fn received(buffer: *const c_void, got: isize) -> isize {
    if active() {
        // SAFETY: the caller's promise.
        unsafe { state::learns_bytes(buffer as u64, u64::try_from(got).unwrap_or(0)) };
    }
    got
}

/// These descriptors are closed; their numbers may come to mean something else.
pub fn forget(closed: impl Fn(c_int) -> bool) {
    OWN.with(|own| own.retain(|&own| !closed(own)));
    timers::forget(&closed);
    channels::forget(&closed);
}

/// Nobody outside has the other end of this descriptor.
pub fn owns(descriptor: c_int) {
    OWN.with(|own| own.push(descriptor));
}

/// What comes to this descriptor comes from the program itself.
fn is_own(descriptor: c_int) -> bool {
    let is_same = |&own: &c_int| descriptors::are_same(own, descriptor);
    OWN.with(|own| own.iter().any(is_same))
        || channels::watched(descriptor).is_some_and(|watched| watched.into_iter().all(is_own))
}

impl Scheduler {
    /// Lets everybody who waits for a descriptor look again; says whether anybody does.
    pub fn look_outside(&mut self) -> bool {
        self.released(ANY);
        !self.ready.is_empty()
    }

    /// Nobody can run: waits for the world outside, for a moment. `false` when nothing can come from there.
    pub fn wait_outside(&mut self) -> bool {
        /// The tool's time limit decides how often that is.
        const POLL_MS: u64 = 20;
        let waited_for = self.alive.iter().flat_map(|index| self.threads[index].wait.rules().descriptors);
        let entries: Vec<Cell<libc::pollfd>> = waited_for.cloned().collect();
        let all_own = entries.iter().all(|entry| is_own(entry.get().fd));
        if all_own && !has_forked() {
            return false;
        }
        log::influenced_by(Influence::Outside);
        system::poll(&entries, POLL_MS);
        CHANGES.set(CHANGES.get() + 1);
        self.look_outside()
    }
}
