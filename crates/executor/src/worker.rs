//! A worker: one fork server and its runs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use thiserror::Error;
use threadbare_program::{Instrumentation, Program, ProgramError, keep_graphs_in};
use threadbare_trace::{DistanceTable, End, FailureKind, Guidance, Influence, Plan, Policy, Preference};
use threadbare_wire::{self as wire, Code, message};

use crate::cache::cache;
use crate::ending::{self, RunEnd, Stop};
use crate::input::Input;
use crate::library::{self, InstallError};
use crate::limits::Limits;
use crate::memory::{Memory, anonymous_file, punch_hole};
use crate::plain::PlainRun;
use crate::processes;
use crate::run::Run;
use crate::server::{Server, check_limits};
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
    #[error("{} used more than {} MiB of memory before it started a thread", program.display(), limit >> 20)]
    TooMuchMemory { program: PathBuf, limit: u64 },
    #[error(
        "{} became {new}, which {}, before it started a thread",
        program.display(),
        if *is_instrumented { "started none" } else { "was not built with -fsanitize=thread" }
    )]
    Became { program: PathBuf, new: String, is_instrumented: bool },
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
    #[error("the time for runs is over")]
    Late,
}

/// A copy of the program that stands before its first thread and runs plans from there. If the program starts no
/// thread, the copy stands before `main`, and there is one run to make.
pub struct Worker {
    server: Server,
    memory: Memory,
    output: File,
    /// The bytes that the program printed before its first thread. They are part of the output of every run.
    printed: u64,
    /// The run's output after that is dropped up to this byte.
    dropped: u64,
    program: Arc<Program>,
    target: Target,
    limits: Limits,
    snapshots: Snapshots,
    /// The tables of distances that are in place.
    tables: Option<Arc<[DistanceTable]>>,
}

/// Asks a run to say where it is and to end.
const STOP: Signal = Signal::XCPU;
const _: () = assert!(STOP.as_raw() == wire::STOP_SIGNAL);
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
        if let Ok(cache) = cache() {
            keep_graphs_in(&cache.join("graphs"));
        }
        let spawn_error = |source| StartError::Spawn { program: target.program.clone(), source };
        // Before the shared file is made: it is larger than a limit may allow, and that is a signal.
        check_limits().map_err(spawn_error)?;
        let memory = Memory::create().map_err(spawn_error)?;
        memory.write_code(&library_code(&program));
        memory.control().pid_offset.store(target.pid_offset, Ordering::Relaxed);
        memory.control().from_main.store(u32::from(matches!(at, ServerAt::Main)), Ordering::Relaxed);
        let output = anonymous_file(c"output").map_err(spawn_error)?;
        let server = Server::start(target, &directory, &memory, &output).map_err(spawn_error)?;
        let mut worker = Worker {
            server,
            memory,
            output,
            printed: 0,
            dropped: 0,
            program: Arc::new(program),
            target: target.clone(),
            limits: limits.clone(),
            snapshots: Snapshots::default(),
            tables: None,
        };
        worker.wait_until_ready()?;
        worker.printed = worker.output.metadata().map_or(0, |output| output.len());
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", worker.server_pid())).unwrap_or_default();
        worker.program = Arc::new(match worker.became() {
            // Names and code are those of the program that it is now.
            Some(_) => worker.open_new(&maps)?,
            None => Program::from_maps(&target.program, &maps)?,
        });
        Ok(worker)
    }

    /// The program that it became by `exec` before its first thread.
    fn became(&self) -> Option<String> {
        match self.memory.control().end.get() {
            Some(End::Exec { program, .. }) => Some(program),
            _ => None,
        }
    }

    fn open_new(&self, maps: &str) -> Result<Program, StartError> {
        let link = format!("/proc/{}/exe", self.server_pid());
        let path = std::fs::read_link(&link).unwrap_or_else(|_| self.target.program.clone());
        let program = Program::from_maps(&path, maps)?;
        if program.instrumentation() == Instrumentation::None {
            return Err(self.became_another(path.to_string_lossy().into_owned()));
        }
        self.memory.write_code(&library_code(&program));
        Ok(program)
    }

    fn became_another(&self, new: String) -> StartError {
        let opened = Program::open(Path::new(&new));
        let is_instrumented = opened.is_ok_and(|program| program.instrumentation() != Instrumentation::None);
        StartError::Became { program: self.target.program.clone(), new, is_instrumented }
    }

    /// What the last run was seen to depend on besides its plan.
    pub fn influences(&self) -> impl Iterator<Item = Influence> {
        Influence::in_set(self.memory.control().influences.load(Ordering::Relaxed))
    }

    /// The program came to its end without a thread, so its server stands before `main`.
    pub fn starts_no_thread(&self) -> bool {
        self.memory.control().from_main.load(Ordering::Relaxed) != 0
    }

    /// The program, for those who need it for longer than the worker is there.
    pub fn shared_program(&self) -> &Arc<Program> {
        &self.program
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

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Changes the limits of runs from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Changes how long a run may take from now on.
    pub fn set_time_limit(&mut self, time: Duration) {
        self.limits.time = time;
    }

    fn server_pid(&self) -> u32 {
        self.memory.control().server_pid.load(Ordering::Acquire)
    }

    /// From now on keeps snapshots of runs, and starts a plan from one that began with the same turns. With `None` it
    /// takes no new ones. Only the time of runs changes. That is worth while if many plans share long beginnings.
    pub fn keep_snapshots(&mut self, keep: Option<Keep>) {
        self.snapshots.keep(keep);
    }

    fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let start = Instant::now();
        loop {
            if self.limits.is_cancelled() {
                return Err(StartError::Cancelled);
            }
            let program = || self.target.program.clone();
            let mut bytes = [0];
            match self.server.receive(&mut bytes) {
                Some(1) if bytes[0] == message::READY => return Ok(()),
                Some(_) => return Err(self.why_not_ready()),
                None if start.elapsed() >= self.limits.time => {
                    if let Some(new) = self.became() {
                        return Err(self.became_another(new));
                    }
                    return Err(StartError::TooSlow { program: program(), limit: self.limits.time });
                }
                None if processes::use_more_than(self.limits.memory, self.server_pid()) => {
                    return Err(StartError::TooMuchMemory { program: program(), limit: self.limits.memory });
                }
                None => self.trim_output(),
            }
        }
    }

    /// Says why the program ended before its first thread.
    fn why_not_ready(&mut self) -> StartError {
        let program = self.target.program.clone();
        let status = match self.server.wait() {
            Ok(status) => status,
            Err(source) => return StartError::Spawn { program, source },
        };
        let ended = ending::of(&self.memory, status, None);
        if let End::Exec { program: new, .. } = ended {
            return self.became_another(new);
        }
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

    /// Runs the program under `plan`. A run that is given up has ended when this returns, and the next can be made.
    pub fn run(&mut self, plan: &Plan) -> Result<Run<'_>, RunError> {
        if self.limits.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        if self.limits.is_late() {
            return Err(RunError::Late);
        }
        self.memory.trim();
        if !self.offer_tables(plan) {
            return Err(RunError::PlanTooLarge);
        }
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

    /// Makes sure that the tables of distances that `plan` goes by are in place. Returns `false` if they are too large.
    fn offer_tables(&mut self, plan: &Plan) -> bool {
        let Policy::Guided(Guidance { preference: Preference::Nearest(tables), .. }) = &plan.policy else {
            return true;
        };
        if !self.tables.as_ref().is_some_and(|offered| Arc::ptr_eq(offered, tables)) {
            self.tables = Some(Arc::clone(tables));
            return self.memory.write_tables(&wire::encode_tables(tables));
        }
        true
    }

    /// Asks for a run, and waits for its end; `None` if the snapshot it was to come from is gone.
    fn request(&mut self, bytes: &[u8]) -> Result<Option<RunEnd>, RunError> {
        if !self.server.send(bytes) {
            return Err(RunError::ServerDied);
        }
        let start = Instant::now();
        let limit = self.limits.run_time();
        let mut stopped: Option<Stop> = None;
        loop {
            let mut bytes = [0; 5];
            match self.server.receive(&mut bytes) {
                Some(5) if bytes[0] == message::DONE => {
                    self.trim_output();
                    let status = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
                    return Ok(Some(self.explained(ending::of(&self.memory, status, stopped))));
                }
                Some(1) if bytes[0] == message::LOST => return Ok(None),
                Some(_) => return Err(RunError::ServerDied),
                None if self.limits.is_cancelled() => {
                    self.end_run();
                    return Err(RunError::Cancelled);
                }
                // Asked to say where it is; made to end if it does not.
                None if start.elapsed() >= limit + GRACE => {
                    self.stop(Signal::KILL, Stop::AtTimeLimit, &mut stopped);
                }
                None if start.elapsed() >= limit => self.stop(STOP, Stop::AtTimeLimit, &mut stopped),
                None if processes::use_more_than(self.limits.memory, self.run_pid()) => {
                    self.stop(Signal::KILL, Stop::AtMemoryLimit, &mut stopped);
                }
                None => self.trim_output(),
            }
        }
    }

    /// Sends the run a signal. What becomes of it then is the tool's doing, and `stopped` says why: the first reason.
    fn stop(&self, signal: Signal, reason: Stop, stopped: &mut Option<Stop>) {
        if self.signal_run(signal) {
            stopped.get_or_insert(reason);
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

    /// The process of the present run; 0 between runs.
    fn run_pid(&self) -> u32 {
        self.memory.control().run_pid.load(Ordering::Acquire)
    }

    /// Sends the run a signal. `false` if it has ended.
    fn signal_run(&self, signal: Signal) -> bool {
        let pid = self.run_pid();
        let process = Pid::from_raw(pid as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        // The descriptor pins the process. If the run is still the same one after it was opened, it is that run that
        // gets the signal. A run that has ended by then needs none.
        match process {
            Some(Ok(process)) if self.run_pid() == pid => pidfd_send_signal(process, signal).is_ok(),
            _ => false,
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
    /// Kills the run, and waits until the server has cleared up after it.
    fn end_run(&self) {
        let start = Instant::now();
        // The server may not have started it yet.
        loop {
            self.signal_run(Signal::KILL);
            if self.server.receive(&mut [0; 5]).is_some() || start.elapsed() >= GRACE {
                return;
            }
        }
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
