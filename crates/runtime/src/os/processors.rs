//! How many processors there are, as the program sees it: the same number on every machine, because programs start as
//! many threads, and a clip is to be replayed elsewhere.

use std::ffi::{CStr, c_char, c_int, c_long};

use crate::active;
use crate::entry::real::real;
use crate::os::{identity, system};
use crate::schedule::scheduler;
use crate::schedule::scheduler::Thread;
use crate::sync::threads;

/// Enough for programs that do without threads on fewer.
const COUNT: u32 = 4;

/// The processors that a thread may run on, a bit each.
#[derive(Clone, Copy)]
pub struct Affinity(u64);

impl Affinity {
    pub const ALL: Affinity = Affinity((1 << COUNT) - 1);

    /// Writes the set to the program's memory, of which it has `size` bytes.
    fn write(self, size: usize, set: *mut u8) -> Result<(), c_int> {
        if size < size_of::<u64>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the program's memory, as large as it says.
        unsafe {
            set.write_bytes(0, size);
            set.cast::<u64>().write_unaligned(self.0);
        }
        Ok(())
    }

    /// The processors in the program's set that there are: one, at least.
    fn read(size: usize, set: *const u8) -> Result<Affinity, c_int> {
        let mut bits = [0; size_of::<u64>()];
        // SAFETY: the program's memory, as large as it says.
        unsafe { std::ptr::copy_nonoverlapping(set, bits.as_mut_ptr(), size.min(bits.len())) };
        match u64::from_ne_bytes(bits) & Affinity::ALL.0 {
            0 => Err(libc::EINVAL),
            bits => Ok(Affinity(bits)),
        }
    }
}

/// What a thread that the running one creates begins with.
pub fn inherited() -> Affinity {
    let sched = scheduler::get();
    sched.threads[sched.current].affinity
}

/// The thread that a system call means; 0 is the running one.
fn by_id(id: libc::pid_t) -> Result<&'static mut Thread, c_int> {
    let sched = scheduler::get();
    let index = if id == 0 { Ok(sched.current) } else { usize::try_from(id - identity::process_id()) };
    index.ok().and_then(|index| sched.threads.get_mut(index)).ok_or(libc::ESRCH)
}

fn by_handle(handle: libc::pthread_t) -> Result<&'static mut Thread, c_int> {
    threads::find(handle).map(|index| &mut scheduler::get().threads[index]).ok_or(libc::ESRCH)
}

/// As system calls say it.
fn result(done: Result<(), c_int>) -> c_int {
    done.map_or_else(system::fail, |()| 0)
}

#[unsafe(no_mangle)]
extern "C" fn sched_getaffinity(id: libc::pid_t, size: usize, set: *mut u8) -> c_int {
    if !active() {
        return real!(sched_getaffinity @ c"GLIBC_2.3.4" (
            id => libc::pid_t, size => usize, set => *mut u8
        ) -> c_int);
    }
    result(by_id(id).and_then(|thread| thread.affinity.write(size, set)))
}

#[unsafe(no_mangle)]
extern "C" fn sched_setaffinity(id: libc::pid_t, size: usize, set: *const u8) -> c_int {
    if !active() {
        return real!(sched_setaffinity @ c"GLIBC_2.3.4" (
            id => libc::pid_t, size => usize, set => *const u8
        ) -> c_int);
    }
    let set = Affinity::read(size, set);
    result(set.and_then(|set| by_id(id).map(|thread| thread.affinity = set)))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_getaffinity_np(handle: libc::pthread_t, size: usize, set: *mut u8) -> c_int {
    if !active() {
        return real!(pthread_getaffinity_np @ c"GLIBC_2.3.4" (
            handle => libc::pthread_t, size => usize, set => *mut u8
        ) -> c_int);
    }
    by_handle(handle).and_then(|thread| thread.affinity.write(size, set)).err().unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_setaffinity_np(handle: libc::pthread_t, size: usize, set: *const u8) -> c_int {
    if !active() {
        return real!(pthread_setaffinity_np @ c"GLIBC_2.3.4" (
            handle => libc::pthread_t, size => usize, set => *const u8
        ) -> c_int);
    }
    let set = Affinity::read(size, set);
    set.and_then(|set| by_handle(handle).map(|thread| thread.affinity = set)).err().unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_NPROCESSORS_ONLN | libc::_SC_NPROCESSORS_CONF if active() => c_long::from(COUNT),
        _ => real!(sysconf(name => c_int) -> c_long),
    }
}

#[unsafe(no_mangle)]
extern "C" fn get_nprocs() -> c_int {
    if active() { COUNT as c_int } else { real!(get_nprocs() -> c_int) }
}

#[unsafe(no_mangle)]
extern "C" fn get_nprocs_conf() -> c_int {
    if active() { COUNT as c_int } else { real!(get_nprocs_conf() -> c_int) }
}

/// A path that leads to what the machine lets the process have of its processors: there is no such file, as on a
/// system without control groups.
pub fn is_limit(path: *const c_char) -> bool {
    // SAFETY: the program's string; one that cannot be read would fail in `open` too.
    let path = if path.is_null() { return false } else { unsafe { CStr::from_ptr(path) } };
    active() && path.to_bytes() == b"/proc/self/cgroup"
}

/// Refuses to open it.
pub fn no_limit() -> c_int {
    result(Err(libc::ENOENT))
}
