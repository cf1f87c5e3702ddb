//! The time from an interrupt to the end of the tool, in many situations and at many moments.

use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::build;

const GOAL: Duration = Duration::from_secs(1);
/// When the signal comes, after the start of the tool. The last is for what takes a while to come to.
const MOMENTS: [u64; 6] = [60, 120, 250, 500, 1000, 3000];

/// Fails in nearly every run, after many switches, and takes a while to: most of the time goes into minimising.
const SLOW: &str = "\
#include <assert.h>\n#include <pthread.h>\n\
static int shared;\n\
static void *add(void *unused) {\n\
    for (int i = 0; i < 40; i++) {\n\
        int seen = shared;\n\
        for (volatile int wait = 0; wait < 300000; wait++) {}\n\
        shared = seen + 1;\n\
    }\n\
    return unused;\n\
}\n\
int main(void) {\n\
    pthread_t threads[2];\n\
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, 0);\n\
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);\n\
    assert(shared == 80);\n\
}\n";

const SPINS: &str = "int main(void) { for (volatile int i = 0;;) i = 1; }\n";

pub fn run() -> Result<bool, Box<dyn Error>> {
    let tool = build::tool()?;
    let directory = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> Result<String, Box<dyn Error>> {
        let path = directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let fifo = directory.path().join("nobody-writes").to_string_lossy().into_owned();
    if !Command::new("mkfifo").arg(&fifo).status()?.success() {
        return Err("cannot make a FIFO".into());
    }
    let (slow, spins) = (file("slow.c", SLOW)?, file("spins.c", SPINS)?);
    let (waits, trace) =
        (file("waits.c", &format!("#include \"{fifo}\"\n"))?, file("long.std", &long_trace())?);
    let situations: &[(&str, &[&str])] = &[
        ("opens a FIFO", &["hunt", &spins, "--stdin", &fifo]),
        ("compiles", &["hunt", &waits]),
        ("waits for the first thread", &["hunt", &spins, "--time-limit", "600"]),
        ("hunts and minimises", &["hunt", &slow, "--budget", "1h"]),
        ("ranks", &["rank", &slow, "--budget", "1h"]),
        ("predicts and confirms", &["predict", &slow]),
        ("predicts from a trace", &["predict", "--trace", &trace]),
        ("records", &["record", &slow]),
        ("reads a trace", &["trace", "show", &fifo]),
        ("reads a clip", &["replay", &fifo]),
    ];
    let mut worst = Duration::ZERO;
    for (what, arguments) in situations {
        let mut longest = Duration::ZERO;
        for moment in MOMENTS {
            for signal in [libc::SIGINT, libc::SIGTERM] {
                longest = longest.max(time_to_end(&tool, arguments, directory.path(), moment, signal)?);
            }
        }
        println!("{what:<28} {:4} ms", longest.as_millis());
        worst = worst.max(longest);
    }
    println!("{:<28} {:4} ms   (goal {})", "the longest", worst.as_millis(), GOAL.as_millis());
    Ok(worst <= GOAL)
}

/// Interrupts the tool so many milliseconds after its start. Zero if it has ended by then.
fn time_to_end(
    tool: &Path,
    arguments: &[&str],
    directory: &Path,
    moment: u64,
    signal: i32,
) -> Result<Duration, Box<dyn Error>> {
    let mut child = Command::new(tool)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    sleep(Duration::from_millis(moment));
    if child.try_wait()?.is_some() {
        return Ok(Duration::ZERO);
    }
    let start = Instant::now();
    // SAFETY: a signal for a child that was not waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
    let status = end_of(&mut child)?;
    // Before it hears signals, it dies of one.
    match status.code() {
        Some(0 | 1 | 130) => Ok(start.elapsed()),
        None if status.signal() == Some(signal) => Ok(start.elapsed()),
        _ => Err(format!("{arguments:?} ended with {status} when interrupted after {moment} ms").into()),
    }
}

/// Waits for the tool, which is killed if it takes far too long.
fn end_of(child: &mut Child) -> Result<ExitStatus, Box<dyn Error>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > 20 * GOAL {
            child.kill()?;
            child.wait()?;
            return Err("the tool does not end".into());
        }
        sleep(Duration::from_millis(1));
    }
}

/// A trace from which predictions take minutes: threads that access the same variables from many lines.
fn long_trace() -> String {
    let fork = |thread: u32| format!("T0|fork(T{thread})|{thread}");
    let access = |number: u32| {
        let mixed = number.wrapping_mul(2_654_435_761) >> 8;
        let kind = if mixed & 1 == 0 { 'r' } else { 'w' };
        format!("T{}|{kind}(V{})|{}", 1 + mixed % 23, mixed / 64 % 40, 100 + mixed / 8 % 3000)
    };
    let lines: Vec<String> = (1..24).map(fork).chain((0..400_000).map(access)).collect();
    lines.join("\n") + "\n"
}
