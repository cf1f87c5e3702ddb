//! The scheduler: it runs one thread at a time.
//!
//! Before each operation that other threads can notice, a thread calls [`point`] and says what it is about to do. There
//! the plan chooses which thread runs next. The chosen thread does its operation and runs on to its own next point.
//! Nothing interrupts it in between, so an operation needs no lock.
//!
//! A thread whose operation cannot be done yet waits. When an object is [released](Scheduler::released), the threads
//! that wait for it become `ready`, which means that their wait may be over. Whether it is, is checked when a thread is
//! picked. So to release an object costs no more than the number of threads that wait.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use threadbare_trace::{End, EventKind, FailureKind, Outcome, Policy, StackIndex, ThreadId, ThreadIndex};
use threadbare_wire::{CodePlace, OperationPatience, PendingRecord};

use super::bits::Bits;
use super::carrier::Carrier;
use super::ending::{fail, finish};
use super::follower::Follower;
use super::thread::{Routine, Thread, Threads};
use super::wait::{self, OnSignal, Wait};
use super::{context, livelock, races, snapshots, spinning, state};
use crate::entry::{log, process};
use crate::hooks::calls;
use crate::memory::learn;
use crate::signals::{masks, sending};
use crate::sync::barrier::Generations;
use crate::sync::cancellation;
use crate::sync::primitives;
use crate::sync::wakeups::Wakeups;
use crate::time::work;

/// What a thread is about to do.
pub struct Operation {
    pub kind: EventKind,
    pub object: u64,
    pub pc: u64,
    pub wait: Wait,
    pub deadline: Option<u64>,
    /// A request to cancel the thread ends the wait.
    pub cancellable: bool,
    /// Bytes accessed; 0 for what is no access.
    size: u64,
}

impl Operation {
    /// One that never waits.
    pub fn new(kind: EventKind, pc: u64, object: u64) -> Operation {
        Operation { kind, object, pc, wait: Wait::Nothing, deadline: None, cancellable: false, size: 0 }
    }

    pub fn waiting(self, wait: Wait) -> Operation {
        Operation { wait, ..self }
    }

    /// An access to `size` bytes of memory.
    ///
    /// # Safety
    /// The program does this access next. So if the bytes cannot be read, the fault is the program's own.
    pub unsafe fn access(kind: EventKind, pc: u64, address: u64, size: u64) -> Operation {
        Operation { size, ..Operation::new(kind, pc, address) }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// How it may have to wait.
    fn patience(&self) -> OperationPatience {
        match self.wait {
            Wait::Nothing | Wait::Loop => OperationPatience::None,
            _ if self.deadline.is_some() => OperationPatience::Limited,
            _ => OperationPatience::Endless,
        }
    }

    pub fn cancellable(self) -> Operation {
        Operation { cancellable: true, ..self }
    }

    pub fn until(self, deadline: Option<u64>) -> Operation {
        Operation { deadline, ..self }
    }
}

pub struct Scheduler {
    pub threads: Threads,
    /// Threads that have not ended. A program may have many that have, so a loop over all threads costs too much.
    pub alive: Bits,
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
    pub wakeups: Wakeups,
    pub generations: Generations,
}

/// Exists whenever the runtime is active.
static SCHEDULER: Carrier<Option<Scheduler>> = Carrier::new(None);
/// The thread that runs. A handler reads it too, whatever it has interrupted, so it is an atomic.
static CURRENT: AtomicU32 = AtomicU32::new(0);
/// The scheduler is lent at the moment.
static LENT: AtomicBool = AtomicBool::new(false);
/// There is more than one thread, or was: schedule points count and events are recorded.
static RUNNING: Carrier<bool> = Carrier::new(false);

/// Lends the scheduler to `work`, which must not come back here: it calls no code of the program, does not switch
/// threads, and records no event.
#[inline(always)]
pub fn with<R>(work: impl FnOnce(&mut Scheduler) -> R) -> R {
    SCHEDULER.with(|sched| {
        LENT.store(true, Ordering::Relaxed);
        let result = work(sched.as_mut().expect("the runtime is active"));
        LENT.store(false, Ordering::Relaxed);
        result
    })
}

/// A handler that has interrupted somebody to whom the scheduler is lent must not borrow it.
pub fn is_lent() -> bool {
    LENT.load(Ordering::Relaxed)
}

/// Lends the running thread to `work`, under the same rule.
#[inline(always)]
pub fn with_me<R>(work: impl FnOnce(&mut Thread) -> R) -> R {
    with(|sched| work(&mut sched.threads[current()]))
}

/// The index of the running thread.
#[inline(always)]
pub fn current() -> ThreadIndex {
    ThreadIndex::new(CURRENT.load(Ordering::Relaxed))
}

/// There is more than one thread, or was: schedule points count and events are recorded.
#[inline(always)]
pub fn is_running() -> bool {
    RUNNING.get()
}

/// How many threads there have been.
pub fn count() -> usize {
    with(|sched| sched.threads.len())
}

/// The virtual time.
pub fn now() -> u64 {
    with(|sched| sched.now)
}

/// Something at `address` changed: whoever waits for it may be able to go on.
pub fn released(address: u64) {
    with(|sched| sched.released(address));
}

/// Starts with the main thread alone.
pub fn start() -> bool {
    let Some(calls) = calls::create(ThreadIndex::MAIN) else { return false };
    calls::exchange(calls);
    let main = Thread::new(ThreadId::main(), Box::leak(Box::new(context::of_main())), calls);
    SCHEDULER.with(|sched| *sched = Some(Scheduler::new(main)));
    true
}

/// From here on schedule points count: a run begins, under a plan.
pub fn start_run(follower: Follower) {
    with(|sched| sched.follower = follower);
    RUNNING.set(true);
    spinning::start();
}

/// Comes here before every operation that is a schedule point; returns when the thread is to do it.
/// `true` when a timed operation is to time out instead.
pub fn point(operation: Operation) -> bool {
    log::close_write();
    learn::moves_on();
    // SAFETY: the object of such an operation is what the program gave a function for primitives.
    unsafe { primitives::arrive(operation.kind, operation.object, operation.pc) };
    let (is_asynchronous, signals) = with(|sched| {
        let me = &mut sched.threads[current()];
        me.users_stack_pointer = calls::users_stack_pointer();
        (me.cancellation.asynchronous, me.signals | sched.signals)
    });
    if is_asynchronous {
        cancellation::act();
    }
    if signals != 0 && operation.wait.rules().on_signal != OnSignal::IsTaken {
        sending::deliver();
    }
    loop {
        wait_for_turn(&operation);
        let Chosen { timed_out, interrupted } = chosen(&operation);
        if !interrupted {
            return timed_out;
        }
        let Operation { kind, pc, object, .. } = operation;
        log::Entry::new(kind, pc, object).outcome(Outcome::Failed).write();
        sending::deliver();
    }
}

/// Returns when the running thread is to do its operation, or to handle a signal and try again.
fn wait_for_turn(operation: &Operation) {
    let me = current();
    announce(me, operation);
    if is_running() {
        livelock::look(me, operation);
    }
    let is_in_vain = spinning::arrive(me, operation);
    let next = with(|sched| {
        if is_running() && sched.follower.watches_races() {
            races::look(sched, me, operation);
        }
        let thread = &mut sched.threads[me];
        thread.wait = if is_in_vain { Wait::Loop } else { operation.wait };
        thread.deadline = operation.deadline;
        thread.cancellable = operation.cancellable;
        if let Some(deadline) = operation.deadline {
            thread.patience = deadline.saturating_sub(sched.now);
            sched.timed.insert(me);
            sched.note_held_sleep(me);
        }
        sched.choose().expect("the running thread is alive")
    });
    if next != me {
        switch_to(next);
    }
}

/// A second operation that happens together with the one before it: there is no choice between the two.
pub fn go_on(operation: &Operation) {
    announce(current(), operation);
    chosen(operation);
}

/// How a thread comes to its operation.
struct Chosen {
    /// Its time was up.
    timed_out: bool,
    /// It is to handle a signal, and to wait again.
    interrupted: bool,
}

/// The running thread was picked: its operation happens now.
fn chosen(operation: &Operation) -> Chosen {
    let me = current();
    state::operates(me, operation);
    work::operates(operation.kind);
    let pending = log::pending(me);
    log::clear_pending(me);
    with(|sched| {
        sched.follower.executed(me, &pending);
        let thread = &mut sched.threads[me];
        thread.wait = Wait::Nothing;
        thread.woken = false;
        if operation.deadline.is_some() {
            sched.timed.remove(me);
            thread.deadline = None;
        }
        let (timed_out, interrupted) = (thread.timed_out, thread.interrupted);
        thread.ended_early = thread.ended_early.filter(|_| timed_out);
        (thread.timed_out, thread.interrupted) = (false, false);
        if !interrupted {
            sched.interruptions = 0;
        }
        if !interrupted && sched.follower.is_guided() {
            sched.note_pass(me, &pending);
        }
        Chosen { timed_out, interrupted }
    })
}

/// Writes down what thread `me` stands before.
pub fn announce(me: ThreadIndex, operation: &Operation) {
    log::set_pending(
        me,
        PendingRecord {
            thread: me.number(),
            kind: operation.kind as u8,
            blocked: 0,
            size: operation.size.min(u64::from(u16::MAX)) as u16,
            stack: if operation.kind == EventKind::Begin { 0 } else { calls::current().number() },
            holder: 0,
            pc: operation.pc,
            object: operation.object,
            condition: [0; 3],
            patience: operation.patience().to_bits(),
        },
    );
}

impl Scheduler {
    pub fn new(main: Thread) -> Scheduler {
        let main_alone = || {
            let mut threads = Bits::default();
            threads.insert(ThreadIndex::MAIN);
            threads
        };
        Scheduler {
            threads: Threads::new(main),
            alive: main_alone(),
            ready: main_alone(),
            timed: Bits::default(),
            now: 0,
            signals: 0,
            interruptions: 0,
            follower: Follower::default(),
            wakeups: Wakeups::default(),
            generations: Generations::default(),
        }
    }

    /// The thread that runs next; `None` when every thread has ended. Ends the process when those that are left cannot
    /// go on.
    fn choose(&mut self) -> Option<ThreadIndex> {
        if !is_running() {
            while !(self.can_run(ThreadIndex::MAIN)
                || self.interrupt().is_some()
                || self.wake_by_timer().is_some()
                || self.expire(ThreadIndex::MAIN))
            {
                if !self.wait_outside() {
                    self.check_deadlock();
                }
            }
            return Some(ThreadIndex::MAIN);
        }
        self.follower.check_bound();
        if self.follower.is_guided() {
            self.note_arrivals();
        }
        let next = if self.follower.is_alert() { self.pick_alertly() } else { self.pick() }?;
        self.follower.picked(current(), next, &self.alive);
        Some(next)
    }

    /// Picks, and takes a snapshot or records the decision.
    #[cold]
    fn pick_alertly(&mut self) -> Option<ThreadIndex> {
        snapshots::take_if_wanted(self);
        let choice = self.look_at_choice();
        let next = self.pick()?;
        if let Some(choice) = choice {
            choice.made(self, next);
        }
        Some(next)
    }

    fn pick(&mut self) -> Option<ThreadIndex> {
        loop {
            let Some(next) = self.pick_forced().or_else(|| self.pick_by_policy()) else {
                let next = self.pick_by_time();
                if next.is_none() && self.wait_outside() {
                    continue;
                }
                if next.is_none() {
                    self.check_deadlock();
                }
                return next;
            };
            if self.can_run(next) {
                return Some(next);
            }
            self.ready.remove(next);
        }
    }

    /// No thread can run. Picks one that outside input or the earliest deadline lets go on.
    #[cold]
    fn pick_by_time(&mut self) -> Option<ThreadIndex> {
        self.look_outside();
        let ready = self.ready.iter().find(|&index| self.can_run(index));
        ready
            .or_else(|| self.interrupt())
            .or_else(|| self.wake_by_timer())
            .or_else(|| self.expire_earliest(Scheduler::may_expire_awake))
    }

    #[inline]
    pub fn can_run(&self, index: ThreadIndex) -> bool {
        let thread = &self.threads[index];
        !thread.done && (matches!(thread.wait, Wait::Nothing) || self.may_go_on(index))
    }

    /// What thread `index` waits for is there, or its wait was made to end.
    fn may_go_on(&self, index: ThreadIndex) -> bool {
        let thread = &self.threads[index];
        let cancelled =
            thread.cancellable && thread.cancellation.is_due() && thread.wait.may_be_given_up(self, index);
        thread.timed_out
            || thread.woken
            || thread.interrupted
            || cancelled
            || thread.wait.is_over(self, index)
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
            if self.threads[index].wait.concerns_deaths() {
                self.ready.insert(index);
            }
        }
    }

    pub fn add_thread(&mut self, thread: Thread, operation: &Operation) {
        state::begins(&thread.id);
        let index = self.threads.push(thread);
        self.alive.insert(index);
        announce(index, operation);
        log::set_threads(self.threads.len());
        self.ready.insert(index);
    }

    /// No thread can go on. Ends the run, unless all threads have ended.
    #[cold]
    fn check_deadlock(&mut self) {
        if self.alive.is_empty() {
            return;
        }
        self.end_if_asleep();
        if self.alive.iter().any(|index| self.threads[index].spinning.is_abandoned()) {
            finish(&End::Diverged { step: 0, reason: Policy::IN_VAIN.into() });
        }
        let is_due = |index: ThreadIndex| self.is_due(index) && !self.waits_again(index);
        if let Some(index) = self.alive.iter().find(|&index| is_due(index)) {
            let PendingRecord { pc, stack, .. } = log::pending(index);
            let at = CodePlace { thread: index, stack: StackIndex::new(stack), pc };
            let what = "a signal handler that interrupts a wait other than for a lock, a semaphore or a thread \
                        is not supported";
            finish(&End::Unsupported { message: what.into(), at });
        }
        for index in self.alive.iter() {
            let holder = self.threads[index].wait.holder(self).map_or(0, |holder| holder.number() + 1);
            log::set_pending(index, PendingRecord { blocked: 1, holder, ..log::pending(index) });
        }
        self.note_blocked();
        let spins = |index: ThreadIndex| matches!(self.threads[index].wait, Wait::Loop);
        let kind = if self.alive.iter().any(spins) { FailureKind::Livelock } else { FailureKind::Deadlock };
        fail(kind, 0, "")
    }

    /// The thread whose stack holds `address`, and the offset from its base.
    pub fn stack_variable(&self, address: u64) -> Option<(ThreadId, i64)> {
        let owner = self.threads.indices().find(|&index| {
            let span = log::stack_span(index);
            (span.low..span.high).contains(&address)
        })?;
        Some((self.threads[owner].id.clone(), address.wrapping_sub(log::stack_span(owner).base) as i64))
    }
}

/// Goes on with thread `next`. Returns when the thread that called it goes on.
fn switch_to(next: ThreadIndex) {
    if masks::are_different() {
        masks::suspend();
    }
    let me = current();
    debug_assert_ne!(me, next, "the running thread is switched to");
    CURRENT.store(next.number(), Ordering::Relaxed);
    let (save, load) = with(|sched| {
        sched.threads[me].calls = calls::exchange(sched.threads[next].calls);
        sched.threads[me].work = work::exchange(sched.threads[next].work);
        (sched.threads[me].context, sched.threads[next].context)
    });
    // SAFETY: `next` is not the running thread, and every thread but that one is suspended.
    unsafe { context::switch(save, load) };
    calls::go_on_in_call(with_me(|me| me.users_stack_pointer));
    if masks::are_different() {
        masks::adopt();
    }
}

/// Ends the running thread and switches to another. Does not return.
pub fn end_thread() -> ! {
    log::close_write();
    let me = current();
    state::ends(me);
    log::clear_pending(me);
    let next = with(|sched| {
        sched.threads[me].done = true;
        sched.alive.remove(me);
        sched.ready.remove(me);
        sched.released(wait::thread_address(me));
        sched.orphaned();
        sched.choose()
    });
    if let Some(next) = next {
        switch_to(next);
        unreachable!("a thread that ended was run again")
    }
    // The last thread of a program whose main thread left by `pthread_exit`. It goes on, to run what is to run at
    // exit.
    with(|sched| {
        sched.threads[me].done = false;
        sched.threads[me].wait = Wait::Nothing;
        sched.alive.insert(me);
        sched.ready.insert(me);
    });
    process::leave(0)
}

/// Runs on the stack of a thread that was picked for the first time: what it is to run.
pub fn begin_thread() -> (Routine, *mut std::ffi::c_void) {
    calls::enter_unseen();
    if masks::are_different() {
        masks::adopt();
    }
    chosen(&Operation::new(EventKind::Begin, 0, 0));
    with_me(|me| me.start).expect("a thread has a routine")
}
