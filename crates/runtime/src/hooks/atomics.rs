//! Atomic operations. The compiler leaves the operation itself to the hook.
//!
//! Each is a real atomic instruction of the strongest order, so that it is correct while the runtime is inactive too.
//! While it is active there is one OS thread, and the order makes no difference.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst, fence};

use threadbare_trace::{EventKind, MemoryOrder, Outcome};
use threadbare_wire::Condition;

use crate::active;
use crate::entry::intercept::{export, hook};
use crate::entry::library_code;
use crate::entry::log::Entry;
use crate::hooks::accesses::{LEARN, WATCH};
use crate::memory::{gone, learn};
use crate::schedule::scheduler::{Operation, point};
use crate::schedule::spinning;

/// The operation at `pc` is an event.
fn watched(pc: u64) -> bool {
    active() && !library_code::is_quiet(pc)
}

/// Comes before the operation.
///
/// # Safety
/// The program does this access next.
unsafe fn before(kind: EventKind, address: u64, size: u64, pc: u64) {
    if WATCH.load(std::sync::atomic::Ordering::Relaxed) == LEARN {
        learn::access(address, size, kind != EventKind::AtomicLoad);
    }
    // SAFETY: the caller's promise.
    point(unsafe { Operation::access(kind, pc, address, size) });
}

/// Comes after the operation.
fn after(kind: EventKind, address: u64, size: u64, pc: u64, order: c_int, value: u64, outcome: Outcome) {
    // Bits above the order carry hints that are no part of it.
    let order = MemoryOrder::from_byte((order & 7) as u8).unwrap_or(MemoryOrder::SeqCst);
    Entry { order, outcome, ..Entry::new(kind, pc, address).size(size).value(value) }.write();
    gone::check_access(address, size, kind.name(), pc);
}

/// The operation with the events around it: `$value` is what to record of the `$result`. The operation sees `$atomic`
/// as a reference, which is made when the thread is to do the operation.
macro_rules! event {
    ($kind:ident, $atomic:ident, $size:expr, $order:ident, $pc:ident, $operation:expr, |$result:pat_param| $value:expr) => {{
        let address = $atomic as u64;
        let on = watched($pc);
        if on {
            // SAFETY: the operation follows, just below.
            unsafe { before(EventKind::$kind, address, $size, $pc) };
        }
        // SAFETY: the compiler calls a hook of this width in place of an operation on such a variable of the program's.
        // If the variable is gone, the fault is the program's own.
        let $atomic = unsafe { &*$atomic };
        let result = $operation;
        if on {
            let $result = &result;
            let (value, outcome): (u64, Outcome) = $value;
            after(EventKind::$kind, address, $size, $pc, $order, value, outcome);
        }
        result
    }};
}

/// When storing `operand` changes what is there.
fn unless_equal(operand: u64) -> Condition {
    Condition { mask: u64::MAX, value: operand, changes_if_equal: false }
}

/// When adding `operand` does.
fn unless_zero(operand: u64) -> Condition {
    if operand == 0 { Condition::NEVER } else { Condition::ALWAYS }
}

/// When keeping the bits of `operand` does.
fn if_set_elsewhere(operand: u64) -> Condition {
    Condition { mask: !operand, value: 0, changes_if_equal: false }
}

/// When setting the bits of `operand` does.
fn unless_set(operand: u64) -> Condition {
    Condition { mask: operand, value: operand, changes_if_equal: false }
}

/// When storing `new` in place of `expected` does.
fn if_equal(expected: u64, new: u64) -> Condition {
    match expected == new {
        true => Condition::NEVER,
        false => Condition { mask: u64::MAX, value: expected, changes_if_equal: true },
    }
}

/// `$condition` tells when an operand changes what is there.
macro_rules! fetch {
    ($function:ident, $atomic:ty, $word:ty, $method:ident, $new:expr, $condition:expr) => {
        unsafe extern "C" fn $function(
            atomic: *const $atomic,
            operand: $word,
            order: c_int,
            pc: u64,
        ) -> $word {
            let new: fn($word, $word) -> $word = $new;
            let condition: fn(u64) -> Condition = $condition;
            spinning::updates(|| condition(operand.into()));
            event!(
                AtomicRmw,
                atomic,
                size_of::<$word>() as u64,
                order,
                pc,
                atomic.$method(operand, SeqCst),
                |&old| (u64::from(new(old, operand)), Outcome::Done)
            )
        }
    };
}

/// All the operations on one width. A compare-exchange stores what it found into `*expected` on failure.
macro_rules! width {
    ($module:ident, $atomic:ty, $word:ty,
     $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident $xor:ident $nand:ident
     $strong:ident $weak:ident $val:ident) => {
        mod $module {
            use super::*;

            const SIZE: u64 = size_of::<$word>() as u64;

            hook! {
                $load/2 => load;
                $store/3 => store;
                $exchange/3 => exchange;
                $add/3 => add;
                $sub/3 => sub;
                $and/3 => and;
                $or/3 => or;
                $xor/3 => xor;
                $nand/3 => nand;
                $strong/5 => compare_exchange;
                $weak/5 => compare_exchange;
                $val/5 => compare_exchange_value;
            }

            unsafe extern "C" fn load(atomic: *const $atomic, order: c_int, pc: u64) -> $word {
                event!(AtomicLoad, atomic, SIZE, order, pc, atomic.load(SeqCst), |&read| (
                    u64::from(read),
                    Outcome::Done
                ))
            }

            unsafe extern "C" fn store(atomic: *const $atomic, value: $word, order: c_int, pc: u64) {
                event!(AtomicStore, atomic, SIZE, order, pc, atomic.store(value, SeqCst), |()| (
                    u64::from(value),
                    Outcome::Done
                ))
            }

            fetch!(exchange, $atomic, $word, swap, |_, new| new, unless_equal);
            fetch!(add, $atomic, $word, fetch_add, |old, operand| old.wrapping_add(operand), unless_zero);
            fetch!(sub, $atomic, $word, fetch_sub, |old, operand| old.wrapping_sub(operand), unless_zero);
            fetch!(and, $atomic, $word, fetch_and, |old, operand| old & operand, if_set_elsewhere);
            fetch!(or, $atomic, $word, fetch_or, |old, operand| old | operand, unless_set);
            fetch!(xor, $atomic, $word, fetch_xor, |old, operand| old ^ operand, unless_zero);
            fetch!(nand, $atomic, $word, fetch_nand, |old, operand| !(old & operand), |_| Condition::ALWAYS);

            /// # Safety
            /// `atomic` points to a variable of the program's.
            unsafe fn exchange_if(
                atomic: *const $atomic,
                expected: $word,
                new: $word,
                order: c_int,
                pc: u64,
            ) -> Result<$word, $word> {
                spinning::updates(|| if_equal(expected.into(), new.into()));
                event!(
                    AtomicRmw,
                    atomic,
                    SIZE,
                    order,
                    pc,
                    atomic.compare_exchange(expected, new, SeqCst, SeqCst),
                    |result| match *result {
                        Ok(_) => (u64::from(new), Outcome::Done),
                        Err(found) => (u64::from(found), Outcome::Failed),
                    }
                )
            }

            unsafe extern "C" fn compare_exchange(
                atomic: *const $atomic,
                expected: *mut $word,
                new: $word,
                order: c_int,
                _: c_int,
                pc: u64,
            ) -> c_int {
                // SAFETY: the compiler passes the program's variable, and a place for what is found in it.
                unsafe {
                    match exchange_if(atomic, expected.read(), new, order, pc) {
                        Ok(_) => 1,
                        Err(found) => {
                            expected.write(found);
                            0
                        }
                    }
                }
            }

            unsafe extern "C" fn compare_exchange_value(
                atomic: *const $atomic,
                expected: $word,
                new: $word,
                order: c_int,
                _: c_int,
                pc: u64,
            ) -> $word {
                // SAFETY: the compiler passes the program's variable.
                unsafe { exchange_if(atomic, expected, new, order, pc) }.unwrap_or_else(|found| found)
            }
        }
    };
}

width!(width8, AtomicU8, u8,
    __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
    __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
    __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
    __tsan_atomic8_compare_exchange_val);
width!(width16, AtomicU16, u16,
    __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
    __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
    __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
    __tsan_atomic16_compare_exchange_val);
width!(width32, AtomicU32, u32,
    __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
    __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
    __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
    __tsan_atomic32_compare_exchange_val);
width!(width64, AtomicU64, u64,
    __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
    __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
    __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
    __tsan_atomic64_compare_exchange_val);

/// 16-byte operations, each a loop around `cmpxchg16b`. Their arguments fill the argument registers, so the
/// return address travels in a global; only the carrier needs it.
mod width128 {
    use super::*;
    use crate::schedule::carrier::Carrier;

    static RETURN_ADDRESS: Carrier<u64> = Carrier::new(0);
    const SIZE: u64 = 16;

    macro_rules! intercept_wide {
        ($($name:ident => $target:ident;)+) => { export! { $(
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                std::arch::naked_asm!(
                    "mov rax, [rsp]",
                    "mov [rip + {address}], rax",
                    "jmp {target}",
                    address = sym RETURN_ADDRESS,
                    target = sym $target,
                )
            }
        )+ } };
    }

    intercept_wide! {
        __tsan_atomic128_load => load;
        __tsan_atomic128_store => store;
        __tsan_atomic128_exchange => exchange;
        __tsan_atomic128_fetch_add => add;
        __tsan_atomic128_fetch_sub => sub;
        __tsan_atomic128_fetch_and => and;
        __tsan_atomic128_fetch_or => or;
        __tsan_atomic128_fetch_xor => xor;
        __tsan_atomic128_fetch_nand => nand;
        __tsan_atomic128_compare_exchange_strong => compare_exchange;
        __tsan_atomic128_compare_exchange_weak => compare_exchange;
        __tsan_atomic128_compare_exchange_val => compare_exchange_value;
    }

    /// `cmpxchg16b`: what was there; it was replaced if it equals `expected`.
    ///
    /// # Safety
    /// `atomic` points to 16 aligned bytes that can be written to.
    unsafe fn exchange_if(atomic: *mut u128, expected: u128, new: u128) -> u128 {
        let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
        // SAFETY: the caller's promise. `rbx` cannot be an operand, so it is swapped in; the other
        // operands have registers of their own, because `reg` could be `rbx`.
        unsafe {
            std::arch::asm!(
                "xchg rbx, rsi",
                "lock cmpxchg16b [rdi]",
                "xchg rbx, rsi",
                in("rdi") atomic,
                inout("rsi") new as u64 => _,
                in("rcx") (new >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
            );
        }
        u128::from(high) << 64 | u128::from(low)
    }

    /// Replaces what is there by `new` of it; returns what was there.
    ///
    /// # Safety
    /// As for [`exchange_if`].
    unsafe fn update(kind: EventKind, atomic: *mut u128, order: c_int, new: impl Fn(u128) -> u128) -> u128 {
        let (address, pc) = (atomic as u64, RETURN_ADDRESS.get());
        let on = watched(pc);
        if on {
            // SAFETY: the operation follows, just below.
            unsafe { before(kind, address, SIZE, pc) };
        }
        // SAFETY: the caller's promise.
        let mut old = unsafe { exchange_if(atomic, 0, 0) };
        loop {
            // SAFETY: the caller's promise.
            let found = unsafe { exchange_if(atomic, old, new(old)) };
            if found == old {
                break;
            }
            old = found;
        }
        if on {
            let value = if kind == EventKind::AtomicLoad { old } else { new(old) };
            after(kind, address, SIZE, pc, order, value as u64, Outcome::Done);
        }
        old
    }

    unsafe extern "C" fn load(atomic: *mut u128, order: c_int) -> u128 {
        // SAFETY: the compiler passes 16 aligned bytes of the program's.
        unsafe { update(EventKind::AtomicLoad, atomic, order, |old| old) }
    }

    unsafe extern "C" fn store(atomic: *mut u128, value: u128, order: c_int) {
        // SAFETY: the compiler passes 16 aligned bytes of the program's.
        unsafe { update(EventKind::AtomicStore, atomic, order, |_| value) };
    }

    macro_rules! fetch_wide {
        ($($name:ident = $new:expr;)+) => { $(
            unsafe extern "C" fn $name(atomic: *mut u128, operand: u128, order: c_int) -> u128 {
                let new: fn(u128, u128) -> u128 = $new;
                // SAFETY: the compiler passes 16 aligned bytes of the program's.
                unsafe { update(EventKind::AtomicRmw, atomic, order, |old| new(old, operand)) }
            }
        )+ };
    }

    fetch_wide! {
        exchange = |_, operand| operand;
        add = u128::wrapping_add;
        sub = u128::wrapping_sub;
        and = |old, operand| old & operand;
        or = |old, operand| old | operand;
        xor = |old, operand| old ^ operand;
        nand = |old, operand| !(old & operand);
    }

    unsafe extern "C" fn compare_exchange_value(
        atomic: *mut u128,
        expected: u128,
        new: u128,
        order: c_int,
    ) -> u128 {
        let (address, pc) = (atomic as u64, RETURN_ADDRESS.get());
        let on = watched(pc);
        if on {
            // SAFETY: the operation follows, just below.
            unsafe { before(EventKind::AtomicRmw, address, SIZE, pc) };
        }
        // SAFETY: the compiler passes 16 aligned bytes of the program's.
        let found = unsafe { exchange_if(atomic, expected, new) };
        if on {
            let (value, outcome) =
                if found == expected { (new, Outcome::Done) } else { (found, Outcome::Failed) };
            after(EventKind::AtomicRmw, address, SIZE, pc, order, value as u64, outcome);
        }
        found
    }

    unsafe extern "C" fn compare_exchange(
        atomic: *mut u128,
        expected: *mut u128,
        new: u128,
        order: c_int,
        _: c_int,
    ) -> c_int {
        // SAFETY: the compiler passes 16 aligned bytes of the program's, and a place for what is found there.
        unsafe {
            let wanted = expected.read();
            let found = compare_exchange_value(atomic, wanted, new, order);
            expected.write(found);
            c_int::from(found == wanted)
        }
    }
}

hook! { __tsan_atomic_thread_fence/1 => thread_fence; }

extern "C" fn thread_fence(order: c_int, pc: u64) {
    if watched(pc) {
        point(Operation::new(EventKind::Fence, pc, 0));
        after(EventKind::Fence, 0, 0, pc, order, 0, Outcome::Done);
    }
    fence(SeqCst);
}

export! {
    /// Orders a thread against its own signal handlers: nothing to schedule.
    extern "C" fn __tsan_atomic_signal_fence(_: c_int) {}
}
