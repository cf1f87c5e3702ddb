//! A worker: one fork server and its runs.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, getrlimit, kill_process_group, pidfd_open, pidfd_send_signal,
};
use thiserror::Error;
use threadbare_program::{Instrumentation, Program, ProgramError};
use threadbare_trace::{End, FailureKind, Influence, Plan};
use threadbare_wire::{self as wire, Code, message};

use crate::ending::{self, RunEnd};
use crate::input::Input;
use crate::library::{self, InstallError};
use crate::memory::{Memory, anonymous_file, punch_hole};
use crate::plain::PlainRun;
use crate::run::Run;
use crate::snapshots::{Keep, Snapshots};

/// The tested program, and how it is started.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub input: Input,
    /// The directory it runs in; the tool's own if `None`.
    pub directory: Option<PathBuf>,
    /// Environment variables, added to those of the tool.
    pub environment: Vec<(OsString, OsString)>,
    /// Added to its process id. Programs name files by it, so programs that run at the same time need different ones.
    pub pid_offset: u32,
}

/// The limits of a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The wall-clock time of one run, and of the start up to the first thread.
    pub time: Duration,
    /// Resident memory of one run, in bytes.
    pub memory: u64,
    /// Set from outside to stop at once.
    pub cancelled: Arc<AtomicBool>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(10), memory: 4 << 30, cancelled: Arc::default() }
    }
}

/// The program could not be brought to its first thread.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{} was not built with -fsanitize=thread", .0.display())]
    NotInstrumented(PathBuf),
    #[error("{} has no symbols, so it cannot be told how it was built", .0.display())]
    NoSymbols(PathBuf),
    #[error("{} carries ThreadSanitizer's own runtime inside (clang links it statically)", .0.display())]
    StaticRuntime(PathBuf),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("cannot start {}: {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("{} ended without starting a thread", .0.display())]
    NoThread(PathBuf),
    /// `plain` is what it did without our scheduling, if that could be tried.
    #[error("{} failed before it started a thread: {what}", program.display())]
    FailedEarly {
        program: PathBuf,
        kind: Option<FailureKind>,
        what: String,
        output: String,
        plain: Option<Box<PlainRun>>,
    },
    #[error("{} started no thread within {} seconds", program.display(), limit.as_secs())]
    TooSlow { program: PathBuf, limit: Duration },
    #[error("interrupted")]
    Cancelled,
}

impl StartError {
    /// The program came to its end without a thread, cleanly or by something that it did wrong. An exit code alone says
    /// nothing of the kind: it may mean that an argument is missing.
    fn is_without_threads(&self) -> bool {
        match self {
            StartError::NoThread(_) => true,
            StartError::FailedEarly { kind: Some(kind), .. } => !matches!(kind, FailureKind::ExitCode(_)),
            _ => false,
        }
    }
}

/// Where a server stands, from which every run starts.
#[derive(Clone, Copy)]
enum ServerAt {
    FirstThread,
    Main,
}

/// A run could not be made at all.
#[derive(Debug, Error)]
pub enum RunError {
    #[error("the tested program's server ended unexpectedly")]
    ServerDied,
    #[error("the plan is too large")]
    PlanTooLarge,
    #[error("interrupted")]
    Cancelled,
}

/// A copy of the program that stands before its first thread and runs plans from there. If the program starts no
/// thread, the copy stands before `main`, and there is one run to make.
///
/// The kernel ties its life to the OS thread that started it: keep a worker on the thread that made it.
pub struct Worker {
    server: Child,
    socket: OwnedFd,
    memory: Memory,
    output: File,
    /// The bytes that the program printed before its first thread. They are part of the output of every run.
    printed: u64,
    /// The run's output after that is dropped up to this byte.
    dropped: u64,
    program: Program,
    target: Target,
    limits: Limits,
    snapshots: Snapshots,
}

/// Asks a run to say where it is and to end.
const STOP: Signal = Signal::XCPU;
const _: () = assert!(STOP.as_raw() == wire::STOP_SIGNAL);
/// How often a waiting worker looks at limits.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a run that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(1);

impl Worker {
    pub fn start(target: &Target, limits: &Limits) -> Result<Worker, StartError> {
        match Worker::start_at(ServerAt::FirstThread, target, limits) {
            Err(error) if error.is_without_threads() => Worker::start_at(ServerAt::Main, target, limits),
            worker => worker,
        }
    }

    fn start_at(at: ServerAt, target: &Target, limits: &Limits) -> Result<Worker, StartError> {
        let program = Program::open(&target.program)?;
        check_instrumentation(&program, &target.program)?;
        let directory = library::install()?;
        let spawn_error = |source| StartError::Spawn { program: target.program.clone(), source };
        check_limits().map_err(spawn_error)?;
        let memory = Memory::create().map_err(spawn_error)?;
        memory.write_code(&library_code(&program));
        memory.control().pid_offset.store(target.pid_offset, Ordering::Relaxed);
        memory.control().from_main.store(u32::from(matches!(at, ServerAt::Main)), Ordering::Relaxed);
        let output = anonymous_file(c"output").map_err(spawn_error)?;
        let (socket, theirs) = socket_pair().map_err(spawn_error)?;
        let server = command(target, &directory, &memory, &output, &theirs)
            .and_then(|mut command| command.spawn())
            .map_err(spawn_error)?;
        drop(theirs);
        let mut worker = Worker {
            server,
            socket,
            memory,
            output,
            printed: 0,
            dropped: 0,
            program,
            target: target.clone(),
            limits: limits.clone(),
            snapshots: Snapshots::default(),
        };
        worker.wait_until_ready()?;
        worker.printed = worker.output.metadata().map_or(0, |output| output.len());
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", worker.server.id())).unwrap_or_default();
        worker.program = Program::from_maps(&target.program, &maps)?;
        Ok(worker)
    }

    /// What the last run was seen to depend on besides its plan.
    pub fn influences(&self) -> impl Iterator<Item = Influence> {
        Influence::in_set(self.memory.control().influences.load(Ordering::Relaxed))
    }

    /// The program as it is loaded.
    pub fn program(&self) -> &Program {
        &self.program
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Gives back the memory of the last run, for a worker that may have nothing to do for a while.
    pub fn rest(&mut self) {
        self.memory.trim();
    }

    /// Changes how long a run may take from now on.
    pub fn set_time_limit(&mut self, time: Duration) {
        self.limits.time = time;
    }

    /// From now on keeps snapshots of runs, and starts a plan from one that began with the same turns. With `None` it
    /// takes no new ones. Only the time of runs changes. That is worth while if many plans share long beginnings.
    pub fn keep_snapshots(&mut self, keep: Option<Keep>) {
        self.snapshots.keep(keep);
    }

    fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let start = Instant::now();
        loop {
            if self.limits.cancelled.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            let mut bytes = [0];
            match self.receive(&mut bytes) {
                Some(1) if bytes[0] == message::READY => return Ok(()),
                Some(_) => return Err(self.why_not_ready()),
                None if start.elapsed() >= self.limits.time => {
                    let program = self.target.program.clone();
                    return Err(StartError::TooSlow { program, limit: self.limits.time });
                }
                None => self.trim_output(),
            }
        }
    }

    /// Says why the program ended before its first thread.
    fn why_not_ready(&mut self) -> StartError {
        let program = self.target.program.clone();
        let status = match self.server.wait() {
            Ok(status) => status.into_raw(),
            Err(source) => return StartError::Spawn { program, source },
        };
        let ended = ending::of(&self.memory, status);
        if ended == End::Finished {
            return StartError::NoThread(program);
        }
        let kind = ended.failure_kind();
        let what = match ended {
            End::Failed(failure) => match failure.at.pc {
                0 => failure.to_string(),
                pc => format!("{failure} at {}", self.program.location(pc)),
            },
            End::Unsupported { message, .. } => message,
            other => other.to_string(),
        };
        StartError::FailedEarly {
            program,
            kind,
            what,
            output: String::from_utf8_lossy(&self.output(4096)).into_owned(),
            plain: PlainRun::make(&self.target, &self.limits).map(Box::new),
        }
    }

    /// Runs the program under `plan`.
    pub fn run(&mut self, plan: &Plan) -> Result<Run<'_>, RunError> {
        self.memory.trim();
        if !self.memory.write_plan(&wire::encode_plan(plan)) {
            return Err(RunError::PlanTooLarge);
        }
        self.dropped = self.printed;
        let start = Instant::now();
        let mut snapshot = self.snapshots.restore(plan, &mut self.memory, &self.output);
        self.snapshots.ask(plan, snapshot, &self.memory);
        let mut ended = match snapshot {
            Some(slot) => self.request(&[message::RESUME, slot as u8])?,
            None => None,
        };
        if ended.is_none() {
            self.snapshots.forget(snapshot.take());
            // Appending writes then begin there again.
            self.output.set_len(self.printed).map_err(|_| RunError::ServerDied)?;
            ended = self.request(&[message::RUN])?;
        }
        let ended = ended.ok_or(RunError::ServerDied)?;
        self.snapshots.collect(plan, snapshot, start.elapsed(), &self.memory, &self.output);
        let threads = self.memory.pending().len() as u32;
        self.memory.control().contexts.fetch_max(threads, Ordering::Relaxed);
        Ok(Run { worker: self, ended })
    }

    /// Asks for a run, and waits for its end; `None` if the snapshot it was to come from is gone.
    fn request(&mut self, bytes: &[u8]) -> Result<Option<RunEnd>, RunError> {
        if !self.send(bytes) {
            return Err(RunError::ServerDied);
        }
        let start = Instant::now();
        let mut stopped = None;
        loop {
            let mut bytes = [0; 5];
            match self.receive(&mut bytes) {
                Some(5) if bytes[0] == message::DONE => {
                    self.trim_output();
                    let status = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                    let ended = self.explained(ending::of(&self.memory, status));
                    // A run that came to its own end just before it was stopped is taken at its word.
                    let killed = ended.failure_kind() == Some(FailureKind::Signal(libc::SIGKILL));
                    return Ok(Some(stopped.filter(|_| killed).unwrap_or(ended)));
                }
                Some(1) if bytes[0] == message::LOST => return Ok(None),
                Some(_) => return Err(RunError::ServerDied),
                None if self.limits.cancelled.load(Ordering::Relaxed) => return Err(RunError::Cancelled),
                // Asked to say where it is; made to end if it does not.
                None if start.elapsed() >= self.limits.time + GRACE => self.signal_run(Signal::KILL),
                None if start.elapsed() >= self.limits.time => {
                    stopped.get_or_insert(End::TimeLimit { at: None });
                    self.signal_run(STOP);
                }
                None if self.resident() > self.limits.memory => {
                    stopped = Some(End::MemoryLimit);
                    self.signal_run(Signal::KILL);
                }
                None => self.trim_output(),
            }
        }
    }

    /// Adds the words of Rust's test harness, if nothing but its exit code is known.
    fn explained(&self, mut ended: RunEnd) -> RunEnd {
        /// The exit code of Rust's test harness when a test has failed.
        const HARNESS: FailureKind = FailureKind::ExitCode(101);
        if let End::Failed(failure) = &mut ended
            && failure.kind == HARNESS
            && failure.message.is_empty()
        {
            let output = self.output(1 << 16);
            let output = String::from_utf8_lossy(&output);
            failure.message = ending::harness_words(&output).unwrap_or_default().to_owned();
        }
        ended
    }

    /// The memory of the present run, in bytes.
    fn resident(&self) -> u64 {
        resident(self.memory.control().run_pid.load(Ordering::Acquire))
    }

    fn signal_run(&self, signal: Signal) {
        let run_pid = || self.memory.control().run_pid.load(Ordering::Acquire);
        let pid = run_pid();
        let process = Pid::from_raw(pid as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        // The descriptor pins the process. If the run is still the same one after it was opened, it is that run that
        // gets the signal. A run that has ended by then needs none.
        if let Some(Ok(process)) = process
            && run_pid() == pid
        {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    fn send(&self, bytes: &[u8]) -> bool {
        send(&self.socket, bytes, SendFlags::NOSIGNAL).is_ok_and(|sent| sent == bytes.len())
    }

    /// Receives a message from the server. Returns its length, 0 if the server is gone, `None` if none came within a tick.
    fn receive(&self, bytes: &mut [u8]) -> Option<usize> {
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&TICK)) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(recv(&self.socket, bytes, RecvFlags::empty()).map_or(0, |(got, _)| got)),
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Drops the older output of a run that prints without end.
    fn trim_output(&mut self) {
        const KEPT: u64 = 64 << 20;
        let length = self.output.metadata().map_or(0, |output| output.len());
        if length < self.dropped + 2 * KEPT {
            return;
        }
        if punch_hole(&self.output, self.dropped, length - KEPT - self.dropped).is_ok() {
            self.dropped = length - KEPT;
        }
    }

    /// The end of what the last run printed, at most `max_bytes` of it.
    pub(crate) fn output(&self, max_bytes: u64) -> Vec<u8> {
        let mut file = &self.output;
        let mut bytes = Vec::new();
        // What was printed before the first thread is still there, but what should follow it is not.
        let first = if self.dropped > self.printed { self.dropped } else { 0 };
        let read = file
            .seek(SeekFrom::End(0))
            .and_then(|length| file.seek(SeekFrom::Start(length.saturating_sub(max_bytes).max(first))))
            .and_then(|_| file.take(max_bytes).read_to_end(&mut bytes));
        // Half of it would be misleading.
        if read.is_ok() { bytes } else { Vec::new() }
    }
}

impl Worker {
    /// Kills a run that has not ended, and waits until the server has killed its child processes.
    fn end_run(&self) {
        if self.memory.control().run_pid.load(Ordering::Acquire) == 0 {
            return;
        }
        self.signal_run(Signal::KILL);
        let start = Instant::now();
        while self.receive(&mut [0; 5]).is_none() && start.elapsed() < GRACE {}
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end_run();
        if let Some(group) = Pid::from_raw(self.server.id() as i32) {
            // A group without processes needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Cannot fail in a way that could be acted on: the process is dead or was reaped before.
        let _ = self.server.wait();
    }
}

fn check_instrumentation(program: &Program, path: &Path) -> Result<(), StartError> {
    match program.instrumentation() {
        Instrumentation::None => Err(StartError::NotInstrumented(path.to_owned())),
        Instrumentation::Unknown => Err(StartError::NoSymbols(path.to_owned())),
        Instrumentation::Static => Err(StartError::StaticRuntime(path.to_owned())),
        Instrumentation::Dynamic { .. } => Ok(()),
    }
}

/// Fails if the user's resource limits are too low. A run would then end with an obscure error or by a signal.
pub(crate) fn check_limits() -> io::Result<()> {
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

/// The functions of Rust's standard library in the program, by address. They do not overlap.
fn library_code(program: &Program) -> Vec<Code> {
    let mut table: Vec<Code> = Vec::new();
    for (range, class) in program.library_code() {
        let start = table.last().map_or(0, |last| last.end).max(range.start);
        if start < range.end {
            table.push(Code { start, end: range.end, class: class as u64 });
        }
    }
    table
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
    let (memory, socket) = (memory.file().as_raw_fd(), socket.as_raw_fd());
    // SAFETY: between fork and exec, only system calls.
    unsafe {
        command.pre_exec(move || {
            const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
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

/// The memory of a process, in bytes; 0 if there is no such process.
pub(crate) fn resident(pid: u32) -> u64 {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm"))
        .ok()
        .and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * 4096
}

/// `ours` before the user's own entries of this list.
pub(crate) fn before(ours: &OsStr, variable: &str) -> OsString {
    let mut list = ours.to_owned();
    if let Some(users) = std::env::var_os(variable).filter(|users| !users.is_empty()) {
        list.push(":");
        list.push(users);
    }
    list
}
