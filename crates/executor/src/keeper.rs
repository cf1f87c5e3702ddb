//! Processes that end with the tool, whatever becomes of it.
//!
//! Between the tool and a command that it starts stands a *keeper*: a process that does nothing but wait. Whoever loses
//! its parent below the keeper becomes the keeper's child, also a daemon that has forked twice and has a session of its
//! own. When the command ends, when the tool ends, be it by SIGKILL, or when the tool asks for it by SIGTERM, the keeper
//! kills all its children until there are none, and ends as the command did.
//!
//! `PR_SET_PDEATHSIG` alone is not enough: it reaches children, not their children. A process group or a session is not
//! enough: anybody may leave it. A pid namespace would be, but needs privileges or a user namespace, in which the program
//! is somebody else.
//!
//! The keeper is a copy of the tool that never execs, because there is no other program that is surely there. It shares
//! the tool's memory as it was when the command started.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use libc::{c_int, pid_t};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};

/// How long the command has to clear up when its children were killed.
const GRACE: Duration = Duration::from_millis(300);

/// Starts `command` below a keeper. The process that `spawn` returns is the keeper, which ends as the command does.
/// Both have process groups of their own.
pub fn keep(command: &mut Command) -> io::Result<()> {
    let tool = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: between fork and exec, only system calls.
    unsafe { command.pre_exec(move || fork_below_keeper(tool.as_raw_fd())) };
    Ok(())
}

/// A running command below its keeper. All of its processes end with this value.
pub struct Kept(Child);

impl Kept {
    /// Starts a command that is to [be kept](keep).
    pub fn start(mut command: Command) -> io::Result<Kept> {
        Ok(Kept(command.spawn()?))
    }

    /// The keeper, above all that the command is.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // None of this can fail in a way that could be acted on: the processes are dead then.
        if let Some(keeper) = Pid::from_raw(self.0.id() as i32)
            && matches!(self.0.try_wait(), Ok(None))
        {
            let _ = kill_process(keeper, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Returns in the process that is to be the command; the present one is its keeper.
fn fork_below_keeper(tool: c_int) -> io::Result<()> {
    // SAFETY: plain system calls on numbers; `fork` makes a process with one thread, which is this one.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        let keeper = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::setpgid(0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != keeper {
                    libc::_exit(1);
                }
                Ok(())
            }
            command => watch(command, tool),
        }
    }
}

/// The keeper's life. It is a copy of one thread of a process with several, so it may only make system calls.
fn watch(command: pid_t, tool: c_int) -> ! {
    /// The keeper has no other descriptors: what it kept open, others would wait for.
    const TOOL: c_int = 0;
    const SIGNALS: c_int = 1;
    // SAFETY: plain system calls on numbers and on places of our own.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"threadbare-keep".as_ptr());
        let mut signals = std::mem::zeroed();
        libc::sigfillset(&mut signals);
        libc::sigprocmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut());
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGCHLD);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        let signals = libc::signalfd(-1, &signals, libc::SFD_NONBLOCK);
        // Out of the way first: it may have the number that the other is to get.
        let signals = libc::fcntl(signals, libc::F_DUPFD, SIGNALS + 1);
        libc::dup2(tool, TOOL);
        libc::dup2(signals, SIGNALS);
        libc::syscall(libc::SYS_close_range, SIGNALS + 1, c_int::MAX, 0);
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut entries = [entry(TOOL), entry(SIGNALS)];
        loop {
            if let Some(status) = reap(command) {
                end_children();
                end_as(status);
            }
            // A signal that came before the descriptor was there is noticed after this time.
            libc::poll(entries.as_mut_ptr(), 2, 1000);
            let mut signal: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of_val(&signal);
            let got = libc::read(SIGNALS, (&raw mut signal).cast(), size);
            if entries[0].revents != 0 || got == size as isize && signal.ssi_signo == libc::SIGTERM as u32 {
                end(command);
            }
        }
    }
}

/// Ends the command and all that it has started. A command whose children are killed may clear up by itself: a fork
/// server removes the temporary files of its run, a compiler its own.
fn end(command: pid_t) -> ! {
    for_each_child(command, kill);
    for _ in 0..GRACE.as_millis() {
        if let Some(status) = reap(command) {
            end_children();
            end_as(status);
        }
        pause();
    }
    end_children();
    // SAFETY: takes a number.
    unsafe { libc::_exit(1) }
}

/// Forgets the children that have ended. Returns the status of `command` if it is one of them.
fn reap(command: pid_t) -> Option<c_int> {
    let mut of_command = None;
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a place of our own.
        match unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) } {
            ..=0 => return of_command,
            child if child == command => of_command = Some(status),
            _ => {}
        }
    }
}

/// Kills all children. Each leaves its own to the keeper, so this goes on until there are none.
fn end_children() {
    // SAFETY: plain system calls on numbers. No place is given for a status.
    unsafe {
        loop {
            for_each_child(libc::getpid(), kill);
            while libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) > 0 {}
            if libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) < 0 {
                return;
            }
            pause();
        }
    }
}

/// Ends this process as another has ended.
fn end_as(status: c_int) -> ! {
    // SAFETY: plain system calls on numbers and on places of our own.
    unsafe {
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &no_core);
            libc::signal(signal, libc::SIG_DFL);
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::kill(libc::getpid(), signal);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        }
        libc::_exit(libc::WEXITSTATUS(status))
    }
}

fn kill(process: pid_t) {
    // SAFETY: takes numbers. A child that has ended keeps its number until it is waited for.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// A millisecond.
fn pause() {
    // SAFETY: no descriptors are given.
    unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
}

/// Calls `each` with the children of the first thread of `process`, as many as are listed at once.
fn for_each_child(process: pid_t, mut each: impl FnMut(pid_t)) {
    let mut path = [0u8; 64];
    let mut rest = &mut path[..];
    // Both numbers fit, and writing to a slice makes no memory.
    let _ = io::Write::write_fmt(&mut rest, format_args!("/proc/{process}/task/{process}/children\0"));
    let mut text = [0u8; 8192];
    // SAFETY: the path ends in a zero; the kernel writes to the text alone.
    let length = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    let mut number = 0;
    for &byte in &text[..length] {
        match byte {
            b'0'..=b'9' => number = number * 10 + pid_t::from(byte - b'0'),
            // Every number is followed by a space, also the last. One that was cut off is not used.
            _ if number > 0 => each(std::mem::take(&mut number)),
            _ => {}
        }
    }
}
