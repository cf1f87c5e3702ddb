//! Something that was seen to go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use threadbare_formats::Clip;
use threadbare_rank::{Tuple, Variables};
use threadbare_trace::{End, Frame, ObjectName, Trace};

use crate::target::Ready;
use crate::{file, screen};

/// A failure with everything that is said about it. Serialises to the `finding` line of `--json`.
#[derive(Serialize)]
pub struct Finding {
    #[serde(rename = "type")]
    kind_of_line: &'static str,
    /// `assertion`, `deadlock`, …
    pub kind: String,
    /// It was run again and happened again; always so, since what did not is no finding.
    confirmed: bool,
    /// The failure's own words.
    pub failure: String,
    pub locations: Vec<Place>,
    pub variables: Vec<String>,
    pub threads: Vec<String>,
    pub clip: Option<PathBuf>,
    /// Executions of the target up to and with the one that showed it.
    pub run: u64,
    pub method: &'static str,
    /// Where its schedule stood in the ranking.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "tuple")]
    pub tuple: Option<Tuple>,
    /// The test of a cargo project that it was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    #[serde(skip)]
    pub trace: Trace,
}

/// A source position in `--json` output.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

impl Place {
    pub fn of(frame: &Frame) -> Place {
        Place {
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            function: frame.function.clone(),
        }
    }
}

impl Finding {
    pub fn new(trace: Trace, run: u64, method: &'static str) -> Finding {
        let kind = match &trace.end {
            End::Failed { kind, .. } => kind.finding(),
            _ => "unknown",
        };
        Finding {
            kind_of_line: "finding",
            kind: kind.to_owned(),
            confirmed: true,
            failure: screen::ending(&trace),
            locations: locations(&trace),
            variables: contended(&trace),
            threads: participants(&trace),
            clip: None,
            run,
            method,
            tuple: None,
            test: None,
            trace,
        }
    }

    /// Writes the clip into `directory`, under a name that the same finding gets again.
    pub fn save(&mut self, clip: &Clip, ready: &Ready, program: &str, directory: &Path) -> io::Result<()> {
        ready.save_input()?;
        let place = |place: &Place| format!("{}:{}:{}", place.function, place.line, place.column);
        let places: Vec<String> = self.locations.iter().map(place).collect();
        let fingerprint = fingerprint(&[&places.join(","), &clip.message]);
        let is_plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        let program = program.replace(|letter| !is_plain(letter), "-");
        let path = directory.join(format!("{program}-{}-{fingerprint:08x}.clip", self.kind));
        write_clip(clip, &path)?;
        self.clip = Some(path);
        Ok(())
    }
}

/// Writes a clip.
pub fn write_clip(clip: &Clip, path: &Path) -> io::Result<()> {
    file::write_into(path, |out| write!(out, "{clip}"))
}

/// As an array, with a word where all variables are meant.
fn tuple<S: Serializer>(tuple: &Option<Tuple>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Part {
        Number(u32),
        Word(&'static str),
    }
    let parts = tuple.map(|Tuple { c, v, t, l }| {
        let v = match v {
            Variables::Some(v) => Part::Number(v),
            Variables::All => Part::Word("all"),
        };
        [Part::Number(c), v, Part::Number(t), Part::Number(l)]
    });
    parts.serialize(serializer)
}

/// A short name for what `parts` say.
pub fn fingerprint(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Where it failed, each place once.
fn locations(trace: &Trace) -> Vec<Place> {
    let places: BTreeSet<Place> = screen::scenes(trace).iter().map(Place::of).collect();
    places.into_iter().collect()
}

/// Memory that more than one thread accessed, at least one of them writing.
fn contended(trace: &Trace) -> Vec<String> {
    let mut accesses: BTreeMap<u32, (BTreeSet<u32>, bool)> = BTreeMap::new();
    for event in trace.events.iter().filter(|event| event.kind.is_access()) {
        let (threads, written) = accesses.entry(event.object).or_default();
        threads.insert(event.thread);
        *written |= event.kind.is_write();
    }
    let named = |object: &u32| trace.objects[*object as usize].name != ObjectName::None;
    accesses
        .iter()
        .filter(|(object, (threads, written))| threads.len() > 1 && *written && named(object))
        .map(|(object, _)| trace.objects[*object as usize].display.clone())
        .collect()
}

fn participants(trace: &Trace) -> Vec<String> {
    let threads: BTreeSet<u32> = trace.events.iter().map(|event| event.thread).collect();
    threads.into_iter().map(|thread| trace.threads[thread as usize].to_string()).collect()
}
