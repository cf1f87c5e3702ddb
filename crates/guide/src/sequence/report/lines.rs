//! Takes a text apart: which of its lines belong to which report, and the stacks in them.

use super::frame_line::{self, FrameLine, ReportFrame};
use super::threadbare;

/// One report, or stack traces that belong together.
#[derive(Debug)]
pub struct Section {
    pub kind: Kind,
    /// The line that it begins with; empty for stacks without a report around them.
    pub title: String,
    pub stacks: Vec<Stack>,
    /// The lines of a finding of Threadbare that name places.
    pub places: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of ThreadSanitizer, AddressSanitizer and their like, or of Valgrind.
    Sanitizer,
    /// `thread 'main' panicked at src/main.rs:10:5:`, with its backtrace if there is one.
    Panic,
    /// Stacks without a report around them.
    Debugger,
    /// A finding of Threadbare as text.
    Threadbare,
    /// A finding of Threadbare as JSON.
    Json,
}

/// A stack trace.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The lines of text between it and the frame before it.
    pub heading: Vec<String>,
    /// Innermost first.
    pub frames: Vec<ReportFrame>,
}

/// What begins a sanitizer's report, up to the kind of error.
pub const SANITIZERS: [&str; 4] = [
    "WARNING: ThreadSanitizer: ",
    "ERROR: AddressSanitizer: ",
    "ERROR: HWAddressSanitizer: ",
    "WARNING: MemorySanitizer: ",
];

/// What begins a report of Valgrind's tools, besides that of a lock order.
const VALGRIND: [&str; 5] = [
    "Possible data race during ",
    "Invalid read of size ",
    "Invalid write of size ",
    "Invalid free() ",
    "---Thread-Announcement",
];

/// Takes a text apart.
pub fn sections(text: &str) -> Vec<Section> {
    let mut splitter = Splitter::default();
    for line in text.lines() {
        splitter.line(&without_decoration(line));
    }
    splitter.sections
}

/// The line without colours, without the time that a build server put before it, and without Valgrind's `==123==`.
fn without_decoration(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    if let Some((time, rest)) = plain.split_once(' ')
        && is_time(time)
    {
        plain = rest.to_owned();
    }
    if let Some((process, rest)) = plain.strip_prefix("==").and_then(|rest| rest.split_once("=="))
        && !process.is_empty()
        && process.bytes().all(|b| b.is_ascii_digit())
    {
        plain = rest.strip_prefix(' ').unwrap_or(rest).to_owned();
    }
    plain
}

/// `2024-05-01T12:00:00.0000000Z`.
fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 20 && bytes[0].is_ascii_digit() && bytes[10] == b'T' && bytes.ends_with(b"Z")
}

#[derive(Default)]
struct Splitter {
    sections: Vec<Section>,
    /// Whether the last section goes on.
    is_open: bool,
    /// Lines of text since the last frame.
    heading: Vec<String>,
    /// The last line that was not indented, which may be the headline of a finding.
    headline: String,
}

impl Splitter {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        match frame_line::read(text) {
            Some(FrameLine::Frame(frame)) => self.frame(frame),
            Some(FrameLine::Place { file, line }) => self.place(file, line),
            None => self.text(line, text),
        }
    }

    fn begin(&mut self, kind: Kind, title: &str) -> &mut Section {
        self.is_open = true;
        self.sections.push(Section { kind, title: title.to_owned(), stacks: Vec::new(), places: Vec::new() });
        let last = self.sections.len() - 1;
        &mut self.sections[last]
    }

    fn open(&mut self) -> Option<&mut Section> {
        if self.is_open { self.sections.last_mut() } else { None }
    }

    fn is_open_as(&mut self, kind: Kind) -> bool {
        self.open().is_some_and(|section| section.kind == kind)
    }

    fn frame(&mut self, frame: ReportFrame) {
        let heading = std::mem::take(&mut self.heading);
        let has_stacks = matches!(
            self.open().map(|section| section.kind),
            Some(Kind::Sanitizer | Kind::Panic | Kind::Debugger)
        );
        if !has_stacks {
            self.begin(Kind::Debugger, "");
        }
        let Some(section) = self.open() else { return };
        if frame.number == 0 || section.stacks.is_empty() {
            section.stacks.push(Stack { heading, frames: Vec::new() });
        }
        if let Some(stack) = section.stacks.last_mut() {
            stack.frames.push(frame);
        }
    }

    /// The place of the last frame, unless that one has a place of its own.
    fn place(&mut self, file: String, line: u32) {
        let stack = self.open().and_then(|section| section.stacks.last_mut());
        if let Some(frame) = stack.and_then(|stack| stack.frames.last_mut())
            && frame.line == 0
        {
            (frame.file, frame.line) = (file, line);
        }
    }

    fn text(&mut self, line: &str, text: &str) {
        if let Some(kind) = beginning(text) {
            self.begin(kind, text);
            self.heading.clear();
            return;
        }
        if is_closing(text) {
            self.is_open = false;
        } else if is_thread_heading(text) && !self.is_open_as(Kind::Debugger) {
            self.begin(Kind::Debugger, "");
        } else if threadbare::is_place(line) {
            self.finding_place(text);
        } else if let Some((file, line)) = frame_line::read_continued(text) {
            self.place(file, line);
        }
        if !line.starts_with(char::is_whitespace) && !text.is_empty() {
            self.headline = text.to_owned();
        }
        if !text.is_empty() {
            self.heading.push(text.to_owned());
        }
    }

    fn finding_place(&mut self, text: &str) {
        let headline = self.headline.clone();
        match self.open() {
            Some(section) if section.kind == Kind::Threadbare && section.title == headline => {
                section.places.push(text.to_owned());
            }
            _ => self.begin(Kind::Threadbare, &headline).places.push(text.to_owned()),
        }
    }
}

/// What kind of report a line begins.
fn beginning(text: &str) -> Option<Kind> {
    if SANITIZERS.iter().any(|start| text.contains(start)) || is_valgrind(text) {
        return Some(Kind::Sanitizer);
    }
    if text.starts_with("thread '") && text.contains(" panicked at ") {
        return Some(Kind::Panic);
    }
    text.starts_with("{\"type\":\"finding\"").then_some(Kind::Json)
}

fn is_valgrind(text: &str) -> bool {
    VALGRIND.iter().any(|start| text.starts_with(start))
        || (text.starts_with("Thread #") && text.contains(": lock order \"") && text.ends_with("violated"))
}

/// Whether a line ends a report: the sanitizers' summary, and the rules of sanitizers and of Valgrind.
fn is_closing(text: &str) -> bool {
    text.starts_with("SUMMARY: ")
        || (text.len() > 9 && (text.bytes().all(|b| b == b'=') || text.bytes().all(|b| b == b'-')))
}

/// gdb's `Thread 2 (Thread 0x7ffff7dd16c0 (LWP 31518) "crash"):`.
fn is_thread_heading(text: &str) -> bool {
    text.starts_with("Thread ") && (text.ends_with("):") || text.contains("(LWP "))
}
