//! Input and output that may have to be waited for: pipes, sockets, event descriptors, and `poll` and its kin.
//!
//! The call itself is left to the kernel, but only once it will not block: before it, the thread waits, as the
//! scheduler understands it, for the descriptor to be ready. Whatever any thread does to a descriptor may make
//! another one ready, so all who wait look again after it. When nobody else can run, the world outside is
//! waited for, in real time; it is a deadlock if everything waited for can only come from the program itself.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_trace::EventKind;

use crate::active;
use crate::entry::intercept::intercept;
use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::entry::real::real;
use crate::os::channels::Kind;
use crate::os::descriptors::{bad_descriptor, is_the_tools};
use crate::os::{channels, descriptors, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler::{Operation, Scheduler, point};
use crate::schedule::wait::Wait;
use crate::schedule::{scheduler, state};
use crate::sync::cancellation;
use crate::time::{alarms, clock, timers};

/// The pretended address of "some descriptor".
pub const ANY: u64 = u64::MAX;

/// Descriptors whose other end this process has.
static OWN: Carrier<Vec<c_int>> = Carrier::new(Vec::new());
/// A child process may hold any descriptor's other end.
static FORKED: AtomicBool = AtomicBool::new(false);

/// A pipe, a socket or the like has been used, or a file changed.
static USED: Carrier<bool> = Carrier::new(false);

/// The program makes a child process.
pub fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// The program changes something outside that stays changed when the run is over.
pub fn goes_outside() {
    if active() && scheduler::get().running {
        *USED.get() = true;
    }
}

/// There has been input or output that another process could notice, or another thread undo, or there may be.
pub fn has_been_outside() -> bool {
    FORKED.load(Ordering::Relaxed) || *USED.get() || !OWN.get().is_empty() || channels::are_new()
}

/// The program has made a child process at some time.
pub fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Any of the descriptors is ready.
pub fn is_ready(entries: u64, count: u64) -> bool {
    system::call(libc::SYS_poll, [entries, count, 0, 0, 0, 0]) > 0
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
    // SAFETY: a plain system call into a place of our own.
    let mode = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(descriptor, &mut status) != 0 {
            return Nature::Plain;
        }
        status.st_mode & libc::S_IFMT
    };
    match mode {
        libc::S_IFIFO => Nature::Pipe,
        libc::S_IFSOCK => Nature::Socket,
        0 => Nature::Event,
        _ => Nature::Plain,
    }
}

/// A call on this descriptor concerns the schedule.
fn is_modelled(descriptor: c_int) -> bool {
    is_controlled() && !is_the_tools(descriptor) && nature(descriptor) != Nature::Plain
}

fn may_block(descriptor: c_int) -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::fcntl(descriptor, libc::F_GETFL) & libc::O_NONBLOCK == 0 }
}

/// Waits until one of the entries is ready; `true` when the time was up first.
pub fn wait(entries: &mut [libc::pollfd], blocking: bool, deadline: Option<u64>, pc: u64) -> bool {
    let ready = Wait::Ready { entries: entries.as_mut_ptr() as u64, count: entries.len() as u64 };
    let waiting = if blocking { ready } else { Wait::Nothing };
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
    system::call(libc::SYS_getsockopt, arguments);
    clock::from_timeval(limit).filter(|&nanoseconds| nanoseconds > 0)
}

/// Does `call` on a descriptor when it will not block. It fails when the time for that is up.
fn with(descriptor: c_int, events: i16, pc: u64, call: impl FnOnce() -> isize) -> isize {
    in_time(descriptor, events, pc, call).unwrap_or_else(|| system::fail(libc::EAGAIN) as isize)
}

/// The same; `None` when the time is up.
fn in_time(descriptor: c_int, events: i16, pc: u64, call: impl FnOnce() -> isize) -> Option<isize> {
    let pc = users_call(pc);
    let mut entry = [libc::pollfd { fd: descriptor, events, revents: 0 }];
    let blocking = may_block(descriptor);
    let limit = if blocking { time_limit(descriptor, events) } else { None };
    let deadline = limit.map(|limit| scheduler::get().now.saturating_add(limit));
    let timed_out = wait(&mut entry, blocking, deadline, pc);
    let result = (!timed_out).then(call);
    // SAFETY: errno of the running thread.
    if !blocking
        && result.is_some_and(|result| result < 0)
        && unsafe { *libc::__errno_location() } == libc::EAGAIN
    {
        looked_in_vain();
    }
    done(descriptor, pc);
    result
}

/// Nothing was there yet. Whoever looks again and again for a timer to be over must see that one day.
fn looked_in_vain() {
    /// In nanoseconds.
    const LOOK: u64 = 1_000_000;
    if timers::are_running() {
        let sched = scheduler::get();
        sched.advance_to(sched.now.saturating_add(LOOK));
    }
}

/// A call on a descriptor was made.
pub fn done(descriptor: c_int, pc: u64) {
    system::keeping_errno(|| {
        *USED.get() = true;
        Entry::new(EventKind::Io, pc, 0).value(descriptor as u64).write();
        scheduler::get().released(ANY);
    });
}

/// Writes all of it, in pieces that do not block.
fn write_all(descriptor: c_int, bytes: *const u8, len: usize, pc: u64) -> isize {
    if !may_block(descriptor) || nature(descriptor) == Nature::Event {
        return with(
            descriptor,
            libc::POLLOUT,
            pc,
            || real!(write(descriptor => c_int, bytes => *const u8, len => usize) -> isize),
        );
    }
    /// What a pipe that is ready takes at once.
    const PIECE: usize = 4096;
    let socket = nature(descriptor) == Nature::Socket;
    let mut written = 0;
    loop {
        let (rest, left) = (bytes.wrapping_add(written), len - written);
        let result = in_time(descriptor, libc::POLLOUT, pc, || {
            if socket {
                let flags = libc::MSG_DONTWAIT;
                real!(send(descriptor => c_int, rest => *const u8, left => usize, flags => c_int) -> isize)
            } else {
                real!(write(descriptor => c_int, rest => *const u8, left.min(PIECE) => usize) -> isize)
            }
        });
        // SAFETY: errno of the running thread.
        let again = || unsafe { *libc::__errno_location() } == libc::EAGAIN;
        match result {
            Some(..0) if again() => {}
            None | Some(..0) if written > 0 => return written as isize,
            None => return system::fail(libc::EAGAIN) as isize,
            Some(error @ ..0) => return error,
            Some(count) => written += count as usize,
        }
        if written >= len {
            return written as isize;
        }
    }
}

intercept! {
    read/3 => read_;
    __read_chk/4 => read_checked;
    readv/3 => readv_;
    write/3 => write_;
    writev/3 => writev_;
    recv/4 => recv_;
    recvmsg/3 => recvmsg_;
    send/4 => send_;
    sendmsg/3 => sendmsg_;
    accept/3 => accept_;
    accept4/4 => accept4_;
    eventfd_read/2 => eventfd_read_;
    eventfd_write/2 => eventfd_write_;
    close/1 => close_;
    shutdown/2 => shutdown_;
    poll/3 => poll_;
    __poll_chk/4 => poll_checked;
    ppoll/4 => ppoll_;
    select/5 => select_;
    epoll_wait/4 => epoll_wait_;
    epoll_pwait/5 => epoll_pwait_;
}

/// A call that is made once the descriptor is ready for `$events`.
macro_rules! when_ready {
    ($($function:ident => $real:ident($($arg:ident: $ty:ty),*) -> $ret:ty, $events:expr;)+) => { $(
        extern "C" fn $function(descriptor: c_int, $($arg: $ty,)* pc: u64) -> $ret {
            let call = || real!($real(descriptor => c_int, $($arg => $ty),*) -> $ret);
            if is_modelled(descriptor) {
                with(descriptor, $events, pc, || call() as isize) as $ret
            } else {
                call()
            }
        }
    )+ };
}

when_ready! {
    readv_ => readv(parts: *const libc::iovec, count: c_int) -> isize, libc::POLLIN;
    writev_ => writev(parts: *const libc::iovec, count: c_int) -> isize, libc::POLLOUT;
    recvmsg_ => recvmsg(message: *mut libc::msghdr, flags: c_int) -> isize, libc::POLLIN;
    send_ => send(buffer: *const c_void, len: usize, flags: c_int) -> isize, libc::POLLOUT;
    sendmsg_ => sendmsg(message: *const libc::msghdr, flags: c_int) -> isize, libc::POLLOUT;
    accept_ => accept(address: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int, libc::POLLIN;
    accept4_ => accept4(address: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int) -> c_int, libc::POLLIN;
    eventfd_read_ => eventfd_read(value: *mut u64) -> c_int, libc::POLLIN;
    eventfd_write_ => eventfd_write(value: u64) -> c_int, libc::POLLOUT;
}

extern "C" fn read_(descriptor: c_int, buffer: *mut c_void, len: usize, pc: u64) -> isize {
    let call = || real!(read(descriptor => c_int, buffer => *mut c_void, len => usize) -> isize);
    let got = if is_modelled(descriptor) { with(descriptor, libc::POLLIN, pc, call) } else { call() };
    received(buffer, got)
}

extern "C" fn recv_(descriptor: c_int, buffer: *mut c_void, len: usize, flags: c_int, pc: u64) -> isize {
    let call =
        || real!(recv(descriptor => c_int, buffer => *mut c_void, len => usize, flags => c_int) -> isize);
    let got = if is_modelled(descriptor) { with(descriptor, libc::POLLIN, pc, call) } else { call() };
    received(buffer, got)
}

/// The running thread has these bytes from outside.
fn received(buffer: *const c_void, got: isize) -> isize {
    if active() {
        // SAFETY: the kernel has just written as many there.
        unsafe { state::learns_bytes(buffer as u64, u64::try_from(got).unwrap_or(0)) };
    }
    got
}

extern "C" fn read_checked(descriptor: c_int, buffer: *mut c_void, len: usize, _: usize, pc: u64) -> isize {
    read_(descriptor, buffer, len, pc)
}

extern "C" fn write_(descriptor: c_int, buffer: *const u8, len: usize, pc: u64) -> isize {
    if is_modelled(descriptor) {
        return write_all(descriptor, buffer, len, pc);
    }
    real!(write(descriptor => c_int, buffer => *const u8, len => usize) -> isize)
}

/// Six arguments leave no register for a return address; the call's place is then that of its function.
macro_rules! six_arguments {
    ($($name:ident($a:ty, $b:ty, $c:ty, $d:ty, $e:ty), $events:expr;)+) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(descriptor: c_int, a: $a, b: $b, c: $c, d: $d, e: $e) -> isize {
            let call = || real!($name(
                descriptor => c_int, a => $a, b => $b, c => $c, d => $d, e => $e
            ) -> isize);
            if is_modelled(descriptor) {
                with(descriptor, $events, crate::hooks::calls::innermost(), call)
            } else {
                call()
            }
        }
    )+ };
}

six_arguments! {
    recvfrom(*mut c_void, usize, c_int, *mut libc::sockaddr, *mut libc::socklen_t), libc::POLLIN;
    sendto(*const c_void, usize, c_int, *const libc::sockaddr, libc::socklen_t), libc::POLLOUT;
}

extern "C" fn close_(descriptor: c_int, pc: u64) -> c_int {
    if is_the_tools(descriptor) {
        return bad_descriptor();
    }
    let modelled = is_modelled(descriptor);
    if active() {
        forget(|own| own == descriptor);
    }
    let result = real!(close(descriptor => c_int) -> c_int);
    if modelled {
        let pc = users_call(pc);
        point(Operation::new(EventKind::Io, pc, 0));
        done(descriptor, pc);
    }
    result
}

extern "C" fn shutdown_(descriptor: c_int, how: c_int, pc: u64) -> c_int {
    let call = || real!(shutdown(descriptor => c_int, how => c_int) -> c_int);
    if !is_modelled(descriptor) {
        return call();
    }
    let pc = users_call(pc);
    point(Operation::new(EventKind::Io, pc, 0));
    let result = call();
    done(descriptor, pc);
    result
}

/// These descriptors are closed; their numbers may come to mean something else.
pub fn forget(closed: impl Fn(c_int) -> bool) {
    OWN.get().retain(|&own| !closed(own));
    timers::forget(&closed);
    channels::forget(&closed);
}

/// Nobody outside has the other end of this descriptor.
pub fn owns(descriptor: c_int) {
    OWN.get().push(descriptor);
}

/// What comes to this descriptor comes from the program itself.
fn is_own(descriptor: c_int) -> bool {
    let is_same = |&own: &c_int| descriptors::are_same(own, descriptor);
    OWN.get().iter().any(is_same)
        || channels::watched(descriptor).is_some_and(|watched| watched.into_iter().all(is_own))
}

/// Notes descriptors whose both ends are here.
fn own(result: c_int, ends: *const c_int, kind: Kind) -> c_int {
    if active() && result == 0 {
        // SAFETY: the kernel just wrote two descriptors there.
        let ends = unsafe { [*ends, *ends.add(1)] };
        OWN.get().extend(ends);
        channels::made(kind, &ends);
    }
    result
}

#[unsafe(no_mangle)]
extern "C" fn pipe(ends: *mut c_int) -> c_int {
    own(real!(pipe(ends => *mut c_int) -> c_int), ends, Kind::Pipe)
}

#[unsafe(no_mangle)]
extern "C" fn pipe2(ends: *mut c_int, flags: c_int) -> c_int {
    own(real!(pipe2(ends => *mut c_int, flags => c_int) -> c_int), ends, Kind::Pipe)
}

#[unsafe(no_mangle)]
extern "C" fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int {
    own(
        real!(socketpair(
            domain => c_int, kind => c_int, protocol => c_int, ends => *mut c_int
        ) -> c_int),
        ends,
        Kind::Pair { domain, kind, protocol },
    )
}

#[unsafe(no_mangle)]
extern "C" fn eventfd(value: u32, flags: c_int) -> c_int {
    let descriptor = real!(eventfd(value => u32, flags => c_int) -> c_int);
    if active() && descriptor >= 0 {
        owns(descriptor);
        channels::made(Kind::Event { flags }, &[descriptor]);
    }
    descriptor
}

/// The virtual time so many milliseconds from now; none for a negative number.
fn after_milliseconds(milliseconds: c_int) -> Option<u64> {
    let milliseconds = u64::try_from(milliseconds).ok()?;
    Some(scheduler::get().now.saturating_add(milliseconds * 1_000_000))
}

/// Waits for any of `entries`, then lets `look` see what is there without waiting; again if it finds nothing.
fn poll_until(
    entries: &mut [libc::pollfd],
    blocking: bool,
    deadline: Option<u64>,
    pc: u64,
    mut look: impl FnMut() -> c_int,
) -> c_int {
    let pc = users_call(pc);
    loop {
        let timed_out = wait(entries, blocking, deadline, pc);
        let found = look();
        if found == 0 && !blocking {
            looked_in_vain();
        }
        done(entries.first().map_or(-1, |entry| entry.fd), pc);
        if found != 0 || timed_out || !blocking {
            return found;
        }
    }
}

/// Waiting is the scheduler's affair: there are several threads, or a timer that only the scheduler knows of.
fn is_controlled() -> bool {
    active() && (scheduler::get().running || timers::are_running() || alarms::are_running())
}

extern "C" fn poll_(entries: *mut libc::pollfd, count: u64, milliseconds: c_int, pc: u64) -> c_int {
    let now = |limit: c_int| real!(poll(entries => *mut libc::pollfd, count => u64, limit => c_int) -> c_int);
    if !is_controlled() {
        return now(milliseconds);
    }
    // SAFETY: the program's array.
    let slice = unsafe { slice(entries, count) };
    poll_until(slice, milliseconds != 0, after_milliseconds(milliseconds), pc, || now(0))
}

/// The program's array of `count` entries.
///
/// # Safety
/// It is one, or empty.
unsafe fn slice<'a>(entries: *mut libc::pollfd, count: u64) -> &'a mut [libc::pollfd] {
    match count {
        0 => &mut [],
        // SAFETY: the caller's.
        _ => unsafe { std::slice::from_raw_parts_mut(entries, count as usize) },
    }
}

extern "C" fn poll_checked(
    entries: *mut libc::pollfd,
    count: u64,
    milliseconds: c_int,
    _: usize,
    pc: u64,
) -> c_int {
    poll_(entries, count, milliseconds, pc)
}

extern "C" fn ppoll_(
    entries: *mut libc::pollfd,
    count: u64,
    limit: *const libc::timespec,
    mask: *const libc::sigset_t,
    pc: u64,
) -> c_int {
    let now = |limit: *const libc::timespec| {
        real!(ppoll(
            entries => *mut libc::pollfd, count => u64,
            limit => *const libc::timespec, mask => *const libc::sigset_t
        ) -> c_int)
    };
    if !is_controlled() {
        return now(limit);
    }
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the program's array and time.
    let (slice, blocking) = unsafe {
        (slice(entries, count), limit.as_ref().is_none_or(|limit| limit.tv_sec + limit.tv_nsec > 0))
    };
    poll_until(slice, blocking, crate::time::clock::after(limit), pc, || now(&none))
}

type Set = *mut libc::fd_set;

extern "C" fn select_(
    count: c_int,
    read: Set,
    write: Set,
    except: Set,
    limit: *mut libc::timeval,
    pc: u64,
) -> c_int {
    let call = |read: Set, write: Set, except: Set, limit: *mut libc::timeval| {
        real!(select(
            count => c_int, read => Set, write => Set, except => Set, limit => *mut libc::timeval
        ) -> c_int)
    };
    if !is_controlled() {
        return call(read, write, except, limit);
    }
    // SAFETY: the program's sets, or null, and its time.
    let (mut entries, asked, limit) = unsafe {
        let has = |set: Set, descriptor| !set.is_null() && libc::FD_ISSET(descriptor, set);
        let entry = |fd| {
            let flag = |set: Set, events: i16| if has(set, fd) { events } else { 0 };
            let events = flag(read, libc::POLLIN) | flag(write, libc::POLLOUT) | flag(except, libc::POLLPRI);
            libc::pollfd { fd, events, revents: 0 }
        };
        let entries: Vec<libc::pollfd> = (0..count).map(entry).filter(|entry| entry.events != 0).collect();
        (entries, [read, write, except].map(|set| set.as_ref().copied()), limit.as_ref())
    };
    let milliseconds =
        limit.map_or(-1, |limit| (limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000) as c_int);
    poll_until(&mut entries, milliseconds != 0, after_milliseconds(milliseconds), pc, || {
        for (set, asked) in [read, write, except].into_iter().zip(asked) {
            if let Some(asked) = asked {
                // SAFETY: the program's set, which a look before this one may have emptied.
                unsafe { set.write(asked) };
            }
        }
        let mut none = libc::timeval { tv_sec: 0, tv_usec: 0 };
        call(read, write, except, &mut none)
    })
}

type Events = *mut libc::epoll_event;

extern "C" fn epoll_wait_(
    descriptor: c_int,
    events: Events,
    most: c_int,
    milliseconds: c_int,
    pc: u64,
) -> c_int {
    let now = |limit: c_int| real!(epoll_wait(descriptor => c_int, events => Events, most => c_int, limit => c_int) -> c_int);
    if !is_controlled() {
        return now(milliseconds);
    }
    let mut entry = [libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }];
    poll_until(&mut entry, milliseconds != 0, after_milliseconds(milliseconds), pc, || now(0))
}

extern "C" fn epoll_pwait_(
    descriptor: c_int,
    events: Events,
    most: c_int,
    milliseconds: c_int,
    mask: *const libc::sigset_t,
    pc: u64,
) -> c_int {
    if !is_controlled() {
        return real!(epoll_pwait(
            descriptor => c_int, events => Events, most => c_int, milliseconds => c_int,
            mask => *const libc::sigset_t
        ) -> c_int);
    }
    epoll_wait_(descriptor, events, most, milliseconds, pc)
}

impl Scheduler {
    /// Lets everybody who waits for a descriptor look again; says whether anybody does.
    pub fn look_outside(&mut self) -> bool {
        self.released(ANY);
        !self.ready.is_empty()
    }

    /// Nobody can run: waits for the world outside, for a moment. `false` when nothing can come from there.
    pub fn wait_outside(&mut self) -> bool {
        /// In milliseconds; the tool decides how often.
        const MOMENT: u64 = 20;
        let mut entries: Vec<libc::pollfd> = Vec::new();
        for thread in self.alive.iter().map(|index| &self.threads[index]) {
            if let Wait::Ready { entries: first, count } = thread.wait {
                // SAFETY: entries that the waiting thread keeps.
                entries.extend(unsafe { slice(first as *mut libc::pollfd, count) }.iter());
            }
        }
        let all_own = entries.iter().all(|entry| is_own(entry.fd));
        if all_own && !has_forked() {
            return false;
        }
        system::call(libc::SYS_poll, [entries.as_mut_ptr() as u64, entries.len() as u64, MOMENT, 0, 0, 0]);
        self.look_outside()
    }
}
