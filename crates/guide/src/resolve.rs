//! From places as users name them to places in the compiled program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use thiserror::Error;
use threadbare_program::{DebugExtent, FilePlaces, Program, Stop};
use threadbare_trace::{Demand, Watched, Waypoint, WhichThread};

use crate::sequence::{self, FilePattern, Place, Sequence, Step, ThreadName, function_name};

/// A place of a sequence cannot be found in the program.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    #[error("the program has no debug information, so {place} cannot be found in it")]
    NoDebugInfo { place: String },
    #[error("no instrumented code of the program comes from {file}")]
    NoSuchFile { file: String, similar: Vec<String> },
    #[error("{place} is in {} files", files.len())]
    AmbiguousFile { place: String, files: Vec<String> },
    #[error("{place} has no code")]
    NoCode { place: String, nearest: Vec<String> },
    #[error("{place} has code, but does nothing that a run can notice")]
    NoOperation { place: String, nearest: Vec<String> },
    #[error("no instrumented function is called {name}")]
    NoSuchFunction { name: String, similar: Vec<String> },
    #[error("{} functions are called {name}", functions.len())]
    AmbiguousFunction { name: String, functions: Vec<String> },
    #[error("the sequence names more than {} threads", u8::MAX)]
    TooManyThreads,
}

impl ResolveError {
    /// What the user can do about it.
    pub fn advice(&self) -> Option<String> {
        let list = |items: &[String]| items.iter().take(MAX_OFFERED).cloned().collect::<Vec<_>>().join(", ");
        match self {
            ResolveError::NoDebugInfo { .. } => Some("compile it with -g".to_owned()),
            ResolveError::AmbiguousFile { files, .. } => {
                Some(format!("write more of the path, or a pattern for all of them: {}", list(files)))
            }
            ResolveError::NoCode { nearest, .. } | ResolveError::NoOperation { nearest, .. }
                if !nearest.is_empty() =>
            {
                Some(format!("the nearest lines that do something are {}", list(nearest)))
            }
            ResolveError::NoSuchFile { similar, .. } | ResolveError::NoSuchFunction { similar, .. }
                if !similar.is_empty() =>
            {
                Some(format!("there is {}", list(similar)))
            }
            ResolveError::AmbiguousFunction { functions, .. } => {
                Some(format!("write more of the path: {}", list(functions)))
            }
            _ => None,
        }
    }
}

/// How many alternatives an error offers.
const MAX_OFFERED: usize = 8;
/// How many lines are offered on either side of one that cannot be used.
const NEAREST: usize = 2;

/// A sequence in the terms of a program.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub waypoints: Vec<Waypoint>,
    /// The same in the user's words.
    pub texts: Vec<String>,
    /// Places that were left out, and why.
    pub left_out: Vec<String>,
    /// Places of the waypoints at which a run does not stop of itself.
    pub watched: Vec<Watched>,
}

/// Finds the places of a sequence in this program.
pub fn resolve(program: &Program, sequence: &Sequence) -> Result<Resolved, ResolveError> {
    resolve_with(program, sequence, |_| false)
}

/// The same for a sequence that was made from a report. Reports also name places where nothing happens that a run can
/// notice: those are left out. It is an error if none is left.
pub fn resolve_report(program: &Program, sequence: &Sequence) -> Result<Resolved, ResolveError> {
    resolve_with(program, sequence, |error| {
        matches!(error, ResolveError::NoCode { .. } | ResolveError::NoOperation { .. })
    })
}

fn resolve_with(
    program: &Program,
    sequence: &Sequence,
    may_leave_out: impl Fn(&ResolveError) -> bool,
) -> Result<Resolved, ResolveError> {
    let mut threads: BTreeMap<&str, u8> = BTreeMap::new();
    let mut places = Places { program, files: BTreeMap::new() };
    let mut resolved = Resolved::default();
    let mut last_error = None;
    let mut stops: BTreeSet<u64> = BTreeSet::new();
    for (number, step) in sequence.steps.iter().enumerate() {
        let demand = match step {
            Step::Pass(_) => Demand::Pass,
            // Neighbours have different numbers, and that is all that is needed.
            Step::Together(_) => Demand::Arrive(number as u8),
        };
        for waypoint in step.waypoints() {
            let points = match places.points(&waypoint.place) {
                Err(error) if may_leave_out(&error) => {
                    resolved.left_out.push(error.to_string());
                    last_error = Some(error);
                    continue;
                }
                points => points?,
            };
            let thread = which_thread(waypoint, &mut threads)?;
            stops.extend(&points.stops);
            resolved.waypoints.push(Waypoint::new(points.all, thread, demand));
            resolved.texts.push(waypoint.to_string());
        }
    }
    resolved.watched = stops.into_iter().filter_map(|place| program.stop_at(place).watched()).collect();
    match last_error {
        Some(error) if resolved.waypoints.is_empty() => Err(error),
        _ => Ok(resolved),
    }
}

/// The lines of a step, each with the path of its file as the compiler recorded it.
pub fn lines_of(program: &Program, step: &Step) -> Vec<(String, u32)> {
    let known = program.source_files();
    let lines = |waypoint: &sequence::Waypoint| match &waypoint.place {
        Place::Function(_) => Vec::new(),
        Place::Line { file, line, .. } => {
            let files = file.closest(known.iter().map(String::as_str)).into_iter();
            files.map(|file| (file.to_owned(), *line)).collect()
        }
    };
    step.waypoints().iter().flat_map(lines).collect()
}

fn which_thread<'s>(
    waypoint: &'s sequence::Waypoint,
    threads: &mut BTreeMap<&'s str, u8>,
) -> Result<WhichThread, ResolveError> {
    Ok(match &waypoint.thread {
        None => WhichThread::Any,
        Some(ThreadName::Id(id)) => WhichThread::Id(id.clone()),
        Some(ThreadName::Variable(name)) => {
            let next = u8::try_from(threads.len()).map_err(|_| ResolveError::TooManyThreads)?;
            WhichThread::Variable(*threads.entry(name).or_insert(next))
        }
    })
}

/// The places in the code of a place as users name it, each the address behind an instruction.
#[derive(Default)]
struct Points {
    all: Vec<u64>,
    /// Those at which a run is to stop.
    stops: Vec<u64>,
}

impl Points {
    fn new(mut all: Vec<u64>) -> Points {
        all.sort_unstable();
        all.dedup();
        Points { stops: all.clone(), all }
    }
}

/// Looks places up, each file once.
struct Places<'p> {
    program: &'p Program,
    files: BTreeMap<String, FilePlaces>,
}

impl Places<'_> {
    fn points(&mut self, place: &Place) -> Result<Points, ResolveError> {
        match place {
            Place::Function(name) => self.in_function(name),
            Place::Line { file, line, column } => {
                if self.program.debug_extent() == DebugExtent::None {
                    return Err(ResolveError::NoDebugInfo { place: place.to_string() });
                }
                self.on_line(place, file, *line, *column)
            }
        }
    }

    fn callee(&self, call: u64) -> String {
        self.program.site(call).map(|site| site.callee).unwrap_or_default()
    }

    fn on_line(
        &mut self,
        place: &Place,
        pattern: &FilePattern,
        line: u32,
        column: Option<u32>,
    ) -> Result<Points, ResolveError> {
        let known = self.program.source_files();
        let meant: Vec<String> =
            pattern.closest(known.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
        if meant.is_empty() {
            let similar = similar(pattern.base_name(), known.iter().map(|path| base_name(path)));
            return Err(ResolveError::NoSuchFile { file: pattern.as_str().to_owned(), similar });
        }
        for path in &meant {
            if !self.files.contains_key(path) {
                self.files.insert(path.clone(), self.program.places_in_file(path));
            }
        }
        let mut found: Vec<(String, Vec<u64>)> = meant
            .iter()
            .map(|path| (path.clone(), self.operations(path, line, column)))
            .filter(|(_, points)| !points.is_empty())
            .collect();
        // A path as it is seen from here means this file, whatever other paths end alike.
        let here = std::env::current_dir().unwrap_or_default().join(pattern.as_str());
        if found.iter().any(|(path, _)| Path::new(path) == here) {
            found.retain(|(path, _)| Path::new(path) == here);
        }
        if found.len() > 1 && !pattern.is_glob() {
            let files = found.into_iter().map(|(path, _)| path).collect();
            return Err(ResolveError::AmbiguousFile { place: place.to_string(), files });
        }
        let points: Vec<u64> = found.drain(..).flat_map(|(_, points)| points).collect();
        if points.is_empty() {
            return Err(self.why_nothing(place, &meant, line));
        }
        Ok(Points::new(points))
    }

    /// The places of a line: its calls, or where it begins in functions in which it makes none. A call that never returns
    /// is how an assertion fails, which is not what a user means by its line.
    fn operations(&self, path: &str, line: u32, column: Option<u32>) -> Vec<u64> {
        let Some(places) = self.files.get(path) else { return Vec::new() };
        let is_there = |address: u64| {
            let Some(column) = column else { return true };
            let frames = self.program.location(address).frames;
            frames.iter().any(|frame| frame.file == path && frame.line == line && frame.column == column)
        };
        let calls = places.calls.get(&line).into_iter().flatten().copied();
        let calls = calls.filter(|&call| is_there(call) && self.is_operation(call));
        let (leaving, mut points): (Vec<u64>, Vec<u64>) =
            calls.partition(|&call| self.program.never_returns(call));
        let seen: BTreeSet<Option<u64>> = points.iter().map(|&call| self.function(call)).collect();
        let mut blocks: BTreeSet<u64> = BTreeSet::new();
        for &statement in places.code.get(&line).into_iter().flatten() {
            let Some((place, block)) = self.program.statement_place(statement) else { continue };
            let is_new = !seen.contains(&self.function(place)) && is_there(place) && blocks.insert(block);
            if is_new && self.program.stop_at(place) != Stop::Impossible {
                points.push(place);
            }
        }
        if points.is_empty() { leaving } else { points }
    }

    /// The entry of the function that a place is in.
    fn function(&self, place: u64) -> Option<u64> {
        let code = self.program.code_at(place)?;
        code.function_at(code.linked(place).checked_sub(1)?).map(|entry| code.relocated(entry))
    }

    /// Something may happen in the call: it does not only say that a function begins or ends.
    fn is_operation(&self, call: u64) -> bool {
        !self.callee(call).starts_with("__tsan_func_")
    }

    fn why_nothing(&self, place: &Place, paths: &[String], line: u32) -> ResolveError {
        let has_code = |path: &String| self.files[path].code.contains_key(&line);
        let nearest = paths.iter().flat_map(|path| self.nearest(path, line)).collect();
        let place = place.to_string();
        if paths.iter().any(has_code) {
            ResolveError::NoOperation { place, nearest }
        } else {
            ResolveError::NoCode { place, nearest }
        }
    }

    /// The lines before and after this one that can be used.
    fn nearest(&self, path: &str, line: u32) -> Vec<String> {
        let lines = || self.files[path].calls.keys().copied();
        let can_be_used = |line: &u32| !self.operations(path, *line, None).is_empty();
        let mut before: Vec<u32> =
            lines().rev().filter(|&other| other < line).filter(can_be_used).take(NEAREST).collect();
        before.reverse();
        let after = lines().filter(|&other| other > line).filter(can_be_used).take(NEAREST);
        before.into_iter().chain(after).map(|line| format!("{}:{line}", base_name(path))).collect()
    }

    /// A function is passed by whoever enters it, or does something in it.
    fn in_function(&self, name: &str) -> Result<Points, ResolveError> {
        let functions = self.program.functions_named(&|full| function_name::matches(name, full));
        // Instances of one generic function are the same to a user.
        let mut distinct: Vec<String> = functions.keys().map(|full| without_generics(full)).collect();
        distinct.dedup();
        match distinct.len() {
            0 => {
                let known = self.program.function_names();
                let similar = similar(name, known.iter().map(String::as_str));
                Err(ResolveError::NoSuchFunction { name: name.to_owned(), similar })
            }
            1 => {
                let entries = functions.values().flat_map(|function| &function.entries);
                let entries = entries.filter_map(|&entry| Some(self.program.statement_place(entry)?.0));
                let entries: Vec<u64> = entries.collect();
                let calls = functions.values().flat_map(|function| &function.calls).copied();
                let calls: Vec<u64> = calls.filter(|&call| self.is_operation(call)).collect();
                let points = Points::new([&entries[..], &calls].concat());
                match points.all.is_empty() {
                    true => Err(ResolveError::NoOperation { place: name.to_owned(), nearest: Vec::new() }),
                    // Where it was inlined there is no entry to stop at.
                    false if entries.is_empty() => Ok(points),
                    false => Ok(Points { stops: entries, ..points }),
                }
            }
            _ => Err(ResolveError::AmbiguousFunction { name: name.to_owned(), functions: distinct }),
        }
    }
}

/// The name without what stands in angle brackets behind a name.
fn without_generics(name: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0u32);
    for c in name.chars() {
        match c {
            '<' if depth > 0 || !text.is_empty() => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The name of a file without its path, or of a function without its path.
fn last_part(name: &str) -> &str {
    name.rsplit("::").next().map_or(name, base_name)
}

/// Names that have `wanted` in them, or whose last parts begin alike.
fn similar<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let lower = wanted.to_lowercase();
    let stem: String = last_part(&lower).chars().take(4).collect();
    let mut found: Vec<String> = names
        .filter(|name| {
            let name = name.to_lowercase();
            name.contains(&lower) || (!stem.is_empty() && last_part(&name).starts_with(&stem))
        })
        .map(str::to_owned)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(MAX_OFFERED);
    found
}
