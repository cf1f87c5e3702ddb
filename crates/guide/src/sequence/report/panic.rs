//! A Rust panic: the line that says where, and the backtrace if one was printed.

use super::frame_line::{self, ReportFrame};
use super::lines::Stack;
use super::{single, user_code};
use crate::sequence::{Place, Step, ThreadName, Warning, Waypoint};
use threadbare_trace::ThreadId;

/// The place of a panic, reached through the frames of the backtrace.
pub fn warning(line: &str, stacks: &[Stack]) -> Option<Warning> {
    let thread = line.starts_with("thread 'main'").then(|| ThreadName::Id(ThreadId::main()));
    let traced = stacks.first().and_then(|stack| user_code::waypoint(&stack.frames, thread.clone()));
    let named = panic_place(line).and_then(|frame| user_code::place(&frame));
    let waypoint = match (named, traced) {
        (None, traced) => traced?,
        (Some(place), Some(traced)) if traced.place == place => traced,
        (Some(place), Some(traced)) if is_same_place(&place, &traced) => Waypoint { place, ..traced },
        // The place that is named is the caller's of a function with `#[track_caller]`, or there is no backtrace.
        (Some(place), _) => Waypoint { thread, ..Waypoint::anywhere(place) },
    };
    Some(Warning::new("panic", line.trim_end_matches(':'), None, single(Step::Pass(waypoint))))
}

/// Whether both are the same line, one with more of its path.
fn is_same_place(place: &Place, traced: &Waypoint) -> bool {
    match (place, &traced.place) {
        (Place::Line { file, line, .. }, Place::Line { file: other, line: other_line, .. }) => {
            line == other_line && (file.matches(other.as_str()) || other.matches(file.as_str()))
        }
        _ => false,
    }
}

/// The place of `thread 'main' panicked at src/main.rs:10:5:`, or of the older form that ends in `', src/main.rs:10:5`.
/// `None` if it is not the user's.
fn panic_place(line: &str) -> Option<ReportFrame> {
    let (_, after) = line.split_once(" panicked at ")?;
    let place = after.trim_end_matches(':').rsplit("', ").next()?;
    let (file, line) = frame_line::file_and_line(place)?;
    let frame = ReportFrame { file: file.to_owned(), line, ..ReportFrame::default() };
    (!user_code::is_library_file(file)).then_some(frame)
}
