//! The file that is shared with the tool: the log of the run, and what else the tool reads when the run is over.

use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_trace::{End, EventKind, Influence, MemoryOrder, Outcome, StackIndex, ThreadIndex};
use threadbare_wire::{
    self as wire, Control, Pass, PendingRecord, RaceRecord, Record, Stack, StackSpan, Switch,
};

use crate::hooks::calls;
use crate::memory::layout::{self, WIRE};
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::ending::finish;
use crate::schedule::{scheduler, state};
use crate::sync::primitives;
use crate::time::work;

/// Maps the shared file; says why not.
pub fn open() -> Result<(), &'static str> {
    if !layout::map(WIRE, wire::FILE_BYTES, libc::MAP_SHARED | libc::MAP_NORESERVE, wire::MEMORY_FD) {
        return Err("cannot map the memory shared with the tool");
    }
    if control().version.load(Ordering::Relaxed) != wire::VERSION {
        return Err("the tool is of another version");
    }
    Ok(())
}

pub fn control() -> &'static Control {
    // SAFETY: mapped by `open`, never unmapped; all fields written by two processes are atomics.
    unsafe { &*(WIRE as *const Control) }
}

/// How many call stacks there is room for.
const MAX_STACKS: u64 = wire::STACKS_BYTES / size_of::<Stack>() as u64;

/// Call stack `node` of the tree.
pub fn stack(node: StackIndex) -> Stack {
    assert!(u64::from(node.number()) < MAX_STACKS, "there is no call stack {node}");
    // SAFETY: inside the region, as just checked, and any bytes there are a stack.
    unsafe { ((WIRE + wire::STACKS_OFFSET) as *const Stack).add(node.index()).read() }
}

/// Adds call stack `node` to the tree; `false` when there is no room.
pub fn set_stack(node: StackIndex, stack: Stack) -> bool {
    // The last few are kept free.
    let fits = u64::from(node.number()) * (size_of::<Stack>() as u64) < wire::STACKS_BYTES - 64;
    if fits {
        // SAFETY: inside the region, as just checked.
        unsafe { ((WIRE + wire::STACKS_OFFSET) as *mut Stack).add(node.index()).write(stack) };
    }
    fits
}

/// Slot `index` of the region that begins `offset` bytes into the file and has one slot for each thread.
fn slot<T>(offset: u64, index: ThreadIndex) -> *mut T {
    assert!(index.index() < wire::MAX_THREADS, "there is no slot for thread {index}");
    ((WIRE + offset) as *mut T).wrapping_add(index.index())
}

/// The operation that thread `index` stands before.
#[inline]
pub fn pending(index: ThreadIndex) -> PendingRecord {
    // SAFETY: `slot` is inside the mapped file, and any bytes there are a record.
    unsafe { slot::<PendingRecord>(wire::PENDING_OFFSET, index).read() }
}

#[inline]
pub fn set_pending(index: ThreadIndex, record: PendingRecord) {
    // SAFETY: `slot` is inside the mapped file; the tool reads it when the run is over.
    unsafe { slot::<PendingRecord>(wire::PENDING_OFFSET, index).write(record) };
}

/// Thread `index` stands before nothing.
#[inline]
pub fn clear_pending(index: ThreadIndex) {
    // SAFETY: `slot` is inside the mapped file; the tool reads it when the run is over.
    unsafe { (*slot::<PendingRecord>(wire::PENDING_OFFSET, index)).kind = 0 };
}

/// Tells the tool of the shortest sleep that lasted for as long as others could run.
pub fn set_held_sleep(nanoseconds: Option<u64>) {
    let word = nanoseconds.map_or(0, |nanoseconds| nanoseconds.saturating_add(1));
    control().held_sleep.store(word, Ordering::Relaxed);
}

/// Tells the tool how many threads there have been.
pub fn set_threads(count: usize) {
    control().pending.store(count as u32, Ordering::Relaxed);
}

/// Where the stack of thread `index` lies; all zeroes if there is no such thread yet.
pub fn stack_span(index: ThreadIndex) -> StackSpan {
    // SAFETY: `slot` is inside the mapped file, and any bytes there are a span.
    unsafe { slot::<StackSpan>(wire::SPANS_OFFSET, index).read() }
}

pub fn set_stack_span(index: ThreadIndex, span: StackSpan) {
    // SAFETY: `slot` is inside the mapped file; the tool reads it when the run is over.
    unsafe { slot::<StackSpan>(wire::SPANS_OFFSET, index).write(span) };
}

/// Records a race, while there is room.
pub fn race(record: RaceRecord) {
    let count = control().races.load(Ordering::Relaxed);
    if (count as usize) < wire::MAX_RACES {
        // SAFETY: inside the region, as just checked.
        unsafe { ((WIRE + wire::RACES_OFFSET) as *mut RaceRecord).add(count as usize).write(record) };
        control().races.store(count + 1, Ordering::Release);
    }
}

/// Writes words to the region of `bytes` at `offset` of the file, from word `at` on. `false` when they do not fit.
pub fn write_words(offset: u64, bytes: u64, at: u64, words: impl ExactSizeIterator<Item = u64>) -> bool {
    let fits = (at + words.len() as u64) * 8 <= bytes && offset + bytes <= wire::FILE_BYTES;
    if fits {
        for (place, word) in (at..).zip(words) {
            // SAFETY: inside the region, which is inside the mapped file, as just checked.
            unsafe { ((WIRE + offset) as *mut u64).add(place as usize).write(word) };
        }
    }
    fits
}

/// Changes a word of the region at `offset` that [`write_words`] has written.
pub fn update_word(offset: u64, at: u64, change: impl Fn(u64) -> u64) {
    let word = ((WIRE + offset) as *mut u64).wrapping_add(at as usize);
    // SAFETY: the word was written, so it is inside the mapped file.
    unsafe { word.write(change(word.read())) };
}

/// The plan's words, as the tool left them.
pub fn plan_words() -> &'static [u64] {
    let words = control().plan_words.load(Ordering::Acquire).min(wire::PLAN_BYTES / 8);
    // SAFETY: the region is mapped, and the tool does not write to it during a run.
    unsafe { std::slice::from_raw_parts((WIRE + wire::PLAN_OFFSET) as *const u64, words as usize) }
}

/// The tables of distances that the tool left.
pub fn table_words() -> &'static [u64] {
    let words = control().table_words.load(Ordering::Relaxed).min(wire::TABLES_BYTES / 8);
    // SAFETY: the region is mapped, and the tool does not write to it during a run.
    unsafe { std::slice::from_raw_parts((WIRE + wire::TABLES_OFFSET) as *const u64, words as usize) }
}

/// Tells the tool that waypoint number `index` is behind.
pub fn pass(index: usize, pass: Pass) {
    let words = [pass.records, pass.thread];
    let at = (index * words.len()) as u64;
    if write_words(wire::PASSES_OFFSET, wire::PASSES_BYTES, at, words.into_iter()) {
        control().passes.store(index as u64 + 1, Ordering::Release);
    }
}

/// The record of a plain write whose value is not known yet. The write happens after its event is recorded. The value
/// is read back at the thread's next operation, before any other thread can run.
static OPEN_WRITE: Carrier<Option<u64>> = Carrier::new(None);

/// How many records this run may write. Events that are not schedule points have no other bound.
static CAPACITY: Carrier<u64> = Carrier::new(wire::MAX_EVENTS);

/// Allows the run `points` schedule points, and a multiple of that of other events.
pub fn allow(points: u64) {
    const EVENTS_PER_POINT: u64 = 8;
    let events =
        control().prologue.load(Ordering::Relaxed) + points.saturating_mul(EVENTS_PER_POINT) + (1 << 20);
    CAPACITY.set(events.min(wire::MAX_EVENTS));
}

/// Function entry and exit are to be recorded.
static FUNCTIONS: AtomicBool = AtomicBool::new(false);

pub fn records_functions() -> bool {
    FUNCTIONS.load(Ordering::Relaxed)
}

pub fn record_functions(on: bool) {
    FUNCTIONS.store(on, Ordering::Relaxed);
}

/// An event, as the code that makes it knows it.
pub struct Entry {
    pub kind: EventKind,
    pub pc: u64,
    pub object: u64,
    pub value: u64,
    pub size: u64,
    pub order: MemoryOrder,
    pub outcome: Outcome,
}

impl Entry {
    pub fn new(kind: EventKind, pc: u64, object: u64) -> Entry {
        Entry { kind, pc, object, value: 0, size: 0, order: MemoryOrder::Relaxed, outcome: Outcome::Done }
    }

    pub fn outcome(self, outcome: Outcome) -> Entry {
        Entry { outcome, ..self }
    }

    pub fn value(self, value: u64) -> Entry {
        Entry { value, ..self }
    }

    pub fn size(self, size: u64) -> Entry {
        Entry { size, ..self }
    }

    /// Appends the event to the log, as the running thread's. Ends the run if what it is done to is gone.
    pub fn write(self) {
        let Entry { kind, object, pc, .. } = self;
        if scheduler::is_running() {
            self.write_as_running();
        }
        primitives::check(kind, object, pc);
    }

    fn write_as_running(mut self) {
        let me = scheduler::current();
        self.tell_early_end();
        scheduler::with(|sched| {
            sched.threads[me].last_value = self.value;
            sched.has_done(me, &mut self);
        });
        state::event(me, &self);
        work::event(me, &self);
        // An operation was announced with its stack, where the thread still is.
        let stack = if self.kind.is_silent() { calls::current() } else { pending(me).stack_index() };
        append(Record {
            kind: self.kind as u8,
            detail: Record::detail(self.order, self.outcome),
            thread: me.number() as u16,
            stack: stack.number(),
            pc_size: Record::pc_size(self.pc, self.size),
            object: self.object,
            value: self.value,
        });
    }
}

impl Entry {
    /// If the time of this wait or sleep was up while others could run, says so.
    fn tell_early_end(&mut self) {
        let is_end = self.kind == EventKind::Sleep || self.outcome == Outcome::TimedOut;
        if is_end && let Some(span) = scheduler::with_me(|me| me.ended_early.take()) {
            (self.outcome, self.size) = (Outcome::Early, span.to_bits().into());
        }
    }
}

/// Records that so many turns have been taken.
#[inline]
pub fn turns(count: u64) {
    control().turns.store(count, Ordering::Relaxed);
}

/// Records that another thread takes the turn that comes after so many.
pub fn switch(turns: u64, thread: ThreadIndex) {
    let switches = control().switches.load(Ordering::Relaxed);
    if switches < wire::SWITCHES_BYTES / size_of::<Switch>() as u64 {
        let region = (WIRE + wire::SWITCHES_OFFSET) as *mut Switch;
        if switches.is_multiple_of(BATCH) && switches > 0 {
            let start = WIRE + wire::SWITCHES_OFFSET + switches * size_of::<Switch>() as u64;
            populate(start, BATCH * size_of::<Switch>() as u64);
        }
        // SAFETY: inside the region, as just checked.
        unsafe { region.add(switches as usize).write(Switch::new(turns, thread)) };
        control().switches.store(switches + 1, Ordering::Relaxed);
    }
}

/// The pages of records before this one are mapped. The first few are not worth mapping ahead.
static TOUCHED: Carrier<u64> = Carrier::new(FIRST_MAPPED);
const FIRST_MAPPED: u64 = 1024;
/// Records, or switches, whose pages are mapped together.
const BATCH: u64 = 8192;

/// Maps the pages of the log that come next, in one go: a fault for each of them would cost several times that.
/// Those before them are let go; they stay in the file, but no longer count as the program's memory.
fn touch_ahead(index: u64) {
    const PAGE: u64 = 4096;
    const BYTES: u64 = BATCH * size_of::<Record>() as u64;
    let log = WIRE + wire::LOG_OFFSET;
    let start = (log + index * size_of::<Record>() as u64) & !(PAGE - 1);
    populate(start, BYTES);
    let before = start.saturating_sub(2 * BYTES).max(log);
    // SAFETY: these pages are of the shared file, which keeps what is in them.
    unsafe { system::call(libc::SYS_madvise, [before, start - before, libc::MADV_DONTNEED as u64, 0, 0, 0]) };
    TOUCHED.set(index + BATCH);
}

/// Older kernels cannot do this; pages then come one by one.
fn populate(start: u64, bytes: u64) {
    const MADV_POPULATE_WRITE: u64 = 23;
    // SAFETY: the caller passes a part of the shared file. Mapping its pages changes nothing in them.
    unsafe { system::call(libc::SYS_madvise, [start, bytes, MADV_POPULATE_WRITE, 0, 0, 0]) };
}

fn append(record: Record) {
    let events = &control().events;
    let index = events.load(Ordering::Relaxed);
    if index >= CAPACITY.get() {
        finish(&End::EventBound);
    }
    if index >= TOUCHED.get() {
        touch_ahead(index);
    }
    // SAFETY: inside the log, as just checked.
    unsafe { ((WIRE + wire::LOG_OFFSET) as *mut Record).add(index as usize).write(record) };
    events.store(index + 1, Ordering::Release);
}

/// Records a plain write.
///
/// # Safety
/// The program does this write next, or [`forget_write`] is called.
pub unsafe fn plain_write(pc: u64, address: u64, size: u64) {
    Entry::new(EventKind::Write, pc, address).size(size).value(if size > 8 { size } else { 0 }).write();
    if size <= 8 {
        OPEN_WRITE.set(Some(control().events.load(Ordering::Relaxed) - 1));
    }
}

/// The write announced last did not happen.
pub fn forget_write() {
    OPEN_WRITE.set(None);
}

/// Fills in the value of the write announced last.
pub fn close_write() {
    let Some(index) = OPEN_WRITE.replace(None) else { return };
    let record = ((WIRE + wire::LOG_OFFSET) as *mut Record).wrapping_add(index as usize);
    // SAFETY: `plain_write` was given the index by `append`. The program has written to the address since, or
    // `forget_write` has been called.
    unsafe { (*record).value = read_memory((*record).object, (*record).size()) };
}

/// Up to 8 bytes at `address`, as a number.
///
/// # Safety
/// The program could read them itself.
pub unsafe fn read_memory(address: u64, size: u64) -> u64 {
    // SAFETY: the caller promises that these bytes can be read.
    unsafe {
        match size {
            1 => u64::from((address as *const u8).read()),
            2 => u64::from((address as *const u16).read_unaligned()),
            4 => u64::from((address as *const u32).read_unaligned()),
            8.. => (address as *const u64).read_unaligned(),
            _ => (0..size)
                .rev()
                .fold(0, |value, i| value << 8 | u64::from(((address + i) as *const u8).read())),
        }
    }
}

pub fn function(enter: bool, inside: u64) {
    Entry::new(if enter { EventKind::Enter } else { EventKind::Leave }, inside, 0).write();
}

/// Starts the log of a run after its prologue.
pub fn restart() {
    let control = control();
    control.events.store(control.prologue.load(Ordering::Relaxed), Ordering::Relaxed);
    control.learnt_words.store(0, Ordering::Relaxed);
    control.decision_words.store(0, Ordering::Relaxed);
    control.turns.store(0, Ordering::Relaxed);
    control.passes.store(0, Ordering::Relaxed);
    control.switches.store(0, Ordering::Relaxed);
    control.races.store(0, Ordering::Relaxed);
    control.influences.store(0, Ordering::Relaxed);
    set_held_sleep(None);
    OPEN_WRITE.set(None);
    calls::publish();
}

/// The run depends on something besides its plan.
pub fn influenced_by(influence: Influence) {
    control().influences.fetch_or(influence.bit(), Ordering::Relaxed);
}

/// Records the blocks that were alive before the first thread.
pub fn prologue(blocks: impl Iterator<Item = &'static crate::memory::spans::Block>) {
    control().events.store(0, Ordering::Relaxed);
    for block in blocks {
        append(Record {
            kind: EventKind::Allocate as u8,
            detail: 0,
            thread: 0,
            stack: block.allocated().stack.number(),
            pc_size: Record::pc_size(block.allocated().pc, block.size()),
            object: block.start(),
            value: block.size(),
        });
    }
    control().prologue.store(control().events.load(Ordering::Relaxed), Ordering::Relaxed);
}
