//! Barriers.
//!
//! To pass one is two operations: to arrive, and to leave when the last thread has arrived. How often a barrier has
//! opened is its generation. A thread leaves when the generation that it arrived in has passed.

use std::ffi::c_int;

use threadbare_trace::{EventKind, FailureKind};

use crate::entry::log::Entry;
use crate::entry::modules::users_call;
use crate::schedule::ending::fail;
use crate::schedule::scheduler::{self, Operation, Scheduler, point};
use crate::schedule::wait::Wait;

/// The beginning of glibc's `pthread_barrier_t`.
#[repr(C)]
pub struct Barrier {
    unused: [u32; 2],
    /// How many threads it is for.
    count: u32,
}

impl Barrier {
    /// The barrier of a program.
    ///
    /// # Safety
    /// `barrier` points to an initialised barrier that stays one for as long as a thread uses it. A program that waits
    /// at a barrier promises libc the same.
    pub unsafe fn at(barrier: *mut libc::pthread_barrier_t) -> &'static Barrier {
        // SAFETY: the caller's promise. Nothing writes to the fields while threads wait.
        unsafe { &*barrier.cast::<Barrier>() }
    }
}

/// How often each barrier has opened.
#[derive(Default)]
pub struct Generations(Vec<(u64, u64)>);

impl Generations {
    pub fn of(&self, address: u64) -> u64 {
        self.0.iter().find(|(barrier, _)| *barrier == address).map_or(0, |&(_, count)| count)
    }

    /// Opens the barrier.
    fn next(&mut self, address: u64) {
        match self.0.iter_mut().find(|(barrier, _)| *barrier == address) {
            Some((_, count)) => *count += 1,
            None => self.0.push((address, 1)),
        }
    }
}

impl Scheduler {
    /// Threads that wait at the barrier `address` in its present generation.
    fn at_barrier(&self, address: u64) -> u32 {
        let now = self.generations.of(address);
        let waits = |wait: &Wait| matches!(*wait, Wait::Barrier { address: of, generation } if of == address && generation == now);
        self.alive.iter().filter(|&index| waits(&self.threads[index].wait)).count() as u32
    }
}

pub fn wait(barrier: &Barrier, pc: u64) -> c_int {
    let (address, pc) = (std::ptr::from_ref(barrier) as u64, users_call(pc));
    point(Operation::new(EventKind::BarrierArrive, pc, address));
    Entry::new(EventKind::BarrierArrive, pc, address).write();
    // None can be initialised for so many.
    if barrier.count == 0 {
        fail(FailureKind::NotInitialised, pc, "a barrier is waited at that was never initialised");
    }
    let (generation, is_last) = scheduler::with(|sched| {
        let generation = sched.generations.of(address);
        let is_last = sched.at_barrier(address) + 1 >= barrier.count;
        if is_last {
            sched.generations.next(address);
            sched.released(address);
        }
        (generation, is_last)
    });
    let leave = Operation::new(EventKind::BarrierLeave, pc, address);
    point(leave.waiting(Wait::Barrier { address, generation }));
    Entry::new(EventKind::BarrierLeave, pc, address).write();
    if is_last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that arrives again must not leave by the opening that let it out before.
    #[test]
    fn generations_are_counted_by_barrier() {
        let mut generations = Generations::default();
        assert_eq!(generations.of(8), 0);
        generations.next(8);
        generations.next(8);
        generations.next(16);
        assert_eq!([generations.of(8), generations.of(16), generations.of(24)], [2, 1, 0]);
    }
}
