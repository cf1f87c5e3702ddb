//! The number of processors that a program sees: the same on every machine.
//!
//! Programs start as many threads as there are processors, and a clip is replayed on other machines.

use std::ffi::{CStr, c_int, c_long};

use threadbare_trace::ThreadIndex;

use crate::entry::intercept::intercept;
use crate::os::{identity, system};
use crate::schedule::scheduler;
use crate::sync::threads;

/// Enough for programs that do without threads on fewer.
const COUNT: u32 = 4;

/// The processors that a thread may run on, a bit each.
#[derive(Clone, Copy)]
pub struct Affinity(u64);

impl Affinity {
    pub const ALL: Affinity = Affinity((1 << COUNT) - 1);

    /// Writes the set to the program's memory.
    ///
    /// # Safety
    /// `set` has `size` bytes.
    unsafe fn write(self, size: usize, set: *mut u8) -> Result<(), c_int> {
        if size < size_of::<u64>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller's promise.
        unsafe {
            set.write_bytes(0, size);
            set.cast::<u64>().write_unaligned(self.0);
        }
        Ok(())
    }

    /// The processors in the program's set that there are: one, at least.
    ///
    /// # Safety
    /// `set` has `size` bytes.
    unsafe fn read(size: usize, set: *const u8) -> Result<Affinity, c_int> {
        let mut bits = [0; size_of::<u64>()];
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(set, bits.as_mut_ptr(), size.min(bits.len())) };
        match u64::from_ne_bytes(bits) & Affinity::ALL.0 {
            0 => Err(libc::EINVAL),
            bits => Ok(Affinity(bits)),
        }
    }
}

/// What a thread that the running one creates begins with.
pub fn inherited() -> Affinity {
    scheduler::with_me(|me| me.affinity)
}

/// The index of the thread that a system call means; 0 is the running one.
fn by_id(id: libc::pid_t) -> Result<ThreadIndex, c_int> {
    if id == 0 {
        return Ok(scheduler::current());
    }
    let position = usize::try_from(id - identity::process_id()).ok();
    let is_there = |&position: &usize| position < scheduler::count();
    position.filter(is_there).map(ThreadIndex::at).ok_or(libc::ESRCH)
}

fn by_handle(handle: libc::pthread_t) -> Result<ThreadIndex, c_int> {
    threads::find(handle).ok_or(libc::ESRCH)
}

/// What thread `index` may run on.
fn affinity(index: ThreadIndex) -> Affinity {
    scheduler::with(|sched| sched.threads[index].affinity)
}

fn set_affinity(index: ThreadIndex, affinity: Affinity) {
    scheduler::with(|sched| sched.threads[index].affinity = affinity);
}

/// As system calls say it.
fn result(done: Result<(), c_int>) -> c_int {
    done.map_or_else(system::fail, |()| 0)
}

intercept! {
    fn sched_getaffinity @ c"GLIBC_2.3.4"(id: libc::pid_t, size: usize, set: *mut u8) -> c_int {
        // SAFETY: the program promises libc memory as large as it says.
        result(by_id(id).and_then(|index| unsafe { affinity(index).write(size, set) }))
    }

    fn sched_setaffinity @ c"GLIBC_2.3.4"(id: libc::pid_t, size: usize, set: *const u8) -> c_int {
        // SAFETY: the program promises libc memory as large as it says.
        let set = unsafe { Affinity::read(size, set) };
        result(set.and_then(|set| by_id(id).map(|index| set_affinity(index, set))))
    }

    fn pthread_getaffinity_np @ c"GLIBC_2.3.4"(handle: libc::pthread_t, size: usize, set: *mut u8) -> c_int {
        // SAFETY: the program promises libc memory as large as it says.
        by_handle(handle).and_then(|index| unsafe { affinity(index).write(size, set) }).err().unwrap_or(0)
    }

    fn pthread_setaffinity_np @ c"GLIBC_2.3.4"(handle: libc::pthread_t, size: usize, set: *const u8) -> c_int {
        // SAFETY: the program promises libc memory as large as it says.
        let set = unsafe { Affinity::read(size, set) };
        set.and_then(|set| by_handle(handle).map(|index| set_affinity(index, set))).err().unwrap_or(0)
    }

    fn sysconf(name: c_int) -> c_long, calling ask {
        match name {
            libc::_SC_NPROCESSORS_ONLN | libc::_SC_NPROCESSORS_CONF => c_long::from(COUNT),
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            _ => unsafe { ask(name) },
        }
    }

    fn get_nprocs | get_nprocs_conf() -> c_int {
        COUNT as c_int
    }
}

/// A path that leads to the process's share of the processors. To the program there is no such file, as on a system
/// without control groups.
pub fn is_limit(path: &CStr) -> bool {
    path.to_bytes() == b"/proc/self/cgroup"
}

/// Refuses to open it.
pub fn no_limit() -> c_int {
    result(Err(libc::ENOENT))
}
