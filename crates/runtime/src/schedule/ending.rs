//! The end of a run, for a reason that the tool reads.

use std::sync::atomic::Ordering;

use threadbare_wire::{Ending, MESSAGE_BYTES};

use super::scheduler;
use crate::entry::log;
use crate::hooks::calls;
use crate::os::system;

/// Where a run failed.
pub struct Scene {
    pub thread: u32,
    pub pc: u64,
    pub stack: u32,
}

/// Ends the run, because of what the running thread does at `pc`.
pub fn finish(ending: Ending, detail: u32, pc: u64, message: &str) -> ! {
    let scene = Scene { thread: scheduler::current() as u32, pc, stack: calls::current() };
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
