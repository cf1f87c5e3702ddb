//! What users see of a hunt.
//!
//! A [`Reporter`] is fed by one stream of [`Event`]s and writes them in its own way. [`FORMATS`] lists all of them by
//! name. [`WithProgress`] puts a progress bar around any of them.
//!
//! | module | writes |
//! |---|---|
//! | `terminal` | text for a person: columns of source lines, summaries |
//! | `json` | one JSON object a line, as `docs/json.md` describes |
//! | `list` | one line for each finding |
//! | `check` | the checks of a self-test |
//!
//! # A format in one file
//!
//! ```
//! use std::io;
//! use threadbare_hunt::Event;
//! use threadbare_report::Reporter;
//!
//! /// Counts what was found.
//! struct Count(u64);
//!
//! impl Reporter for Count {
//!     fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
//!         self.0 += u64::from(matches!(event, Event::Found(_)));
//!         Ok(())
//!     }
//! }
//! ```

mod check;
mod json;
mod list;
mod progress;
mod terminal;

use std::borrow::Cow;
use std::io::{self, Write};

pub use check::{Check, CheckResult};
pub use progress::WithProgress;
pub use terminal::plain_view;
use threadbare_hunt::Event;

/// Writes what a session says.
pub trait Reporter {
    /// Writes the next event. An error ends the session.
    fn report(&mut self, event: &Event<'_>) -> io::Result<()>;
}

/// How reports are written.
#[derive(Clone, Debug)]
pub struct ReportConfig {
    /// The command that takes a clip.
    pub replay_command: &'static str,
    /// Columns of the terminal.
    pub width: usize,
    /// Use ANSI escapes.
    pub colour: bool,
}

/// Width where the output is not a terminal.
const PLAIN_WIDTH: usize = 120;

impl ReportConfig {
    /// As fits standard output.
    pub fn for_stdout(replay_command: &'static str) -> ReportConfig {
        let terminal = console::Term::stdout();
        let width = match terminal.size_checked() {
            Some((_, columns)) if terminal.is_term() => usize::from(columns),
            _ => PLAIN_WIDTH,
        };
        ReportConfig { replay_command, width, colour: console::colors_enabled() }
    }
}

/// An output format.
#[derive(Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    /// What it writes, as `--help` says it.
    pub summary: &'static str,
    pub make: fn(ReportConfig, Box<dyn Write + Send>) -> Box<dyn Reporter + Send>,
}

/// Every output format, the default first. A new format is one line here.
pub const FORMATS: &[Format] = &[
    Format {
        name: "text",
        summary: "columns of source lines, for a person",
        make: |config, out| Box::new(terminal::Terminal::new(config, out)),
    },
    Format { name: "json", summary: "one JSON object a line", make: |_, out| Box::new(json::Json::new(out)) },
    Format {
        name: "list",
        summary: "one line for each finding",
        make: |_, out| Box::new(list::List::new(out)),
    },
];

/// The format with this name.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Text on standard output, for a command without a choice of formats.
pub fn text(replay_command: &'static str) -> impl Reporter + Send {
    terminal::Terminal::new(ReportConfig::for_stdout(replay_command), stdout())
}

/// Standard output.
pub fn stdout() -> Box<dyn Write + Send> {
    Box::new(io::stdout())
}

/// Writes a message and flushes, so that it is visible at once.
pub(crate) fn write_now(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The text with every control character as a visible escape, but for line ends and tabs. Traces and clips come from
/// strangers: what they name must not move the cursor, hide text or change its direction.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_invisible(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_raw) {
        return text.into();
    }
    text.chars()
        .map(|c| if is_raw(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect::<String>()
        .into()
}

/// A terminal does not show this character, but does something else.
pub(crate) fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints a note to standard error: something that is not wrong, but that a user can make better.
pub fn print_note(note: &str) {
    let bold = console::Style::new().for_stderr().bold();
    let text = format!("{} {}\n", bold.cyan().apply_to("note:"), printable(note));
    // If standard error cannot be written to, the note is lost.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints an error to standard error, in the form that every command uses.
pub fn print_error(message: &str, help: Option<&str>) {
    let bold = console::Style::new().for_stderr().bold();
    let mut text = format!("{} {}\n", bold.clone().red().apply_to("error:"), printable(message));
    for line in help.iter().flat_map(|help| help.lines()) {
        text += &format!("{} {}\n", bold.clone().cyan().apply_to(" help:"), printable(line));
    }
    // If standard error cannot be written to, the message is lost.
    let _ = io::stderr().write_all(text.as_bytes());
}
