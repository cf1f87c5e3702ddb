//! Telling a run that goes in circles from one that is only long.
//!
//! In the second half of the longest run allowed the schedule is fair. Towards its end each thread's state is noted
//! at every operation: what it is about to do, what its last operation brought, and the registers and stack of its
//! functions. If in the last eighth no thread is in a state that it was not in during the eighth before, nothing
//! moves: a loop that counts, on the stack, in a register or in memory, would show new states. Stacks take long to
//! look at. So what is done, and what that brings, must first have been the same for an eighth: most runs that are
//! only long move by this alone.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::hash::Hasher as _;

use crate::entry::modules;
use crate::entry::modules::UnwindContext;
use crate::schedule::scheduler;
use crate::schedule::scheduler::Operation;
use crate::{hash::Hasher, hash::Mix};

#[derive(Default)]
pub struct Watch {
    /// What threads did and what that brought, in the sixth eighth of the run.
    deeds: HashSet<u64, Hasher>,
    /// The same with registers and stacks, in the seventh.
    states: HashSet<u64, Hasher>,
    moving: bool,
}

/// The most of a stack that is looked at.
const MOST_STACK: u64 = 64 << 10;

impl Watch {
    /// Thread `me` stands before an operation, `done` of `most` having been done.
    #[inline]
    pub fn look(&mut self, me: usize, operation: &Operation, last_value: u64, done: u64, most: u64) {
        if !self.moving && done >= most / 8 * 5 {
            self.note(me, operation, last_value, done / (most / 8).max(1));
        }
    }

    /// Remembers the state that thread `me` is in after so many eighths of the run, or looks whether it is known.
    #[cold]
    fn note(&mut self, me: usize, operation: &Operation, last_value: u64, eighths: u64) {
        let mut state = Mix::default();
        for word in [me as u64, operation.kind as u64, operation.pc, operation.object, last_value] {
            state.write_u64(word);
        }
        if eighths == 5 {
            self.deeds.insert(state.finish());
            return;
        }
        if !self.deeds.contains(&state.finish()) {
            self.moving = true;
            return;
        }
        write_frames(&mut state, scheduler::stack_span(me).base);
        if eighths == 6 {
            self.states.insert(state.finish());
        } else {
            self.moving = !self.states.contains(&state.finish());
        }
    }

    /// Nothing moved.
    pub fn is_livelock(&self) -> bool {
        !self.moving
    }
}

/// Adds the registers that functions keep across calls, and the stack, of the program's innermost frame.
fn write_frames(state: &mut Mix, base: u64) {
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
    // SAFETY: walks the running thread's own stack.
    unsafe { modules::_Unwind_Backtrace(visit, (&raw mut frame).cast()) };
    frame.registers.iter().for_each(|&register| state.write_u64(register));
    let end = base.min(frame.stack_pointer.saturating_add(MOST_STACK));
    for address in (frame.stack_pointer..end).step_by(8) {
        // SAFETY: the running thread's own stack, between its innermost frame and its base.
        state.write_u64(unsafe { (address as *const u64).read_unaligned() });
    }
}

unsafe extern "C" {
    fn _Unwind_GetGR(context: *mut UnwindContext, register: c_int) -> usize;
}
