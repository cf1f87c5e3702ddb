//! The shared file from the tool's side.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::Ordering;

use threadbare_trace::wire::{self, Code, Control, PendingRecord, RaceRecord, Record, Stack, StackSpan};

/// The file and its mapping.
pub struct Memory {
    file: File,
    start: *mut u8,
}

// SAFETY: the mapping belongs to this value alone; nothing in it refers to a thread.
unsafe impl Send for Memory {}

/// A file that exists only in memory.
pub fn anonymous_file(name: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: a plain system call, whose result is checked before it becomes a `File`.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that nobody else has.
    Ok(unsafe { File::from_raw_fd(fd) })
}

impl Memory {
    pub fn create() -> io::Result<Memory> {
        let file = anonymous_file(c"threadbare")?;
        file.set_len(wire::FILE_BYTES)?;
        // SAFETY: a new mapping wherever the kernel likes.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                wire::FILE_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
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
    fn region<T>(&self, offset: u64, bytes: u64, count: u64) -> &[T] {
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

    pub fn message(&self) -> String {
        let control = self.control();
        let length = (control.message_bytes.load(Ordering::Acquire) as usize).min(control.message.len());
        String::from_utf8_lossy(&control.message[..length]).into_owned()
    }

    /// Puts a plan in place. `false` when it is too large.
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

    /// Puts the table of the standard library's functions in place, before the program starts.
    pub fn write_code(&self, table: &[Code]) {
        let count = table.len().min(wire::CODE_BYTES as usize / size_of::<Code>());
        // SAFETY: inside the region, as just checked; nobody else has the file yet.
        unsafe {
            let region = self.start.add(wire::CODE_OFFSET as usize).cast::<Code>();
            region.copy_from_nonoverlapping(table.as_ptr(), count);
        }
        self.control().code.store(count as u64, Ordering::Release);
    }

    /// Gives back the pages of a log that has become large.
    pub fn trim(&self) {
        const KEPT: u64 = 16 << 20;
        let used = self.control().events.load(Ordering::Relaxed) * size_of::<Record>() as u64;
        if used > KEPT {
            // SAFETY: a plain system call on our own file; the region is not borrowed between runs.
            unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                    (wire::LOG_OFFSET + KEPT) as i64,
                    (used - KEPT).next_multiple_of(4096) as i64,
                );
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `create`.
        unsafe { libc::munmap(self.start.cast(), wire::FILE_BYTES as usize) };
    }
}
