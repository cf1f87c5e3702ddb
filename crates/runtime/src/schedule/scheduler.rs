//! One thread at a time, and which.
//!
//! Before each operation that others can notice, a thread comes to [`point`] and says what it is about to do.
//! There the plan decides who goes on. The chosen thread does its operation and runs on to its own next point;
//! nothing interrupts it in between, so the effect of an operation needs no lock.
//!
//! A thread whose operation cannot be done yet waits. Waiting threads are looked at again when something they
//! might wait for is [released](Scheduler::released); that they are `ready` only means it is worth looking, and
//! the look happens when one is picked. So neither taking nor releasing an object costs more than the number of
//! threads that wait.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use threadbare_trace::{EventKind, Outcome, ThreadId};
use threadbare_wire::{Ending, MESSAGE_BYTES, PendingRecord, StackSpan};

use crate::entry::log;
use crate::hooks::calls;
use crate::memory::learn;
use crate::os::processors::Affinity;
use crate::os::system;
use crate::schedule::bits::Bits;
use crate::schedule::carrier::Carrier;
use crate::schedule::context::Context;
use crate::schedule::follower::Follower;
use crate::schedule::wait::Wait;
use crate::schedule::{context, races, snapshots, state, wait};
use crate::signals::{handlers, sending};
use crate::sync::cancellation;
use crate::sync::cancellation::Cancellation;
use crate::time::{alarms, timers};

/// A logical thread.
pub struct Thread {
    pub id: ThreadId,
    /// How many threads it has created.
    pub children: u32,
    pub context: *mut Context,
    pub calls: calls::Saved,
    /// What it waits for, if anything.
    pub wait: Wait,
    /// When a timed wait or a sleep is over, in virtual time.
    pub deadline: Option<u64>,
    pub timed_out: bool,
    /// Its wait is over for no reason.
    pub woken: bool,
    /// It is to handle a signal, and to wait again.
    pub interrupted: bool,
    pub done: bool,
    pub start: (Option<extern "C" fn(*mut c_void) -> *mut c_void>, *mut c_void),
    pub result: *mut c_void,
    pub detached: bool,
    pub destructors: Vec<(unsafe extern "C" fn(*mut c_void), *mut c_void)>,
    /// Clean-up handlers of C code, innermost last.
    pub cleanups: Vec<*mut crate::sync::threads::CleanupBuffer>,
    pub cancellation: Cancellation,
    pub handlers: handlers::Signals,
    /// Signals sent to it that it has not had, one bit each.
    pub signals: u64,
    /// It waits at a cancellation point.
    pub cancellable: bool,
    /// What its last event brought: a value read or written.
    pub last_value: u64,
    /// Read-write locks it holds for reading; other locks name their owner themselves.
    pub read_locks: Vec<u64>,
    /// The processors it may run on, as the program sees it.
    pub affinity: Affinity,
}

/// What a thread is about to do.
pub struct Operation {
    pub kind: EventKind,
    pub object: u64,
    pub pc: u64,
    pub wait: Wait,
    pub deadline: Option<u64>,
    /// A request to cancel the thread ends the wait.
    pub cancellable: bool,
    /// Bytes accessed, for accesses.
    pub size: u64,
}

impl Operation {
    /// One that never waits.
    pub fn new(kind: EventKind, pc: u64, object: u64) -> Operation {
        Operation { kind, object, pc, wait: Wait::Nothing, deadline: None, cancellable: false, size: 0 }
    }

    pub fn waiting(self, wait: Wait) -> Operation {
        Operation { wait, ..self }
    }

    pub fn size(self, size: u64) -> Operation {
        Operation { size, ..self }
    }

    pub fn cancellable(self) -> Operation {
        Operation { cancellable: true, ..self }
    }

    pub fn until(self, deadline: Option<u64>) -> Operation {
        Operation { deadline, ..self }
    }
}

pub struct Scheduler {
    pub threads: Vec<Thread>,
    pub current: usize,
    /// Threads that are not done. Most of a program's threads may be, so that looking at all costs too much.
    pub alive: Bits,
    /// There is more than one thread, or was: schedule points count and events are recorded.
    pub running: bool,
    /// Threads that may be able to go on.
    pub ready: Bits,
    /// Threads whose wait can time out.
    pub timed: Bits,
    /// Virtual nanoseconds since the program started.
    pub now: u64,
    /// Signals that the process was sent and no thread has had yet, a bit each.
    pub signals: u64,
    /// How often a wait was interrupted since anything else has happened.
    pub interruptions: u32,
    pub follower: Follower,
    pub wakeups: wait::Wakeups,
}

static SCHEDULER: Carrier<Option<Scheduler>> = Carrier::new(None);

/// The scheduler, which exists whenever the runtime is active.
pub fn get() -> &'static mut Scheduler {
    SCHEDULER.get().as_mut().expect("the runtime is active")
}

/// Starts with the main thread alone.
pub fn start() -> bool {
    let Some(calls) = calls::create(0) else { return false };
    let main = Thread {
        context: Box::leak(Box::new(context::of_main())),
        ..Thread::new(ThreadId::main(), std::ptr::null_mut(), calls)
    };
    calls::exchange(calls);
    let main_alone = || {
        let mut threads = Bits::default();
        threads.insert(0);
        threads
    };
    *SCHEDULER.get() = Some(Scheduler {
        threads: vec![main],
        current: 0,
        alive: main_alone(),
        running: false,
        ready: main_alone(),
        timed: Bits::default(),
        now: 0,
        signals: 0,
        interruptions: 0,
        follower: Follower::default(),
        wakeups: wait::Wakeups::default(),
    });
    true
}

impl Thread {
    pub fn new(id: ThreadId, context: *mut Context, calls: calls::Saved) -> Thread {
        Thread {
            id,
            children: 0,
            context,
            calls,
            wait: Wait::Nothing,
            deadline: None,
            timed_out: false,
            woken: false,
            interrupted: false,
            done: false,
            start: (None, std::ptr::null_mut()),
            result: std::ptr::null_mut(),
            detached: false,
            destructors: Vec::new(),
            cleanups: Vec::new(),
            cancellation: Cancellation::default(),
            handlers: handlers::Signals::default(),
            signals: 0,
            cancellable: false,
            last_value: 0,
            read_locks: Vec::new(),
            affinity: Affinity::ALL,
        }
    }
}

/// Comes here before every operation that is a schedule point; returns when the thread is to do it.
/// `true` when a timed operation is to time out instead.
pub fn point(operation: Operation) -> bool {
    let sched = get();
    log::close_write();
    learn::moves_on();
    cancellation::act_asynchronously();
    let me = sched.current;
    if sched.signals_for(me) != 0 && !matches!(operation.wait, Wait::Signal(_)) {
        sending::deliver();
    }
    loop {
        wait_for_turn(&operation);
        let timed_out = chosen(&operation);
        let sched = get();
        if !std::mem::take(&mut sched.threads[sched.current].interrupted) {
            sched.interruptions = 0;
            return timed_out;
        }
        let Operation { kind, pc, object, .. } = operation;
        log::Entry::new(kind, pc, object).outcome(Outcome::Failed).write();
        sending::deliver();
    }
}

/// Returns when the running thread is to do its operation, or to handle a signal and try again.
fn wait_for_turn(operation: &Operation) {
    let sched = get();
    let me = sched.current;
    announce(me, operation);
    if sched.running {
        sched.follower.look(me, operation, sched.threads[me].last_value);
        if sched.follower.watches_races() {
            races::look(me, operation);
        }
    }
    let thread = &mut sched.threads[me];
    thread.wait = operation.wait;
    thread.deadline = operation.deadline;
    thread.cancellable = operation.cancellable;
    if operation.deadline.is_some() {
        sched.timed.insert(me);
    }
    let next = sched.choose();
    if next != me {
        sched.switch_to(next);
    }
}

/// A second operation that happens together with the one before it: there is no choice between the two.
pub fn go_on(operation: &Operation) {
    announce(get().current, operation);
    chosen(operation);
}

/// The running thread was picked: its operation happens now.
fn chosen(operation: &Operation) -> bool {
    let sched = get();
    let me = sched.current;
    state::operates(me, operation);
    // SAFETY: the slot of a thread that exists.
    let pending = unsafe { &mut *log::pending(me) };
    sched.follower.executed(me, pending);
    pending.kind = 0;
    let thread = &mut sched.threads[me];
    thread.wait = Wait::Nothing;
    thread.woken = false;
    if operation.deadline.is_some() {
        sched.timed.remove(me);
        thread.deadline = None;
    }
    std::mem::take(&mut thread.timed_out)
}

/// Writes down what thread `me` stands before.
pub fn announce(me: usize, operation: &Operation) {
    // SAFETY: the slot of a thread that exists.
    unsafe {
        log::pending(me).write(PendingRecord {
            thread: me as u32,
            kind: operation.kind as u8,
            blocked: 0,
            size: operation.size.min(u64::from(u16::MAX)) as u16,
            stack: if operation.kind == EventKind::Begin { 0 } else { calls::current() },
            holder: 0,
            pc: operation.pc,
            object: operation.object,
        });
    }
}

impl Scheduler {
    /// Who runs next. Ends the process when nobody can.
    fn choose(&mut self) -> usize {
        if !self.running {
            while !(self.can_run(0)
                || self.interrupt().is_some()
                || self.wake_by_timer().is_some()
                || self.expire(0))
            {
                if !self.wait_outside() {
                    self.stuck();
                }
            }
            return 0;
        }
        self.follower.check_bound();
        let next = if self.follower.is_alert() { self.pick_alertly() } else { self.pick() };
        self.follower.picked(self.current, next, &self.alive);
        next
    }

    /// Picks when more is wanted than that: a snapshot, or a record of the decision.
    #[cold]
    fn pick_alertly(&mut self) -> usize {
        snapshots::take_if_wanted(self);
        let choice = self.look_at_choice();
        let next = self.pick();
        if let Some(choice) = choice {
            choice.made(next);
        }
        next
    }

    fn pick(&mut self) -> usize {
        loop {
            let Some(next) = self.pick_forced().or_else(|| self.pick_by_policy()) else {
                match self.pick_by_time() {
                    Some(next) => return next,
                    None if self.wait_outside() => continue,
                    None => self.stuck(),
                }
            };
            if self.can_run(next) {
                return next;
            }
            self.ready.remove(next);
        }
    }

    /// Nobody can run as things are: somebody for whom there is something outside, or whose time is up first.
    #[cold]
    fn pick_by_time(&mut self) -> Option<usize> {
        self.look_outside();
        let ready = self.ready.iter().find(|&index| self.can_run(index));
        ready
            .or_else(|| self.interrupt())
            .or_else(|| self.wake_by_timer())
            .or_else(|| self.expire_earliest(Scheduler::may_expire))
    }

    #[inline]
    pub fn can_run(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        !thread.done && (matches!(thread.wait, Wait::Nothing) || self.may_go_on(index))
    }

    /// What thread `index` waits for is there, or its wait was made to end.
    fn may_go_on(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        let cancelled = thread.cancellable && thread.cancellation.is_due() && thread.wait.may_end(index);
        thread.timed_out
            || thread.woken
            || thread.interrupted
            || cancelled
            || thread.wait.is_over(self, index)
    }

    /// A timed wait that could time out, and the thread then go on at once.
    pub fn may_expire(&self, index: usize) -> bool {
        self.threads[index].deadline.is_some() && self.threads[index].wait.may_end(index)
    }

    /// … though others can run. No machine is so busy that they would not have run within an hour, so that a longer
    /// wait is one for them; a sleep is over when it is over.
    pub fn may_expire_early(&self, index: usize) -> bool {
        const HOUR: u64 = 3_600_000_000_000;
        let thread = &self.threads[index];
        let is_near = thread.deadline.is_some_and(|deadline| deadline <= self.now.saturating_add(HOUR));
        (is_near || matches!(thread.wait, Wait::Sleep)) && self.may_expire(index)
    }

    /// Lets the timed wait of `index` time out, if it may, or a timer end it before.
    pub fn expire(&mut self, index: usize) -> bool {
        let Some(deadline) = self.threads[index].deadline.filter(|_| self.may_expire(index)) else {
            return false;
        };
        if self.run_timers(Some(deadline), |sched| sched.can_run(index).then_some(index)).is_none() {
            self.advance_to(deadline);
            self.threads[index].timed_out = true;
        }
        self.ready.insert(index);
        true
    }

    /// A wait for a wake-up that the plan lets end without one.
    pub fn may_wake_spuriously(&self, index: usize) -> bool {
        let thread = &self.threads[index];
        self.follower.spurious_left() > 0
            && matches!(thread.wait, Wait::Wakeup { .. })
            && thread.wait.may_end(index)
    }

    /// Ends the wait of `index` though nobody notified it, if it may.
    pub fn wake_spuriously(&mut self, index: usize) -> bool {
        let may = self.may_wake_spuriously(index);
        if may {
            self.follower.wakes_spuriously();
            self.threads[index].woken = true;
            self.ready.insert(index);
        }
        may
    }

    /// Thread `index` can go on, or its wait was made to end. A sleep ends no earlier than by itself.
    pub fn can_be_made_to_run(&mut self, index: usize) -> bool {
        self.can_run(index)
            || self.is_ended_by_timer_or_signal(index)
            || !self.sleeps_on(index) && self.expire(index)
            || self.wake_spuriously(index)
    }

    /// Thread `index` sleeps while somebody else can run, or has to wait for less long.
    fn sleeps_on(&self, index: usize) -> bool {
        let end = |index: usize| (self.threads[index].deadline, index);
        let comes_first =
            |other: usize| self.can_run(other) || self.may_expire(other) && end(other) < end(index);
        matches!(self.threads[index].wait, Wait::Sleep)
            && !self.follower.sleeps_are_too_long()
            && self.alive.iter().any(|other| other != index && comes_first(other))
    }

    /// Of the waits that may, lets the one that is over first time out.
    #[cold]
    pub fn expire_earliest(&mut self, may: fn(&Scheduler, usize) -> bool) -> Option<usize> {
        let mut waiting: Vec<usize> = self.timed.iter().filter(|&index| may(self, index)).collect();
        waiting.sort_by_key(|&index| (self.threads[index].deadline, index));
        waiting.into_iter().find(|&index| self.expire(index))
    }

    /// Virtual time comes to `time`.
    pub fn advance_to(&mut self, time: u64) {
        self.now = self.now.max(time);
        if timers::fire_due(self.now) {
            self.look_outside();
        }
        alarms::fire_due(self);
    }

    /// Lets time pass from timer to timer, up to `limit`, until `found` somebody.
    fn run_timers(
        &mut self,
        limit: Option<u64>,
        found: impl Fn(&mut Scheduler) -> Option<usize>,
    ) -> Option<usize> {
        let next = |sched: &Scheduler| timers::next().into_iter().chain(alarms::next(sched)).min();
        while let Some(next) = next(self).filter(|&next| limit.is_none_or(|limit| next <= limit)) {
            self.advance_to(next);
            let somebody = found(self);
            if somebody.is_some() {
                return somebody;
            }
        }
        None
    }

    /// Nobody can run: time passes until a timer ends somebody's wait, but not longer than anybody has to wait.
    fn wake_by_timer(&mut self) -> Option<usize> {
        let timed = self.timed.iter().filter(|&index| self.may_expire(index));
        let limit = timed.filter_map(|index| self.threads[index].deadline).min();
        self.run_timers(limit, |sched| {
            let ready = sched.ready.iter().find(|&index| sched.can_run(index));
            ready.or_else(|| sched.interrupt())
        })
    }

    /// A timer or a signal ends the wait of `index`. It does not while others can run: it may stand for a sleep.
    fn is_ended_by_timer_or_signal(&mut self, index: usize) -> bool {
        let may_be = (timers::are_running() || alarms::are_running() || self.is_due(index))
            && !self.alive.iter().any(|other| self.can_run(other));
        if may_be && self.interrupt().is_none() {
            self.wake_by_timer();
        }
        may_be && self.can_run(index)
    }

    /// Something at `address` changed: whoever waits for it may be able to go on.
    pub fn released(&mut self, address: u64) {
        for index in self.alive.iter() {
            if self.threads[index].wait.concerns(address) {
                self.ready.insert(index);
            }
        }
    }

    /// A thread has ended: whoever waits for a robust mutex may find it an orphan.
    fn orphaned(&mut self) {
        for index in self.alive.iter() {
            if matches!(self.threads[index].wait, Wait::Mutex(address) if wait::Mutex::at(address).is_robust())
            {
                self.ready.insert(index);
            }
        }
    }

    pub fn add_thread(&mut self, thread: Thread, operation: &Operation) -> usize {
        let index = self.threads.len();
        self.threads.push(thread);
        self.alive.insert(index);
        announce(index, operation);
        log::control().pending.store(self.threads.len() as u32, Ordering::Relaxed);
        self.ready.insert(index);
        index
    }

    fn switch_to(&mut self, next: usize) {
        if handlers::are_different() {
            handlers::suspend();
        }
        let me = std::mem::replace(&mut self.current, next);
        self.threads[me].calls = calls::exchange(self.threads[next].calls);
        let (save, load) = (self.threads[me].context, self.threads[next].context);
        // SAFETY: `next` is not the running thread, and every thread but that one is suspended.
        unsafe { context::switch(save, load) };
        if handlers::are_different() {
            handlers::adopt();
        }
    }

    /// Nobody can go on.
    #[cold]
    fn stuck(&mut self) -> ! {
        if self.alive.is_empty() {
            // The last thread of a program whose main thread left by `pthread_exit`. It goes on, to run what is to
            // run at exit.
            let last = self.current;
            self.threads[last].done = false;
            self.alive.insert(last);
            self.threads[last].wait = Wait::Nothing;
            self.ready.insert(last);
            crate::entry::process::leave(0);
        }
        if let Some(index) = self.alive.iter().find(|&index| self.is_due(index) && !self.may_try_again(index))
        {
            // SAFETY: the slot of a thread that exists.
            let &PendingRecord { pc, stack, .. } = unsafe { &*log::pending(index) };
            let scene = Scene { thread: index as u32, pc, stack };
            let what = "a signal handler that interrupts a wait other than for a lock, a semaphore or a thread \
                        is not supported";
            finish_at(&scene, Ending::Unsupported, 0, what);
        }
        for index in self.alive.iter() {
            // SAFETY: the slot of a thread that exists.
            let pending = unsafe { &mut *log::pending(index) };
            pending.blocked = 1;
            pending.holder = self.threads[index].wait.holder(self).map_or(0, |holder| holder as u32 + 1);
        }
        finish(Ending::Deadlock, 0, 0, "")
    }

    /// The thread whose stack holds `address`, and the offset from its base.
    pub fn stack_variable(&self, address: u64) -> Option<(ThreadId, i64)> {
        let owner = (0..self.threads.len()).find(|&index| {
            let span = stack_span(index);
            (span.low..span.high).contains(&address)
        })?;
        Some((self.threads[owner].id.clone(), address.wrapping_sub(stack_span(owner).base) as i64))
    }
}

/// Where the stack of thread `index` lies.
pub fn stack_span(index: usize) -> StackSpan {
    // SAFETY: the slot of a thread that exists, written when it was created.
    unsafe { log::stack_span(index).read() }
}

/// The running thread has ended: goes on with another, for good.
pub fn end_thread() -> ! {
    let sched = get();
    log::close_write();
    let me = sched.current;
    sched.threads[me].done = true;
    sched.alive.remove(me);
    sched.ready.remove(me);
    state::ends(me);
    // SAFETY: the slot of a thread that exists.
    unsafe { (*log::pending(me)).kind = 0 };
    sched.released(wait::thread_address(me));
    sched.orphaned();
    let next = sched.choose();
    sched.switch_to(next);
    unreachable!("a thread that ended was run again")
}

/// Runs on the stack of a thread that was picked for the first time.
pub fn begin_thread() -> &'static mut Thread {
    if handlers::are_different() {
        handlers::adopt();
    }
    chosen(&Operation::new(EventKind::Begin, 0, 0));
    let sched = get();
    &mut sched.threads[sched.current]
}

/// Where a run failed.
pub struct Scene {
    pub thread: u32,
    pub pc: u64,
    pub stack: u32,
}

/// Ends the run, because of what the running thread does at `pc`.
pub fn finish(ending: Ending, detail: u32, pc: u64, message: &str) -> ! {
    let scene = Scene { thread: get().current as u32, pc, stack: calls::current() };
    finish_at(&scene, ending, detail, message)
}

/// Ends the run and says why.
pub fn finish_at(scene: &Scene, ending: Ending, detail: u32, message: &str) -> ! {
    log::close_write();
    let control = log::control();
    let length = message.len().min(MESSAGE_BYTES);
    // SAFETY: the message area is as long as checked, and the tool reads it after the process ended.
    unsafe {
        let area = (&raw const control.message).cast::<u8>().cast_mut();
        area.copy_from_nonoverlapping(message.as_ptr(), length);
    }
    control.message_bytes.store(length as u32, Ordering::Relaxed);
    control.ending_detail.store(detail, Ordering::Relaxed);
    control.ending_thread.store(scene.thread, Ordering::Relaxed);
    control.ending_pc.store(scene.pc, Ordering::Relaxed);
    control.ending_stack.store(scene.stack, Ordering::Relaxed);
    control.ending.store(ending as u32, Ordering::Release);
    system::exit(0)
}
