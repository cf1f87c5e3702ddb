//! Input and output that may have to be waited for: pipes, sockets, event descriptors.
//!
//! The kernel does the call, once it will not block. Before that the scheduler makes the thread wait until the
//! descriptor is ready. A call on one descriptor may make another one ready, so after each call all waiting threads
//! look again. When no thread can run, the runtime waits for other processes, in real time. If only the program itself
//! can make the descriptors ready, it is a deadlock.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use threadbare_trace::EventKind;

use super::descriptors::{self, is_the_tools};
use super::{channels, system};
use crate::active;
use crate::entry::log::Entry;
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

/// The program makes a child process.
pub fn forked() {
    if active() {
        FORKED.set(true);
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
    let entries = Cell::from_mut(entries).as_slice_of_cells();
    // SAFETY: only the thread's `Wait` has the longer lifetime, and `point` takes that back before it returns.
    let entries: &'static [Cell<libc::pollfd>] =
        unsafe { std::slice::from_raw_parts(entries.as_ptr(), entries.len()) };
    let waiting = if blocking { Wait::Ready(entries) } else { Wait::Nothing };
    let timed_out =
        point(Operation::new(EventKind::Io, pc, 0).waiting(waiting).until(deadline).cancellable());
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

/// Does `call` on a descriptor when it will not block. It fails when the time for that is up.
pub fn with(descriptor: c_int, events: i16, pc: u64, call: impl FnOnce() -> isize) -> isize {
    in_time(descriptor, events, pc, call).unwrap_or_else(|| system::fail(libc::EAGAIN) as isize)
}

/// The same; `None` when the time is up.
pub fn in_time(descriptor: c_int, events: i16, pc: u64, call: impl FnOnce() -> isize) -> Option<isize> {
    let pc = users_call(pc);
    let mut entry = [libc::pollfd { fd: descriptor, events, revents: 0 }];
    let blocking = may_block(descriptor);
    let limit = if blocking { time_limit(descriptor, events) } else { None };
    let deadline = limit.map(|limit| scheduler::now().saturating_add(limit));
    let timed_out = wait(&mut entry, blocking, deadline, pc);
    let result = (!timed_out).then(call);
    if !blocking && result.is_some_and(|result| result < 0) && system::errno() == libc::EAGAIN {
        looked_in_vain();
    }
    done(descriptor, pc);
    result
}

/// The running thread looked at a descriptor and found nothing. Time passes by a little, so that a thread which polls a
/// timer sees its end.
pub fn looked_in_vain() {
    const LOOK_NS: u64 = 1_000_000;
    if timers::are_running() {
        scheduler::with(|sched| sched.advance_to(sched.now.saturating_add(LOOK_NS)));
    }
}

/// A call on a descriptor was made.
pub fn done(descriptor: c_int, pc: u64) {
    system::keeping_errno(|| {
        USED.set(true);
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
        system::poll(&entries, POLL_MS);
        self.look_outside()
    }
}
