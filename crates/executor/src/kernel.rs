//! What the kernel and the user's limits must allow, for a self-test.

use std::io;

use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};
use threadbare_wire as wire;

use crate::memory::{Memory, anonymous_file};
use crate::server::check_limits;

/// Something that a run needs, and whether it is there.
pub struct Requirement {
    /// In words.
    pub what: &'static str,
    pub result: io::Result<()>,
    /// What to do if it is not there.
    pub advice: &'static str,
}

/// Everything that a run needs of the machine, tried one by one.
pub fn requirements() -> Vec<Requirement> {
    let requirement = |what, result, advice| Requirement { what, result, advice };
    vec![
        requirement(
            "address space layout can be fixed (personality ADDR_NO_RANDOMIZE)",
            fix_layout(),
            "a container may forbid it: with docker, --security-opt seccomp=unconfined",
        ),
        requirement(
            "files in memory (memfd_create)",
            anonymous_file(c"doctor").map(drop),
            "use Linux 5.3 or later",
        ),
        requirement(
            "processes by descriptor (pidfd_open)",
            pidfd_open(getpid(), PidfdFlags::empty()).map(drop).map_err(io::Error::from),
            "use Linux 5.3 or later",
        ),
        requirement("limits on files (ulimit -n, -f)", check_limits(), "raise the limit that is named"),
        requirement("address space (ulimit -v)", check_address_space(), "ulimit -v unlimited"),
        requirement(
            "shared memory for the log of a run",
            Memory::create().map(drop),
            "free some memory, or set vm.overcommit_memory to 0 or 1",
        ),
        requirement("processes (ulimit -u)", check_processes(), "ulimit -u 1024"),
    ]
}

/// Sets it as a run does, and sets it back.
fn fix_layout() -> io::Result<()> {
    const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: it decides how programs are laid out that this process executes, and is set back at once.
    let result = unsafe {
        let before = libc::personality(QUERY);
        let result = libc::personality(ADDR_NO_RANDOMIZE | before as libc::c_ulong);
        libc::personality(before as libc::c_ulong);
        result
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check_address_space() -> io::Result<()> {
    // The log, and as much again for the program.
    let needed = 2 * wire::FILE_BYTES;
    match getrlimit(Resource::As).current {
        Some(limit) if limit < needed => {
            Err(io::Error::other(format!("{} MiB, and a run needs {} MiB", limit >> 20, needed >> 20)))
        }
        _ => Ok(()),
    }
}

fn check_processes() -> io::Result<()> {
    match getrlimit(Resource::Nproc).current {
        Some(limit @ ..256) => Err(io::Error::other(format!("{limit} processes and threads are few"))),
        _ => Ok(()),
    }
}
