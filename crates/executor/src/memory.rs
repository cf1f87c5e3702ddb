//! The tool's side of the shared file.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use threadbare_trace::Turns;
use threadbare_wire::{
    self as wire, Code, Control, Pass, PendingRecord, RaceRecord, Record, Snapshot, Stack, StackSpan, Switch,
};

/// The file and its mapping.
pub struct Memory {
    file: File,
    start: *mut u8,
}

// SAFETY: the mapping belongs to this value alone; nothing in it refers to a thread.
unsafe impl Send for Memory {}

/// How much of each region is in use.
#[derive(Clone, Debug)]
pub struct Lengths {
    events: u64,
    stacks: u32,
    threads: u32,
    races: u32,
    learnt_words: u64,
    decision_words: u64,
    pub turns: u64,
    switches: u64,
    pub output: u64,
}

impl Lengths {
    /// The lengths when a snapshot was taken.
    pub fn of(snapshot: &Snapshot) -> Lengths {
        Lengths {
            events: snapshot.events.load(Ordering::Relaxed),
            stacks: snapshot.stacks.load(Ordering::Relaxed),
            threads: snapshot.threads.load(Ordering::Relaxed),
            races: snapshot.races.load(Ordering::Relaxed),
            learnt_words: snapshot.learnt_words.load(Ordering::Relaxed),
            decision_words: snapshot.decision_words.load(Ordering::Relaxed),
            turns: snapshot.turns.load(Ordering::Relaxed),
            switches: snapshot.switches.load(Ordering::Relaxed),
            output: snapshot.output.load(Ordering::Relaxed),
        }
    }
}

/// A copy of the regions that only grow.
pub struct Contents {
    records: Vec<Record>,
    stacks: Vec<Stack>,
    spans: Vec<StackSpan>,
    races: Vec<RaceRecord>,
    learnt: Vec<u64>,
    decisions: Vec<u64>,
    switches: Vec<Switch>,
}

impl Contents {
    /// The turns from the beginning of the run to that moment.
    pub fn turns(&self, lengths: &Lengths) -> Vec<Turns> {
        Switch::turns(&self.switches[..lengths.switches as usize], lengths.turns)
    }
}

/// A file that exists only in memory.
pub fn anonymous_file(name: &std::ffi::CStr) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Frees the pages of a part of a file. They read as zeroes from then on.
pub fn punch_hole(file: &File, start: u64, len: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, len)?)
}

impl Memory {
    pub fn create() -> io::Result<Memory> {
        let file = anonymous_file(c"threadbare")?;
        file.set_len(wire::FILE_BYTES)?;
        // SAFETY: a new mapping wherever the kernel likes.
        let start = unsafe {
            let (access, flags) =
                (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
            mmap(std::ptr::null_mut(), wire::FILE_BYTES as usize, access, flags, &file, 0)?
        };
        let memory = Memory { file, start: start.cast() };
        memory.control().version.store(wire::VERSION, Ordering::Relaxed);
        Ok(memory)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn control(&self) -> &Control {
        // SAFETY: mapped for as long as `self`; fields that both sides write are atomics.
        unsafe { &*self.start.cast() }
    }

    /// `count` items of a region. Between runs nobody writes to it.
    fn region<T: Clone>(&self, offset: u64, bytes: u64, count: u64) -> &[T] {
        let count = count.min(bytes / size_of::<T>() as u64) as usize;
        // SAFETY: inside the mapping; `T` is plain data; the server only writes during a run, when the
        // worker is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.add(offset as usize).cast(), count) }
    }

    /// The log so far: prologue and run.
    pub fn records(&self) -> &[Record] {
        let events = self.control().events.load(Ordering::Acquire);
        self.region(wire::LOG_OFFSET, wire::LOG_BYTES, events)
    }

    pub fn stacks(&self) -> &[Stack] {
        let stacks = self.control().stacks.load(Ordering::Acquire);
        self.region(wire::STACKS_OFFSET, wire::STACKS_BYTES, u64::from(stacks))
    }

    pub fn pending(&self) -> &[PendingRecord] {
        let pending = self.control().pending.load(Ordering::Acquire);
        self.region(wire::PENDING_OFFSET, wire::PENDING_BYTES, u64::from(pending))
    }

    /// Where the stack of each thread lies.
    pub fn stack_spans(&self) -> &[StackSpan] {
        let threads = self.control().pending.load(Ordering::Acquire);
        self.region(wire::SPANS_OFFSET, wire::SPANS_BYTES, u64::from(threads))
    }

    pub fn races(&self) -> &[RaceRecord] {
        let races = self.control().races.load(Ordering::Acquire);
        self.region(wire::RACES_OFFSET, wire::RACES_BYTES, u64::from(races))
    }

    pub fn learnt(&self) -> &[u64] {
        let words = self.control().learnt_words.load(Ordering::Acquire);
        self.region(wire::LEARNT_OFFSET, wire::LEARNT_BYTES, words)
    }

    pub fn decisions(&self) -> wire::Decisions<'_> {
        let words = self.control().decision_words.load(Ordering::Acquire);
        wire::Decisions::new(self.region(wire::DECISIONS_OFFSET, wire::DECISIONS_BYTES, words))
    }

    /// The waypoints that a guided run has passed, in order.
    pub fn passes(&self) -> &[Pass] {
        let passes = self.control().passes.load(Ordering::Acquire);
        self.region(wire::PASSES_OFFSET, wire::PASSES_BYTES, passes)
    }

    /// Writes a plan. Returns `false` if it is too large.
    pub fn write_plan(&mut self, words: &[u64]) -> bool {
        if words.len() as u64 > wire::PLAN_BYTES / 8 {
            return false;
        }
        // SAFETY: inside the region, as just checked; the server reads it only when told to run.
        unsafe {
            let region = self.start.add(wire::PLAN_OFFSET as usize).cast::<u64>();
            region.copy_from_nonoverlapping(words.as_ptr(), words.len());
        }
        self.control().plan_words.store(words.len() as u64, Ordering::Release);
        true
    }

    /// Writes tables of distances. Returns `false` if they are too large.
    pub fn write_tables(&mut self, words: &[u64]) -> bool {
        if words.len() as u64 > wire::TABLES_BYTES / 8 {
            return false;
        }
        self.put(wire::TABLES_OFFSET, words);
        self.control().table_words.store(words.len() as u64, Ordering::Release);
        true
    }

    /// Copies as much as `lengths` says.
    pub fn copy(&self, lengths: &Lengths) -> Contents {
        Contents {
            records: self.region(wire::LOG_OFFSET, wire::LOG_BYTES, lengths.events).to_vec(),
            stacks: self.region(wire::STACKS_OFFSET, wire::STACKS_BYTES, lengths.stacks.into()).to_vec(),
            spans: self.region(wire::SPANS_OFFSET, wire::SPANS_BYTES, lengths.threads.into()).to_vec(),
            races: self.region(wire::RACES_OFFSET, wire::RACES_BYTES, lengths.races.into()).to_vec(),
            learnt: self.region(wire::LEARNT_OFFSET, wire::LEARNT_BYTES, lengths.learnt_words).to_vec(),
            decisions: self
                .region(wire::DECISIONS_OFFSET, wire::DECISIONS_BYTES, lengths.decision_words)
                .to_vec(),
            switches: self.region(wire::SWITCHES_OFFSET, wire::SWITCHES_BYTES, lengths.switches).to_vec(),
        }
    }

    /// Restores everything as it was at a moment.
    pub fn restore(&mut self, contents: &Contents, lengths: &Lengths) {
        self.put(wire::LOG_OFFSET, &contents.records[..lengths.events as usize]);
        self.put(wire::STACKS_OFFSET, &contents.stacks[..lengths.stacks as usize]);
        self.put(wire::SPANS_OFFSET, &contents.spans[..lengths.threads as usize]);
        self.put(wire::RACES_OFFSET, &contents.races[..lengths.races as usize]);
        self.put(wire::LEARNT_OFFSET, &contents.learnt[..lengths.learnt_words as usize]);
        self.put(wire::DECISIONS_OFFSET, &contents.decisions[..lengths.decision_words as usize]);
        self.put(wire::SWITCHES_OFFSET, &contents.switches[..lengths.switches as usize]);
        let control = self.control();
        control.events.store(lengths.events, Ordering::Relaxed);
        control.stacks.store(lengths.stacks, Ordering::Relaxed);
        control.pending.store(lengths.threads, Ordering::Relaxed);
        control.races.store(lengths.races, Ordering::Relaxed);
        control.learnt_words.store(lengths.learnt_words, Ordering::Relaxed);
        control.decision_words.store(lengths.decision_words, Ordering::Relaxed);
        control.turns.store(lengths.turns, Ordering::Relaxed);
        control.switches.store(lengths.switches, Ordering::Relaxed);
    }

    /// Writes `items` to the beginning of a region that has room for them.
    fn put<T: Copy>(&mut self, offset: u64, items: &[T]) {
        // SAFETY: inside the mapping, because the caller has checked it or they come from there; nobody else writes
        // between runs.
        unsafe {
            let region = self.start.add(offset as usize).cast::<T>();
            region.copy_from_nonoverlapping(items.as_ptr(), items.len());
        }
    }

    /// The turns of the run, from its beginning.
    pub fn turns(&self) -> Vec<Turns> {
        let switches = self.control().switches.load(Ordering::Acquire);
        let switches = self.region(wire::SWITCHES_OFFSET, wire::SWITCHES_BYTES, switches);
        Switch::turns(switches, self.control().turns.load(Ordering::Acquire))
    }

    /// Writes the table of the standard library's functions, before the program starts.
    pub fn write_code(&self, table: &[Code]) {
        let count = table.len().min(wire::CODE_BYTES as usize / size_of::<Code>());
        // SAFETY: inside the region, as just checked; nobody else has the file yet.
        unsafe {
            let region = self.start.add(wire::CODE_OFFSET as usize).cast::<Code>();
            region.copy_from_nonoverlapping(table.as_ptr(), count);
        }
        self.control().code.store(count as u64, Ordering::Release);
    }

    /// Frees the pages of a log that has become large.
    pub fn trim(&self) {
        const KEPT: u64 = 16 << 20;
        let used = self.control().events.load(Ordering::Relaxed) * size_of::<Record>() as u64;
        if used > KEPT {
            // Without the hole there is only less memory for others.
            let _ = punch_hole(&self.file, wire::LOG_OFFSET + KEPT, (used - KEPT).next_multiple_of(4096));
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `create`.
        let _ = unsafe { munmap(self.start.cast(), wire::FILE_BYTES as usize) };
    }
}
