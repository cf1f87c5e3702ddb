//! The running thread's registers and stack, as a part of a hash.

use std::ffi::{c_int, c_void};
use std::hash::Hasher as _;

use threadbare_trace::ThreadIndex;

use crate::entry::log;
use crate::entry::modules::{self, UnwindContext};
use crate::hash::Mix;

/// How much of a stack is looked at.
pub const MAX_STACK: u64 = 64 << 10;

/// Adds the registers that functions keep across calls, and the stack, of the program's innermost frame.
pub fn write(state: &mut Mix, me: ThreadIndex) {
    let base = log::stack_span(me).base;
    struct Frame {
        registers: [u64; 6],
        stack_pointer: u64,
    }
    extern "C" fn visit(context: *mut UnwindContext, frame: *mut c_void) -> c_int {
        /// rbx, rbp and r12 to r15, as DWARF numbers them.
        const KEPT: [c_int; 6] = [3, 6, 12, 13, 14, 15];
        const STOP: c_int = 4;
        // SAFETY: the unwinder's context, and the frame passed below.
        unsafe {
            if modules::is_ours(modules::_Unwind_GetIP(context) as u64) {
                return 0;
            }
            let frame = &mut *frame.cast::<Frame>();
            frame.registers = KEPT.map(|register| _Unwind_GetGR(context, register) as u64);
            frame.stack_pointer = modules::_Unwind_GetCFA(context) as u64;
        }
        STOP
    }
    let mut frame = Frame { registers: [0; 6], stack_pointer: base };
    // SAFETY: the unwinder walks the running thread's own stack, and `visit` keeps to the types that it is called with.
    unsafe { modules::_Unwind_Backtrace(visit, (&raw mut frame).cast()) };
    frame.registers.iter().for_each(|&register| state.write_u64(register));
    let end = base.min(frame.stack_pointer.saturating_add(MAX_STACK));
    for address in (frame.stack_pointer..end).step_by(8) {
        // SAFETY: the running thread's own stack, between its innermost frame and its base.
        state.write_u64(unsafe { (address as *const u64).read_unaligned() });
    }
}

unsafe extern "C" {
    fn _Unwind_GetGR(context: *mut UnwindContext, register: c_int) -> usize;
}
