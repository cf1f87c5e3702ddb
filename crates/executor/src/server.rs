//! The process that serves a worker: the program, stopped before its first thread, below its keeper.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};
use rustix::process::{Resource, getrlimit};
use threadbare_wire as wire;

use crate::keeper::{self, Kept};
use crate::memory::Memory;
use crate::worker::Target;

/// How often whoever waits for the server looks at limits.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A running server. All of its processes end with this value.
pub struct Server {
    /// Ends as the server does.
    keeper: Kept,
    socket: OwnedFd,
}

impl Server {
    /// Starts the program with the runtime library in `directory`.
    pub fn start(target: &Target, directory: &Path, memory: &Memory, output: &File) -> io::Result<Server> {
        let (socket, theirs) = socket_pair()?;
        let keeper = Kept::start(command(target, directory, memory, output, &theirs)?)?;
        Ok(Server { keeper, socket })
    }

    /// Waits for the server to end. Returns its wait status.
    pub fn wait(&mut self) -> io::Result<i32> {
        Ok(self.keeper.wait()?.into_raw())
    }

    pub fn send(&self, bytes: &[u8]) -> bool {
        send(&self.socket, bytes, SendFlags::NOSIGNAL).is_ok_and(|sent| sent == bytes.len())
    }

    /// Receives a message. Returns its length, 0 if the server is gone, `None` if none came within a tick.
    pub fn receive(&self, bytes: &mut [u8]) -> Option<usize> {
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&TICK)) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(recv(&self.socket, bytes, RecvFlags::empty()).map_or(0, |(got, _)| got)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that waits for a plan ends by itself, and the keeper sees to the rest. If this fails, it has ended.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// Fails if the user's resource limits are too low. A run would then end with an obscure error or by a signal.
pub fn check_limits() -> io::Result<()> {
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    if limit(Resource::Nofile) <= wire::SOCKET_FD as u64 {
        return Err(io::Error::other("the limit on open files is too low (raise it with ulimit -n 256)"));
    }
    if limit(Resource::Fsize) < wire::FILE_BYTES {
        let why = "the limit on file sizes is too low, also for files in memory (raise it with ulimit -f unlimited)";
        return Err(io::Error::other(why));
    }
    Ok(())
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn command(
    target: &Target,
    directory: &Path,
    memory: &Memory,
    output: &File,
    socket: &OwnedFd,
) -> io::Result<Command> {
    // Opened anew for appending, so that emptying the file takes every writer back to its start.
    let appending = || File::options().append(true).open(format!("/proc/self/fd/{}", output.as_raw_fd()));
    let mut command = target.command()?;
    command
        .env(wire::ENVIRONMENT, wire::VERSION.to_string())
        .env("LD_LIBRARY_PATH", before(directory.as_os_str(), "LD_LIBRARY_PATH"))
        // Found as `libtsan.so.2` it would do, but for programs that were linked in an unusual order.
        .env("LD_PRELOAD", before(directory.join("libtsan.so.2").as_os_str(), "LD_PRELOAD"))
        .env(wire::PRELOAD, std::env::var_os("LD_PRELOAD").unwrap_or_default())
        .stdout(appending()?)
        .stderr(appending()?);
    keeper::keep(&mut command)?;
    let server_pid = std::ptr::from_ref(&memory.control().server_pid) as usize;
    let (memory, socket) = (memory.file().as_raw_fd(), socket.as_raw_fd());
    // SAFETY: between fork and exec, only system calls and a store to the shared memory. That is mapped here as in the
    // tool, which keeps it mapped until the program has started.
    unsafe {
        command.pre_exec(move || {
            const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
            let server_pid = &*(server_pid as *const std::sync::atomic::AtomicU32);
            server_pid.store(libc::getpid() as u32, Ordering::Release);
            libc::personality(ADDR_NO_RANDOMIZE);
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &no_core);
            // First out of the way of each other's numbers, which they may happen to have.
            let memory = libc::fcntl(memory, libc::F_DUPFD_CLOEXEC, wire::SOCKET_FD + 1);
            let socket = libc::fcntl(socket, libc::F_DUPFD_CLOEXEC, wire::SOCKET_FD + 1);
            if libc::dup2(memory, wire::MEMORY_FD) < 0 || libc::dup2(socket, wire::SOCKET_FD) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    Ok(command)
}

/// `ours` before the user's own entries of this list.
pub fn before(ours: &OsStr, variable: &str) -> OsString {
    let mut list = ours.to_owned();
    if let Some(users) = std::env::var_os(variable).filter(|users| !users.is_empty()) {
        list.push(":");
        list.push(users);
    }
    list
}
