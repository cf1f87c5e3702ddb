//! Interrupts: the first ends the command with what it has, the second at once.
//!
//! Whatever goes on for long asks whether it was cancelled, and most commands so come to their own end in some
//! hundredths of a second. But a read may wait for a pipe, a compiler may take its time, a prediction may be inside of a
//! long computation, and standard output may be a full pipe. So a thread of its own waits for [`GRACE`] after the first
//! interrupt. If the command has not ended by then, that thread prints the summary of what was done so far and ends the
//! process. It needs nothing from the thread that works, except for [`OUTPUT`]. Nothing else may be needed for a clean
//! end: processes end with the tool (`threadbare_executor::keep`), and directories are listed in [`scratch`].
//!
//! SIGINT, SIGTERM and SIGHUP are interrupts, except for SIGHUP if it is ignored from the start, as `nohup` has it. SIGINT
//! is one in any case: a shell ignores it for all that a script starts in the background. SIGPIPE is ignored, as in every Rust program: a write to a closed pipe fails, and the command ends.

use std::io;
use std::path::PathBuf;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use threadbare_executor::scratch;
use threadbare_hunt::replay::Replay;
use threadbare_hunt::suite::{SuiteSummary, TestResult};
use threadbare_hunt::{Event, Summary};
use threadbare_report::{Reporter, print_error};

use crate::exit;
use crate::problem::Problem;

/// How long a command has to end by itself.
const GRACE: Duration = Duration::from_millis(600);
/// How long it may take to print the summary in its place: the output may be a full pipe.
const PRINTING: Duration = Duration::from_millis(200);

/// The command's output and what it still owes. There is one command in a process.
static OUTPUT: Mutex<Option<Output>> = Mutex::new(None);
/// Something was found.
static FOUND: AtomicBool = AtomicBool::new(false);
/// There was an interrupt.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

struct Output {
    reporter: Box<dyn Reporter + Send>,
    due: Due,
}

/// The last event of a command, as far as it is known.
pub enum Due {
    Session(Box<Summary>),
    Suite(SuiteSummary, Instant),
    Replay(Replay),
    /// There is none, or it was printed.
    Nothing,
}

impl Due {
    pub fn session() -> Due {
        Due::Session(Box::new(Summary::new(Instant::now())))
    }

    pub fn suite() -> Due {
        Due::Suite(SuiteSummary::default(), Instant::now())
    }

    pub fn replay(clip: PathBuf) -> Due {
        Due::Replay(Replay::new(clip))
    }

    /// Takes note of an event.
    fn note(&mut self, event: &Event<'_>) {
        match (event, &mut *self) {
            (Event::Progress(so_far), Due::Session(summary)) => {
                summary.clone_from(&Box::new((*so_far).clone()))
            }
            (Event::Found(finding), Due::Session(summary)) => summary.found(finding.method),
            (Event::TestFinished(report), Due::Suite(summary, _)) => summary.count(report),
            (Event::Finished(_) | Event::SuiteFinished(_) | Event::Replayed(_), _) => *self = Due::Nothing,
            _ => {}
        }
    }

    /// Reports it as what it has come to at an interrupt.
    fn report(self, reporter: &mut dyn Reporter) -> io::Result<()> {
        match self {
            Due::Session(mut summary) => {
                summary.interrupted = true;
                summary.finish();
                reporter.report(&Event::Finished(&summary))
            }
            Due::Suite(mut summary, start) => {
                summary.interrupted = true;
                summary.seconds = start.elapsed().as_secs_f64();
                reporter.report(&Event::SuiteFinished(&summary))
            }
            Due::Replay(replay) => reporter.report(&Event::Replayed(&Replay { interrupted: true, ..replay })),
            Due::Nothing => Ok(()),
        }
    }
}

/// From now on events are reported by `reporter`, and `due` is what the command owes if it is interrupted.
pub fn begin(reporter: impl Reporter + Send + 'static, due: Due) {
    *OUTPUT.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Output { reporter: Box::new(reporter), due });
}

/// Reports an event of the command that has begun.
pub fn report(event: &Event<'_>) -> io::Result<()> {
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(output) = output.as_mut() else { return Ok(()) };
    output.due.note(event);
    let found = match event {
        Event::Found(_) => true,
        Event::TestFinished(report) => report.result == TestResult::Failed,
        _ => false,
    };
    FOUND.fetch_or(found, Ordering::Relaxed);
    output.reporter.report(event)
}

/// There was an interrupt.
pub fn is_over() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The exit code of a command that was interrupted.
fn exit_code() -> u8 {
    if FOUND.load(Ordering::Relaxed) { exit::FOUND } else { exit::INTERRUPTED }
}

/// Prints what the command still owes, and gives its exit code. If another thread is printing at the moment, and does not
/// come to its end, nothing can be printed.
pub fn last_words() -> u8 {
    let start = Instant::now();
    while start.elapsed() < PRINTING {
        let mut output = match OUTPUT.try_lock() {
            Ok(output) => output,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        match output.as_mut() {
            // Where it cannot be written to, nobody reads it.
            Some(Output { reporter, due }) => {
                let _ = std::mem::replace(due, Due::Nothing).report(reporter.as_mut());
            }
            None => print_error("interrupted", None),
        }
        break;
    }
    exit_code()
}

/// Returns the flag that the first interrupt sets. A second one ends the process at once.
pub fn watch() -> Result<Arc<AtomicBool>, Problem> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let is_hangup_ignored = is_hangup_ignored();
    ctrlc::set_handler(move || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            end_process();
        }
        flag.store(true, Ordering::Relaxed);
        thread::spawn(end_in_time);
    })?;
    if is_hangup_ignored {
        // SAFETY: nothing is called when the signal comes.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    Ok(cancelled)
}

/// The last resort.
fn end_in_time() {
    thread::sleep(GRACE);
    thread::spawn(|| {
        last_words();
        end_process();
    });
    thread::sleep(PRINTING);
    end_process()
}

fn end_process() -> ! {
    scratch::remove_all();
    exit(exit_code().into())
}

/// SIGHUP is ignored.
fn is_hangup_ignored() -> bool {
    // SAFETY: the present action is written to a place of our own, of which all zeroes is a value.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}
