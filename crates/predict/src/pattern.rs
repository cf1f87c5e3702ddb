//! Access anomalies as data (section 3): a pattern is sequences of equal length that say, for each of its events,
//! the thread, the shared variable, the atomic region and the access.
//!
//! The built-in patterns are in `patterns.toml`. A user's file has the same form and adds to them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use threadbare_search::AnomalyKind;

/// What an event of a pattern does to its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    Read,
    Write,
}

/// What one unit of work does in a pattern: its accesses in order, each to one of the unit's variables, which are
/// numbered as they come up.
pub type Shape = Vec<(usize, Access)>;

/// The part of a pattern that one thread plays, in one atomic region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub shape: Shape,
    /// For each variable of the shape, which of the pattern's variables it is.
    pub variables: Vec<usize>,
}

/// An access anomaly, taken apart by thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub name: String,
    pub kind: AnomalyKind,
    pub sides: Vec<Side>,
    /// For each event of the sequence, the side it belongs to.
    pub order: Vec<usize>,
    /// How many variables it speaks of.
    pub variables: usize,
}

impl Pattern {
    /// The events have to come directly one after the other.
    pub fn is_adjacent(&self) -> bool {
        self.kind == AnomalyKind::DataRace
    }
}

/// A file of patterns is not right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    #[error("{0}")]
    Syntax(String),
    #[error("pattern \"{name}\": T, SV, AR and AT have {lengths:?} parts, which should be the same number")]
    Lengths { name: String, lengths: [usize; 4] },
    #[error("pattern \"{name}\": a pattern has from 2 to {MAX_EVENTS} events, and this one has {events}")]
    Length { name: String, events: usize },
    #[error("pattern \"{name}\": \"{found}\" in AT is neither r nor w")]
    Access { name: String, found: String },
    #[error(
        "pattern \"{name}\": thread {thread} is in region {first} and in region {second}; one is supported"
    )]
    TwoRegions { name: String, thread: String, first: String, second: String },
    #[error("pattern \"{name}\": region {region} is entered by two threads")]
    TwoThreads { name: String, region: String },
    #[error("pattern \"{name}\": one thread alone cannot go wrong in this way")]
    OneThread { name: String },
    #[error("pattern \"{name}\": the two events of a data-race are in two threads, on one variable")]
    NotARace { name: String },
}

/// Longer sequences would be searched for ever.
const MAX_EVENTS: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    pattern: Vec<Written>,
}

/// A pattern as it is in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(deserialize_with = "read_kind")]
    kind: AnomalyKind,
    #[serde(rename = "T")]
    threads: String,
    #[serde(rename = "SV")]
    variables: String,
    #[serde(rename = "AR")]
    regions: String,
    #[serde(rename = "AT")]
    accesses: String,
}

/// The kinds that a pattern can have. A deadlock is not a pattern of accesses: see [`deadlock`](crate::deadlock).
const KINDS: [AnomalyKind; 3] =
    [AnomalyKind::DataRace, AnomalyKind::AtomicityViolation, AnomalyKind::AtomicSetViolation];
const KIND_NAMES: &[&str] = &[KINDS[0].name(), KINDS[1].name(), KINDS[2].name()];

fn read_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AnomalyKind, D::Error> {
    let name = String::deserialize(deserializer)?;
    let kind = KINDS.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| D::Error::unknown_variant(&name, KIND_NAMES))
}

/// The patterns that are always there.
pub fn built_in() -> Vec<Pattern> {
    parse(include_str!("patterns.toml")).expect("the built-in patterns are well formed")
}

/// Reads a file of patterns.
pub fn parse(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let file: File = toml::from_str(text).map_err(|error| PatternError::Syntax(error.to_string()))?;
    file.pattern.iter().map(Written::understood).collect()
}

impl Written {
    fn understood(&self) -> Result<Pattern, PatternError> {
        let split = |text: &'_ str| text.split('-').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
        let parts = [&self.threads, &self.variables, &self.regions, &self.accesses].map(|text| split(text));
        let lengths = [0, 1, 2, 3].map(|part| parts[part].len());
        let [threads, variables, regions, accesses] = parts;
        let name = || self.name.clone();
        if lengths.iter().any(|&length| length != lengths[0]) {
            return Err(PatternError::Lengths { name: name(), lengths });
        }
        if !(2..=MAX_EVENTS).contains(&lengths[0]) {
            return Err(PatternError::Length { name: name(), events: lengths[0] });
        }
        self.check_regions(&threads, &regions)?;
        let (sides_of, sides) = numbered(&threads);
        let (variable_of, variables) = numbered(&variables);
        if sides < 2 {
            return Err(PatternError::OneThread { name: name() });
        }
        if self.kind == AnomalyKind::DataRace && (lengths[0], variables) != (2, 1) {
            return Err(PatternError::NotARace { name: name() });
        }
        let mut sequences: Vec<Vec<(usize, Access)>> = vec![Vec::new(); sides];
        for (event, access) in accesses.iter().enumerate() {
            sequences[sides_of[event]].push((variable_of[event], self.access(access)?));
        }
        let sides = sequences.iter().map(|sequence| side(sequence)).collect();
        Ok(Pattern { name: name(), kind: self.kind, sides, order: sides_of, variables })
    }

    /// A thread has one region in a pattern, and a region one thread.
    fn check_regions(&self, threads: &[String], regions: &[String]) -> Result<(), PatternError> {
        for (i, (thread, region)) in threads.iter().zip(regions).enumerate() {
            for (other_thread, other) in threads.iter().zip(regions).take(i) {
                let name = || self.name.clone();
                if thread == other_thread && region != other {
                    let (thread, first, second) = (thread.clone(), other.clone(), region.clone());
                    return Err(PatternError::TwoRegions { name: name(), thread, first, second });
                }
                if thread != other_thread && region == other {
                    return Err(PatternError::TwoThreads { name: name(), region: region.clone() });
                }
            }
        }
        Ok(())
    }

    fn access(&self, text: &str) -> Result<Access, PatternError> {
        match text {
            "r" => Ok(Access::Read),
            "w" => Ok(Access::Write),
            _ => Err(PatternError::Access { name: self.name.clone(), found: text.to_owned() }),
        }
    }
}

/// Labels as numbers, in the order in which they first come up, and how many there are.
fn numbered(labels: &[String]) -> (Vec<usize>, usize) {
    let mut known: Vec<&String> = Vec::new();
    let mut numbers = Vec::with_capacity(labels.len());
    for label in labels {
        let number = known.iter().position(|other| *other == label).unwrap_or(known.len());
        if number == known.len() {
            known.push(label);
        }
        numbers.push(number);
    }
    (numbers, known.len())
}

/// One thread's accesses, with its variables numbered by themselves.
fn side(sequence: &[(usize, Access)]) -> Side {
    let mut variables: Vec<usize> = Vec::new();
    let mut shape = Shape::new();
    for &(variable, access) in sequence {
        let number = variables.iter().position(|&known| known == variable).unwrap_or(variables.len());
        if number == variables.len() {
            variables.push(variable);
        }
        shape.push((number, access));
    }
    Side { shape, variables }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, Write};
    use super::*;

    fn one(t: &str, sv: &str, ar: &str, at: &str) -> Result<Vec<Pattern>, PatternError> {
        parse(&format!(
            "[[pattern]]\nname = \"p\"\nkind = \"atomicity-violation\"\n\
             T = \"{t}\"\nSV = \"{sv}\"\nAR = \"{ar}\"\nAT = \"{at}\"\n"
        ))
    }

    #[test]
    fn the_built_in_patterns_are_the_papers_and_the_crossing_ones() {
        let patterns = built_in();
        let count = |kind| patterns.iter().filter(|pattern| pattern.kind == kind).count();
        assert_eq!(KINDS.map(count), [3, 5, 9]);
    }

    #[test]
    fn a_pattern_is_taken_apart_by_thread() {
        let pattern = one("t1-t2-t2-t1", "s1-s2-s1-s2", "u1-u2-u2-u1", "w-r-r-w").unwrap().remove(0);
        assert_eq!(pattern.order, [0, 1, 1, 0]);
        assert_eq!(pattern.sides[0], Side { shape: vec![(0, Write), (1, Write)], variables: vec![0, 1] });
        assert_eq!(pattern.sides[1], Side { shape: vec![(0, Read), (1, Read)], variables: vec![1, 0] });
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_said() {
        let message = |result: Result<Vec<Pattern>, PatternError>| result.unwrap_err().to_string();
        assert_eq!(
            message(one("t1-t2", "s1-s1", "u1-u2", "r-w-w")),
            "pattern \"p\": T, SV, AR and AT have [2, 2, 2, 3] parts, which should be the same number"
        );
        assert_eq!(
            message(one("t1-t2", "s1-s1", "u1-u2", "r-x")),
            "pattern \"p\": \"x\" in AT is neither r nor w"
        );
        assert_eq!(
            message(one("t1-t2-t1", "s1-s1-s1", "u1-u2-u3", "r-w-r")),
            "pattern \"p\": thread t1 is in region u1 and in region u3; one is supported"
        );
        assert_eq!(
            message(one("t1-t2", "s1-s1", "u1-u1", "r-w")),
            "pattern \"p\": region u1 is entered by two threads"
        );
        assert!(message(one("t1-t1", "s1-s1", "u1-u1", "r-w")).contains("one thread alone"));
        assert!(message(parse("pattern = 3")).contains("invalid type"));
    }
}
