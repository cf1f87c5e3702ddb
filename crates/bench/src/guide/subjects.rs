//! The subjects, their sequences of locations, and what the paper has of each.

use std::fs;
use std::path::{Path, PathBuf};

use threadbare_trace::{Demand, ThreadId, Waypoint, WhichThread};

use super::{Result, Search};
use crate::build::{self, INSTRUMENTED};

/// A row of the paper's tables.
pub struct Row {
    pub subject: &'static str,
    /// What the subject is given, so that it has the paper's threads and is no smaller than the paper's.
    pub arguments: &'static str,
    /// The paper's name for its threads.
    pub threads: &'static str,
    /// The threads that `prefer` prefers.
    pub preferred: &'static [&'static str],
    /// The paper's mean states and depth with the distance heuristic; `None` if it has no such row.
    pub states: Option<u64>,
    pub depth: Option<u64>,
    /// The same with the constant heuristic and with preferred threads.
    pub constant: Option<(u64, u64)>,
    pub prefer: Option<(u64, u64)>,
    /// The share of the trials that find the error: constant, preferred threads, random.
    pub found: [Option<f64>; 3],
}

/// A figure of the paper's.
pub struct Paper {
    pub found: Option<f64>,
    pub states: Option<f64>,
    pub depth: Option<f64>,
}

impl Row {
    pub fn name(&self) -> String {
        format!("{}({})", self.subject, self.threads)
    }

    pub fn paper(&self, search: Search) -> Paper {
        let [constant, prefer, random] = self.found;
        let (found, figures) = match search {
            Search::Nearest => (Some(1.0), self.states.zip(self.depth)),
            Search::Constant => (constant, self.constant),
            Search::Prefer => (prefer, self.prefer),
            Search::Random => (random, None),
        };
        Paper {
            found,
            states: figures.map(|(states, _)| states as f64),
            depth: figures.map(|(_, depth)| depth as f64),
        }
    }
}

const NO_ROW: Row = Row {
    subject: "",
    arguments: "",
    threads: "",
    preferred: &[],
    states: None,
    depth: None,
    constant: None,
    prefer: None,
    found: [None; 3],
};

/// Tables 1 and 2. Where only one of them has a row, the other's figures are missing.
pub const ROWS: &[Row] = &[
    Row {
        subject: "twostage",
        arguments: "7 1 3",
        threads: "7,1",
        preferred: &["0.1", "0.8"],
        states: Some(213),
        depth: Some(38),
        constant: Some((130_839, 58)),
        prefer: Some((2_206_109, 55)),
        found: [Some(1.0), Some(1.0), Some(0.41)],
    },
    Row {
        subject: "twostage",
        arguments: "8 1 3",
        threads: "8,1",
        preferred: &["0.1", "0.9"],
        states: Some(250),
        depth: Some(41),
        constant: Some((217_637, 63)),
        prefer: Some((4_436_444, 60)),
        found: [Some(1.0), Some(1.0), Some(0.04)],
    },
    Row {
        subject: "twostage",
        arguments: "10 1 3",
        threads: "10,1",
        preferred: &["0.1", "0.11"],
        states: Some(333),
        depth: Some(47),
        constant: Some((314_590, 74)),
        prefer: Some((6_690_008, 71)),
        found: [Some(1.0), Some(1.0), Some(0.0)],
    },
    Row {
        subject: "wronglock",
        arguments: "1 10 8",
        threads: "1,10",
        preferred: &["0.1"],
        states: Some(3_526),
        depth: Some(21),
        constant: Some((7_082, 28)),
        prefer: Some((120_305, 49)),
        ..NO_ROW
    },
    Row {
        subject: "wronglock",
        arguments: "1 20 8",
        threads: "1,20",
        preferred: &["0.1"],
        states: Some(21_391),
        depth: Some(21),
        constant: Some((24_479, 30)),
        prefer: Some((3_827_020, 69)),
        found: [Some(1.0), Some(1.0), Some(0.28)],
    },
    Row {
        subject: "reorder",
        arguments: "5 1 3",
        threads: "5,1",
        preferred: &["0.1", "0.6"],
        states: Some(109),
        depth: Some(25),
        constant: Some((5_597, 36)),
        prefer: Some((977, 30)),
        ..NO_ROW
    },
    Row {
        subject: "reorder",
        arguments: "8 1 3",
        threads: "8,1",
        preferred: &["0.1", "0.9"],
        states: Some(197),
        depth: Some(34),
        constant: Some((36_332, 51)),
        prefer: Some((3_110, 39)),
        ..NO_ROW
    },
    Row {
        subject: "reorder",
        arguments: "9 1 3",
        threads: "9,1",
        preferred: &["0.1", "0.10"],
        found: [Some(1.0), Some(1.0), Some(0.06)],
        ..NO_ROW
    },
    Row {
        subject: "reorder",
        arguments: "10 1 3",
        threads: "10,1",
        preferred: &["0.1", "0.11"],
        states: Some(271),
        depth: Some(40),
        constant: Some((67_958, 61)),
        prefer: Some((5_136, 44)),
        found: [Some(1.0), Some(1.0), Some(0.0)],
    },
    Row {
        subject: "abslist",
        arguments: "1 7 10",
        threads: "1,7",
        preferred: &["0.1", "0.2"],
        found: [Some(0.37), Some(0.0), Some(0.01)],
        ..NO_ROW
    },
    Row {
        subject: "abslist",
        arguments: "1 8 10",
        threads: "1,8",
        preferred: &["0.1", "0.2"],
        found: [Some(0.08), Some(0.0), Some(0.0)],
        ..NO_ROW
    },
    Row {
        subject: "abslist",
        arguments: "1 10 11",
        threads: "1,10",
        preferred: &["0.1", "0.2"],
        states: Some(1_382),
        depth: Some(133),
        constant: Some((10_497_302, 402)),
        ..NO_ROW
    },
    Row {
        subject: "deadlock",
        arguments: "1 9",
        threads: "1,9",
        preferred: &["0.1", "0.2"],
        found: [Some(1.0), None, Some(0.0)],
        ..NO_ROW
    },
    Row {
        subject: "deadlock",
        arguments: "1 10",
        threads: "1,10",
        preferred: &["0.1", "0.2"],
        found: [Some(1.0), None, Some(0.0)],
        ..NO_ROW
    },
    Row {
        subject: "arylist",
        arguments: "1 5 8",
        threads: "1,5",
        preferred: &["0.1", "0.2"],
        found: [Some(1.0), Some(1.0), Some(0.81)],
        ..NO_ROW
    },
    Row {
        subject: "arylist",
        arguments: "1 8 8",
        threads: "1,8",
        preferred: &["0.1", "0.2"],
        found: [Some(1.0), Some(0.01), Some(0.0)],
        ..NO_ROW
    },
    Row {
        subject: "arylist",
        arguments: "1 9 8",
        threads: "1,9",
        preferred: &["0.1", "0.2"],
        found: [Some(1.0), Some(0.0), Some(0.0)],
        ..NO_ROW
    },
    Row {
        subject: "arylist",
        arguments: "1 10 8",
        threads: "1,10",
        preferred: &["0.1", "0.2"],
        states: Some(14_044),
        depth: Some(96),
        constant: Some((15_972, 114)),
        found: [Some(1.0), Some(0.0), Some(0.0)],
        ..NO_ROW
    },
];

/// A location: a file, a function in it, and a piece of the line.
type Location = (&'static str, &'static str, &'static str);

/// The locations of a subject's error, as many as the paper gives.
pub fn locations(subject: &str) -> &'static [Location] {
    match subject {
        "twostage" => &[
            ("twostage.c", "writer", "pthread_mutex_unlock(&first_lock);"),
            ("twostage.c", "reader", "pthread_mutex_lock(&second_lock);"),
        ],
        "reorder" => &[("reorder.c", "setter", "a = 1;"), ("reorder.c", "checker", "assert(")],
        "wronglock" => &[
            ("wronglock.c", "observer", "int before = value;"),
            ("wronglock.c", "incrementer", "pthread_mutex_unlock(incrementer_lock);"),
            ("wronglock.c", "observer", "assert("),
        ],
        "abslist" => &[
            ("abslist.c", "vector_equals", "struct iterator iterator = iterate(other);"),
            ("abslist.c", "iterate", "pthread_mutex_unlock(&vector->lock);"),
            ("abslist.c", "bool iterator_has_next", "pthread_mutex_unlock(&iterator->vector->lock);"),
            ("abslist.c", "adder", "vector_add(&second, ELEMENTS);"),
            ("abslist.c", "vector_add", "self->changes += 1;"),
            ("abslist.c", "int iterator_next", "assert("),
        ],
        "arylist" => &[
            ("synchronised.h", "collection_equals", "struct iterator others = iterate(other);"),
            ("synchronised.h", "collection_equals", "while (equal && iterator_has_next(&own)"),
            ("arylist.c", "adder", "collection_add(&second, ELEMENTS);"),
            ("synchronised.h", "collection_add", "pthread_mutex_lock(&self->lock);"),
            ("synchronised.h", "add_counted", "self->changes += 1;"),
            ("synchronised.h", "int iterator_next", "assert("),
        ],
        "deadlock" => &[
            ("deadlock.c", "print", "pthread_mutex_lock(&self->lock);"),
            ("deadlock.c", "print", "int printed = self->count;"),
            ("deadlock.c", "print", "struct object *inner = self->contained;"),
            ("deadlock.c", "print", "pthread_mutex_lock(&self->lock);"),
            ("deadlock.c", "print", "int printed = self->count;"),
            ("deadlock.c", "print", "struct object *inner = self->contained;"),
        ],
        _ => &[],
    }
}

/// A subject that is compiled, with its arguments.
pub struct Subject {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub locations: &'static [Location],
    pub preferred: Vec<ThreadId>,
}

impl Subject {
    pub fn prepare(row: &Row, directory: &Path) -> Result<Subject> {
        let source = sources().join(row.subject).with_extension("c");
        let program = directory.join(row.subject);
        if !program.exists() {
            build::compile(&source, &program, &[INSTRUMENTED, &["-O0"]].concat())?;
        }
        Ok(Subject {
            program,
            arguments: row.arguments.split_whitespace().map(str::to_owned).collect(),
            locations: locations(row.subject),
            preferred: row.preferred.iter().map(|id| id.parse()).collect::<std::result::Result<_, _>>()?,
        })
    }

    /// The first `count` locations as waypoints.
    pub fn waypoints(&self, program: &threadbare_program::Program, count: usize) -> Result<Vec<Waypoint>> {
        self.locations.iter().take(count).map(|location| waypoint(program, *location)).collect()
    }
}

fn sources() -> PathBuf {
    build::root().join("subjects/c")
}

fn waypoint(program: &threadbare_program::Program, location: Location) -> Result<Waypoint> {
    let (file, _, text) = location;
    let line = line_of(location)?;
    let files = program.source_files();
    let path = files.iter().find(|path| path.ends_with(&format!("/{file}")));
    let path = path.ok_or_else(|| format!("{file} is not in the debug information"))?;
    let points = program.places_in_file(path).calls.remove(&line);
    let points = points.ok_or_else(|| format!("{file}:{line} ({text}) makes no call"))?;
    Ok(Waypoint::new(points, WhichThread::Any, Demand::Pass))
}

/// The line of a location. Where a function is there twice, fixed and not, the last one is meant.
fn line_of((file, function, text): Location) -> Result<u32> {
    let source = fs::read_to_string(sources().join(file))?;
    let lines: Vec<&str> = source.lines().collect();
    let is_definition = |line: &&str| line.contains(&format!("{function}(")) && line.ends_with('{');
    let start = lines.iter().rposition(is_definition).ok_or_else(|| format!("{file} has no {function}"))?;
    let offset = lines[start..]
        .iter()
        .take_while(|line| **line != "}")
        .enumerate()
        .filter(|(_, line)| line.contains(text))
        .map(|(offset, _)| offset)
        .last();
    let offset = offset.ok_or_else(|| format!("{function} of {file} has no line with {text}"))?;
    Ok(u32::try_from(start + offset + 1)?)
}
