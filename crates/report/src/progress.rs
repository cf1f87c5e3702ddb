//! A progress bar around a reporter.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use threadbare_hunt::{Budget, Event};
use threadbare_search::Explored;

use crate::{Reporter, print_error};

/// Shows a progress bar on standard error if that is a terminal. Whatever the reporter writes is written above the bar.
/// Notes and errors go to standard error in every format.
pub struct WithProgress {
    reporter: Box<dyn Reporter + Send>,
    bar: ProgressBar,
}

impl WithProgress {
    pub fn new(reporter: Box<dyn Reporter + Send>) -> WithProgress {
        WithProgress { reporter, bar: ProgressBar::hidden() }
    }

    /// Writes a line to standard error, as cargo words it.
    fn print_note(&self, verb: &str, what: &str) {
        // If standard error cannot be written to, the note is lost.
        let _ = self.bar.suspend(|| writeln!(io::stderr(), "{verb:>12} {what}"));
    }
}

impl Reporter for WithProgress {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Started { budget } => self.bar = session_bar(*budget),
            Event::SuiteStarted { tests, .. } => self.bar = suite_bar(*tests),
            Event::Progress(progress) => {
                self.bar.set_position(progress.runs);
                self.bar.set_message(format!("{}{} found", classes(progress.explored), progress.findings));
                return Ok(());
            }
            Event::TestFinished(_) => self.bar.inc(1),
            Event::Finished(_) | Event::SuiteFinished(_) => self.bar.finish_and_clear(),
            Event::ClipNotWritten { directory, error } => {
                let message = format!("cannot write a clip to {}: {error}", directory.display());
                self.bar.suspend(|| print_error(&message, None));
            }
            Event::Skipped { program } => {
                self.print_note("Skipping", &format!("{program}, which runs inside the compiler"));
            }
            Event::RunningOnce { program } => self.print_note("Running", program),
            Event::Found(_)
            | Event::Guided(_)
            | Event::Diverged { .. }
            | Event::Replayed(_)
            | Event::Output(_)
            | Event::Recorded { .. } => {}
        }
        self.bar.suspend(|| self.reporter.report(event))
    }
}

impl Drop for WithProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How far an exploration is.
fn classes(explored: Option<Explored>) -> String {
    let of_all =
        |Explored { classes, left, .. }| Some(format!("{classes} of about {} classes  ", classes + left?));
    explored.and_then(of_all).unwrap_or_default()
}

fn session_bar(budget: Budget) -> ProgressBar {
    let time = budget.time.map_or_else(String::new, |time| format!("{{elapsed}} of {}s  ", time.as_secs()));
    let template = match budget.runs {
        Some(_) => format!("{time}{{bar:30}} {{pos}}/{{len}} runs  {{per_sec}}  {{eta}} left  {{msg}}"),
        None => format!("{time}{{pos}} runs  {{per_sec}}  {{msg}}"),
    };
    bar(budget.runs, &template)
}

fn suite_bar(tests: usize) -> ProgressBar {
    bar(Some(tests as u64), "{bar:30} {pos}/{len} tests  {per_sec}  {eta} left")
}

fn bar(len: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr());
    // The template is ours; a mistake in it only costs the style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
