//! Places in the code at which a run stops, whatever is done there.
//!
//! Most of what a program does is no event, and costs a few instructions or none. A plan may watch some places all the
//! same: a guided run has to see that a thread comes to them. In the process that makes the run, the code at such a place
//! is changed to go through a few instructions of ours. So code at other places costs no more than before.
//!
//! - A call of a hook that announces an access goes through instructions that let the hook know ([`WATCHED`]).
//! - Any other call goes through instructions that record an event first.
//! - Other instructions are moved, and a jump takes their place. It leads to instructions that record an event, then
//!   come those that were moved, then a jump back. The tool has found instructions that nothing jumps into.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicBool, Ordering};

use threadbare_trace::{EventKind, MovedCode, Relative, Watched};

use crate::entry::intercept::ENTRY;
use crate::entry::log::Entry;
use crate::hooks::accesses::{WATCH, WATCHED};
use crate::memory::layout;
use crate::os::{instructions, system};
use crate::schedule::ending::refuse;
use crate::schedule::scheduler::{self, Operation, point};

/// Bytes for the instructions that one place goes through: at most 41 of ours, and the moved ones.
const STUB: u64 = 128;
const _: () = assert!(MovedCode::MAX_BYTES + 41 <= STUB as usize);
/// How much is mapped for them at a time.
const AREA: u64 = 64 << 10;
/// How far a jump can reach, with some room to spare.
const REACH: u64 = (1 << 31) - (1 << 20);

/// The part of a mapping near the code that is not used yet.
struct Area {
    next: u64,
    end: u64,
}

/// Watches these places.
pub fn watch(places: &[Watched]) {
    if places.is_empty() {
        return;
    }
    const OSXSAVE: u32 = 1 << 27;
    HAS_XSAVE.store(instructions::ask_processor(1, 0).ecx & OSXSAVE != 0, Ordering::Relaxed);
    let mut area = Area { next: 0, end: 0 };
    for watched in places {
        // SAFETY: the tool has found such code there, in this program, and no thread runs meanwhile.
        let done = unsafe {
            match watched {
                Watched::Access(end) => watch_call(*end, &mut area, write_access_stub),
                Watched::Call(end) => watch_call(*end, &mut area, write_call_stub),
                Watched::Code(moved) => watch_code(moved, &mut area),
            }
        };
        if done.is_none() {
            refuse(watched.place(), "the code there cannot be watched");
        }
    }
}

/// # Safety
/// A call instruction ends at this address.
unsafe fn watch_call(end: u64, area: &mut Area, write_stub: unsafe fn(u64, u64, u64)) -> Option<()> {
    // SAFETY: the caller's promise. Both kinds of calls are at least five bytes long, and the longer one is looked at
    // only where the shorter one is not.
    let (start, target) = unsafe {
        let byte = |before: u64| ((end - before) as *const u8).read();
        let offset = i64::from(((end - 4) as *const i32).read_unaligned());
        match (byte(5), byte(6), byte(5)) {
            (0xe8, ..) => (end - 5, end.wrapping_add_signed(offset)),
            // Through a slot of the loader's, as code without stubs does.
            (_, 0xff, 0x15) => (end - 6, (end.wrapping_add_signed(offset) as *const u64).read()),
            _ => return None,
        }
    };
    let stub = area.take(end)?;
    // SAFETY: the area is ours, and can be written to and executed.
    unsafe { write_stub(stub, end, target) };
    // The call stays where it was, so that it returns to the same address.
    let mut call = [0x90, 0xe8, 0, 0, 0, 0];
    call[2..].copy_from_slice(&distance(end, stub)?);
    // SAFETY: these bytes were the call.
    unsafe { overwrite(start, &call[call.len() - (end - start) as usize..]) }
}

/// # Safety
/// The instructions are there, and nothing jumps into them.
unsafe fn watch_code(moved: &MovedCode, area: &mut Area) -> Option<()> {
    let (start, stub) = (moved.start, area.take(moved.start)?);
    // SAFETY: the area is ours, and can be written to and executed.
    unsafe { write_code_stub(stub + DATA, moved) }?;
    let mut jump = [0xe9, 0, 0, 0, 0];
    jump[1..].copy_from_slice(&distance(start + MovedCode::JUMP, stub + DATA)?);
    // SAFETY: the caller's promise; the tool moves at least as many bytes.
    unsafe { overwrite(start, &jump) }
}

/// The four bytes of a jump from an instruction that ends at `from`.
fn distance(from: u64, to: u64) -> Option<[u8; 4]> {
    Some(i32::try_from(to.cast_signed() - from.cast_signed()).ok()?.to_le_bytes())
}

/// Changes code of the program; `None` if the kernel does not allow it.
///
/// # Safety
/// The code is mapped, and no thread is inside of these bytes.
unsafe fn overwrite(start: u64, bytes: &[u8]) -> Option<()> {
    let page = start & !4095;
    let length = (start + bytes.len() as u64).next_multiple_of(4096) - page;
    let protect = |access: i32| {
        // SAFETY: code of this program stays mapped, and no other thread of this process runs it meanwhile.
        unsafe { system::call(libc::SYS_mprotect, [page, length, access as u64, 0, 0, 0]) }
    };
    if protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) != 0 {
        return None;
    }
    // SAFETY: the caller's promise, and they can be written to now.
    unsafe { (start as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    protect(libc::PROT_READ | libc::PROT_EXEC);
    Some(())
}

/// Bytes before the instructions of a stub: the place that it stands for, and the function that it calls.
const DATA: u64 = 16;

/// Writes instructions one after another.
struct Writer {
    next: u64,
}

impl Writer {
    /// # Safety
    /// There is room for them.
    unsafe fn put(&mut self, bytes: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { (self.next as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.next += bytes.len() as u64;
    }

    /// An instruction that ends with the distance to `address`, which lies before it in the same stub.
    ///
    /// # Safety
    /// There is room for it.
    unsafe fn put_relative(&mut self, opcode: [u8; 2], address: u64) {
        let end = self.next + 6;
        let distance = (address.cast_signed() - end.cast_signed()) as i32;
        // SAFETY: the caller's promise.
        unsafe {
            self.put(&opcode);
            self.put(&distance.to_le_bytes());
        }
    }
}

/// Writes the instructions that note a watched access and go on to the hook.
///
/// # Safety
/// There is room for them at `stub`.
unsafe fn write_access_stub(stub: u64, _end: u64, target: u64) {
    let mut writer = Writer { next: stub };
    // SAFETY: the caller's promise.
    unsafe {
        // push rax; mov rax, WATCH
        writer.put(&[0x50, 0x48, 0xb8]);
        writer.put(&(WATCH.as_ptr() as u64).to_le_bytes());
        // or byte ptr [rax], WATCHED; pop rax; jmp [rip]
        writer.put(&[0x80, 0x08, WATCHED, 0x58, 0xff, 0x25, 0, 0, 0, 0]);
        writer.put(&target.to_le_bytes());
    }
}

/// Writes the instructions that record that a thread comes to a call, and go on to what it calls.
///
/// # Safety
/// There is room for them at `stub`.
unsafe fn write_call_stub(stub: u64, end: u64, target: u64) {
    let mut writer = Writer { next: stub };
    // SAFETY: the caller's promise.
    unsafe {
        // A jump over the data.
        writer.put(&[0xeb, 24]);
        let data = writer.next;
        for word in [end, reach as *const () as u64, target] {
            writer.put(&word.to_le_bytes());
        }
        writer.put_relative(PUSH, data);
        writer.put_relative(CALL, data + 8);
        // lea rsp, [rsp + 8]
        writer.put(&[0x48, 0x8d, 0x64, 0x24, 8]);
        writer.put_relative(JUMP, data + 16);
    }
}

const PUSH: [u8; 2] = [0xff, 0x35];
const CALL: [u8; 2] = [0xff, 0x15];
const JUMP: [u8; 2] = [0xff, 0x25];

/// Writes the instructions that record that a thread comes to a place, and then those that were moved.
///
/// # Safety
/// There is room for them at `code`, and for their data before it.
unsafe fn write_code_stub(code: u64, moved: &MovedCode) -> Option<()> {
    let data = code - DATA;
    let mut writer = Writer { next: data };
    // SAFETY: the caller's promise.
    unsafe {
        writer.put(&moved.place.to_le_bytes());
        writer.put(&(reach as *const () as u64).to_le_bytes());
        // The function may use memory below the stack pointer: lea rsp, [rsp - 128]
        writer.put(&[0x48, 0x8d, 0x64, 0x24, 0x80]);
        writer.put_relative(PUSH, data);
        writer.put_relative(CALL, data + 8);
        // lea rsp, [rsp + 136]
        writer.put(&[0x48, 0x8d, 0xa4, 0x24, 136, 0, 0, 0]);
    }
    let mut bytes = moved.code.clone();
    for &Relative { at, from, target } in &moved.relatives {
        let at = at as usize;
        bytes.get_mut(at..at + 4)?.copy_from_slice(&distance(writer.next + u64::from(from), target)?);
    }
    // SAFETY: the caller's promise; the wire lets no more bytes through than there is room for.
    unsafe { writer.put(&bytes) };
    Some(())
}

/// The processor has `xsave`, which saves all vector registers.
static HAS_XSAVE: AtomicBool = AtomicBool::new(false);

/// What `xsave` is to save: all that a function may change. So many bytes are enough for it.
const SAVED: u32 = 0b1110_0111;
const SAVED_BYTES: u32 = 4096;

/// Calls [`reached`] with the word that was pushed last before the call, and changes nothing.
///
/// The program expects nothing to happen here, so every register and flag is saved that a function may change. libc's
/// copying functions, which the runtime uses, change the widest vector registers there are.
#[unsafe(naked)]
unsafe extern "C" fn reach() {
    naked_asm!(
        "mov [rip + {entry}], rsp",
        "pushfq",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbx",
        "mov rbx, rsp",
        "and rsp, -64",
        "sub rsp, {bytes}",
        "cmp byte ptr [rip + {has_xsave}], 0",
        "je 2f",
        // The header behind the first 512 bytes has to be 0.
        "xor eax, eax",
        "mov ecx, 8",
        "lea rdi, [rsp + 512]",
        "cld",
        "rep stosq",
        "mov eax, {saved}",
        "xor edx, edx",
        "xsave64 [rsp]",
        "jmp 3f",
        "2: fxsave64 [rsp]",
        "3: cld",
        "mov rdi, [rbx + 96]",
        "call {reached}",
        "cmp byte ptr [rip + {has_xsave}], 0",
        "je 4f",
        "mov eax, {saved}",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "jmp 5f",
        "4: fxrstor64 [rsp]",
        "5: mov rsp, rbx",
        "pop rbx",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "popfq",
        "ret",
        entry = sym ENTRY,
        bytes = const SAVED_BYTES,
        has_xsave = sym HAS_XSAVE,
        saved = const SAVED,
        reached = sym reached,
    )
}

/// The running thread has come to a watched place.
extern "C" fn reached(place: u64) {
    if scheduler::is_running() {
        point(Operation::new(EventKind::Reach, place, 0));
        Entry::new(EventKind::Reach, place, 0).write();
    }
}

impl Area {
    /// Room for a stub that a jump at `address` can reach.
    fn take(&mut self, address: u64) -> Option<u64> {
        if self.next + STUB > self.end || address.abs_diff(self.next) >= REACH {
            let below = address & !(AREA - 1);
            let places = (1..REACH / AREA).map(|number| below.wrapping_sub(number * AREA));
            let start = places.into_iter().find(|&start| layout::reserve_code(start, AREA))?;
            (self.next, self.end) = (start, start + AREA);
        }
        let stub = self.next;
        self.next += STUB;
        Some(stub)
    }
}
