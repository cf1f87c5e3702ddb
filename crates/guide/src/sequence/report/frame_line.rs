//! One line of a stack trace, in the forms of the sanitizers, gdb, Rust and Valgrind.

/// A frame as it was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportFrame {
    /// From 0 for the innermost frame.
    pub number: u32,
    /// Empty if unknown.
    pub function: String,
    /// Empty if unknown.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
    /// The library or program that the code is in; empty if unknown.
    pub module: String,
}

/// What a line of a report says about frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameLine {
    Frame(ReportFrame),
    /// The place of the frame on the line before: `at ./src/main.rs:10:5`.
    Place {
        file: String,
        line: u32,
    },
}

/// Reads a line without blanks at its ends; `None` if it is not about a frame.
pub fn read(line: &str) -> Option<FrameLine> {
    if let Some(numbered) = line.strip_prefix('#') {
        let (number, rest) = number(numbered)?;
        return hash_frame(number, rest.trim_start()).map(FrameLine::Frame);
    }
    if let Some(place) = line.strip_prefix("at ")
        && let Some((file, line)) = file_and_line(place.trim())
    {
        return Some(FrameLine::Place { file: file.to_owned(), line });
    }
    valgrind_frame(line).or_else(|| rust_frame(line)).map(FrameLine::Frame)
}

/// The place at the end of a line that goes on with the arguments of the line before, as gdb breaks them.
pub fn read_continued(line: &str) -> Option<(String, u32)> {
    let (_, place) = line.rsplit_once(") at ")?;
    file_and_line(place).map(|(file, line)| (file.to_owned(), line))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// `#0 …` of gdb and of the sanitizers.
fn hash_frame(number: u32, text: &str) -> Option<ReportFrame> {
    if text.is_empty() {
        return None;
    }
    let text = match text.split_once(" in ") {
        Some((address, rest)) if is_address(address) => rest,
        _ => text,
    };
    let text = text.split(" (BuildId:").next().unwrap_or_default().trim_end();
    let frame = gdb_frame(text).unwrap_or_else(|| sanitizer_frame(text));
    Some(ReportFrame { number, ..frame })
}

fn is_address(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `deposit (account=0x1234) at account.c:40` or `raise () from /lib/libc.so.6`, or without anything after the arguments.
fn gdb_frame(text: &str) -> Option<ReportFrame> {
    let named =
        |signature: &str| ReportFrame { function: before_arguments(signature), ..ReportFrame::default() };
    if let Some((signature, place)) = text.rsplit_once(") at ") {
        let (file, line) = file_and_line(place)?;
        return Some(ReportFrame { file: file.to_owned(), line, ..named(signature) });
    }
    if let Some((signature, module)) = text.rsplit_once(") from ") {
        return Some(ReportFrame { module: module.to_owned(), ..named(signature) });
    }
    let is_bare = text.ends_with(')') && text.contains(" (") && module_start(text).is_none();
    is_bare.then(|| named(text))
}

/// The function of `deposit (account=0x1234`. Arguments begin at the first bracket that follows a blank.
fn before_arguments(signature: &str) -> String {
    signature.split(" (").find(|part| !part.is_empty()).unwrap_or_default().to_owned()
}

/// `add account.c:8:21 (program+0xd019f) (BuildId: 49c3…)`, `add <null> (program+0x1)` or `(/lib/libc.so+0x1)`.
fn sanitizer_frame(text: &str) -> ReportFrame {
    let (text, module) = match module_start(text) {
        Some(start) => (text[..start].trim_end(), module_name(&text[start..])),
        None => (text, String::new()),
    };
    if let Some(function) = text.strip_suffix("<null>") {
        let function = function.trim_end().trim_end_matches("<null>").trim_end();
        return ReportFrame { function: function.to_owned(), module, ..ReportFrame::default() };
    }
    let placed = split_place(text).and_then(|(function, place)| Some((function, file_and_line(place)?)));
    match placed {
        Some((function, (file, line))) => {
            ReportFrame { function: function.to_owned(), file: file.to_owned(), line, module, number: 0 }
        }
        None if is_address(text) => ReportFrame { module, ..ReportFrame::default() },
        // The arguments may go on in the next line.
        None => ReportFrame { function: before_arguments(text), module, ..ReportFrame::default() },
    }
}

/// Where `(program+0x1234)` begins, at the end of a line.
fn module_start(text: &str) -> Option<usize> {
    let start = text.rfind('(')?;
    let inside = text[start + 1..].strip_suffix(')')?;
    let (_, offset) = inside.rsplit_once('+')?;
    is_address(offset).then_some(start)
}

fn module_name(text: &str) -> String {
    text.trim_start_matches('(').rsplit_once('+').map_or("", |(name, _)| name).to_owned()
}

/// The function and the place of `std::vector<int, A>::at(int) /usr/include/vector:10`. A place begins at the first part
/// that looks like a whole path, since names of functions have blanks too; else at the last blank.
fn split_place(text: &str) -> Option<(&str, &str)> {
    let at = text.find(" /").or_else(|| text.rfind(' '))?;
    Some((&text[..at], &text[at + 1..]))
}

/// The file and line of `account.c:40` or `account.c:40:7`.
pub fn file_and_line(place: &str) -> Option<(&str, u32)> {
    let (before, last) = place.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    if let Some((file, line)) = before.rsplit_once(':')
        && let Ok(line) = line.parse::<u32>()
    {
        return (!file.is_empty() && line > 0).then_some((file, line));
    }
    (!before.is_empty() && last > 0).then_some((before, last))
}

/// `at 0x1091A7: withdraw (race.c:19)` or `by 0x484C7D6: ??? (in /usr/lib/preload.so)`.
fn valgrind_frame(line: &str) -> Option<ReportFrame> {
    let (number, rest) = match line.split_once(' ')? {
        ("at", rest) => (0, rest),
        // Any number but 0: the frame is not the first of a stack.
        ("by", rest) => (1, rest),
        _ => return None,
    };
    let (address, rest) = rest.split_once(": ")?;
    if !is_address(address) {
        return None;
    }
    let (function, place) = rest.rsplit_once(" (").unwrap_or((rest, ""));
    let place = place.trim_end_matches(')');
    let frame = ReportFrame { number, function: function.to_owned(), ..ReportFrame::default() };
    Some(match (place.strip_prefix("in "), file_and_line(place)) {
        (Some(module), _) => ReportFrame { module: module.to_owned(), ..frame },
        (None, Some((file, line))) => ReportFrame { file: file.to_owned(), line, ..frame },
        (None, None) => frame,
    })
}

/// `5: ledger::Ledger::newest` or `19: 0x55cd5515c376 - ledger::Ledger::newest::hde56614b65f64987`.
fn rust_frame(line: &str) -> Option<ReportFrame> {
    let (number, rest) = number(line)?;
    let rest = rest.strip_prefix(": ")?.trim_start();
    let function = match rest.split_once(" - ") {
        Some((address, function)) if is_address(address) => function,
        _ => rest,
    };
    (!function.is_empty()).then(|| ReportFrame {
        number,
        function: function.to_owned(),
        ..ReportFrame::default()
    })
}
