//! Clips: between the addresses of one build and the names that outlive it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use threadbare_formats::clip::{
    Clip, ClipEvent, ClipExtent, ClipInput, ClipSite, ClipStep, ClipUntil, SiteIndex,
};
use threadbare_program::{Program, without_hashes};
use threadbare_trace::{
    EventKind, Extent, FailureKind, Plan, Policy, Site, Step, ThreadId, Trace, Tracked, Until,
};

/// What was run, as the user gave it.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The directory it was run in, as seen from the directory of its clips.
    pub directory: Option<String>,
    pub target: String,
    pub compiler_arguments: Vec<String>,
    pub arguments: Vec<String>,
    pub input: Option<ClipInput>,
}

/// A clip lists at most this many events; what comes after is not compared.
const MAX_EVENTS: usize = 20_000;
/// Global memory is looked up in pieces of this size, which no variable straddles.
const PIECE: u64 = 8;

/// Writes down `plan`, which showed what `trace` ends in.
pub fn clip(program: &Program, plan: &Plan, trace: &Trace, origin: &Origin) -> Clip {
    let mut sites = Sites::new(program);
    let steps = plan.steps.iter().map(|step| ClipStep {
        thread: step.thread.clone(),
        until: match step.until {
            Until::End => ClipUntil::End,
            Until::Before { kind, address, occurrence } => {
                ClipUntil::Before { kind, site: sites.of(kind, address), occurrence }
            }
        },
    });
    let steps = steps.collect();
    let tracked =
        plan.tracked.extents().iter().flat_map(|extent| name(program, &mut sites, extent)).collect();
    let watched = plan.watched.iter().map(|watched| sites.at(watched.place())).collect();
    let events = events(trace, &mut sites);
    let finding = trace.end.failure_kind().map_or("", FailureKind::finding).to_owned();
    let message = trace.lasting_failure_message().unwrap_or_default();
    Clip {
        directory: origin.directory.clone(),
        target: origin.target.clone(),
        compiler_arguments: origin.compiler_arguments.clone(),
        arguments: origin.arguments.clone(),
        input: origin.input.clone(),
        finding,
        message,
        seed: plan.seed,
        max_events: plan.max_events,
        spurious: plan.spurious,
        outlasting: plan.outlasting,
        guarded: plan.guarded,
        sites: sites.list,
        tracked,
        watched,
        steps,
        events,
    }
}

/// The file for a clip of `program` in `directory`: the same for the same finding, and nothing but plain letters.
pub(crate) fn path(directory: &Path, program: &str, kind: &str, fingerprint: u32) -> PathBuf {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    let program = program.replace(|letter| !is_plain(letter), "-");
    directory.join(format!("{program}-{kind}-{fingerprint:08x}.clip"))
}

/// The places a clip refers to, as they come up.
struct Sites<'p> {
    program: &'p Program,
    list: Vec<ClipSite>,
    index: HashMap<u64, SiteIndex>,
}

impl<'p> Sites<'p> {
    fn new(program: &'p Program) -> Sites<'p> {
        Sites { program, list: Vec::new(), index: HashMap::new() }
    }

    /// The place of an operation. The beginning and the end of a thread and of the process have none: there
    /// is only one of each.
    fn of(&mut self, kind: EventKind, pc: u64) -> Option<SiteIndex> {
        (!kind.is_unique() && pc != 0).then(|| self.at(pc))
    }

    fn at(&mut self, pc: u64) -> SiteIndex {
        let Sites { program, list, index } = self;
        *index.entry(pc).or_insert_with(|| {
            list.push(program.site(pc).map_or(ClipSite::Address(pc), ClipSite::Source));
            SiteIndex::at(list.len() - 1)
        })
    }
}

/// The address of a site in this build.
fn address(program: &Program, site: &ClipSite) -> Option<u64> {
    match site {
        ClipSite::Source(site) => program.find_site(site),
        ClipSite::Address(address) => Some(*address),
    }
}

/// The names of tracked memory: one for each variable that an extent covers.
fn name(program: &Program, sites: &mut Sites<'_>, extent: &Extent) -> Vec<ClipExtent> {
    match extent {
        Extent::Heap { site, start, len } => {
            let calls = site.iter().filter(|&&pc| pc != 0).map(|&pc| sites.at(pc)).collect();
            vec![ClipExtent::Heap { calls, start: *start, len: *len }]
        }
        Extent::Stack { thread, start, len } => {
            vec![ClipExtent::Stack { thread: thread.clone(), start: *start, len: *len }]
        }
        Extent::Fixed { start, len } => name_fixed(program, *start, *len),
    }
}

fn name_fixed(program: &Program, start: u64, len: u64) -> Vec<ClipExtent> {
    let mut names: Vec<ClipExtent> = Vec::new();
    let end = start + len;
    let mut at = start;
    while at < end {
        let next = (at + 1).next_multiple_of(PIECE).min(end);
        let piece = match program.global(at) {
            Some(global) => {
                ClipExtent::Global { symbol: global.symbol, offset: global.offset, len: next - at }
            }
            None => ClipExtent::Memory { start: at, len: next - at },
        };
        match (names.last_mut(), piece) {
            (
                Some(ClipExtent::Global { symbol, offset, len }),
                ClipExtent::Global { symbol: other, offset: at, len: more },
            ) if *symbol == other && *offset + *len == at => *len += more,
            (Some(ClipExtent::Memory { start, len }), ClipExtent::Memory { start: at, len: more })
                if *start + *len == at =>
            {
                *len += more;
            }
            (_, piece) => names.push(piece),
        }
        at = next;
    }
    names
}

fn events(trace: &Trace, sites: &mut Sites<'_>) -> Vec<ClipEvent> {
    let event = |event: &threadbare_trace::Event| ClipEvent {
        thread: trace.thread(event.thread).clone(),
        kind: event.kind,
        site: sites.of(event.kind, trace.location(event.location).address),
        object: trace.object(event.object).display.clone(),
    };
    trace.schedule_points().take(MAX_EVENTS).map(event).collect()
}

/// A place that a clip's steps need does not exist in this build.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} is not in the program any more")]
pub struct Unresolved {
    /// Which of the clip's steps, from 0.
    pub step: usize,
    pub place: SiteText,
}

/// The plan of a clip, for this build of the program.
pub fn resolve(clip: &Clip, program: &Program) -> Result<Plan, Unresolved> {
    let addresses: Vec<Option<u64>> = clip.sites.iter().map(|site| address(program, site)).collect();
    let steps = clip.steps.iter().enumerate().map(|(number, step)| {
        let until = match step.until {
            ClipUntil::End => Until::End,
            ClipUntil::Before { kind, site, occurrence } => {
                let address = match site {
                    None => 0,
                    Some(site) => addresses[site.index()]
                        .ok_or_else(|| Unresolved { step: number, place: SiteText::of(clip.site(site)) })?,
                };
                Until::Before { kind, address, occurrence }
            }
        };
        Ok(Step { thread: step.thread.clone(), until })
    });
    let steps: Vec<Step> = steps.collect::<Result<_, _>>()?;
    let race = (clip.finding == FailureKind::DataRace.finding()).then(|| racing_places(&steps)).flatten();
    let tracked: Tracked =
        clip.tracked.iter().filter_map(|extent| locate(program, &addresses, extent)).collect();
    // A place that is gone is not come to.
    let watched =
        clip.watched.iter().filter_map(|site| program.stop_at(addresses[site.index()]?).watched()).collect();
    Ok(Plan {
        steps,
        watched,
        strict: true,
        race,
        policy: Policy::RunToBlock,
        tracked,
        max_events: clip.max_events,
        spurious: clip.spurious,
        outlasting: clip.outlasting,
        guarded: clip.guarded,
        seed: clip.seed,
        ..Plan::default()
    })
}

/// The steps to a data race end with one for each of its sides.
fn racing_places(steps: &[Step]) -> Option<[u64; 2]> {
    let [.., one, other] = steps else { return None };
    let (Until::Before { address: one, .. }, Until::Before { address: other, .. }) = (one.until, other.until)
    else {
        return None;
    };
    Some([one.min(other), one.max(other)])
}

/// Where named memory lies in this build; `None` for what is gone, whose accesses are gone too.
fn locate(program: &Program, addresses: &[Option<u64>], extent: &ClipExtent) -> Option<Extent> {
    Some(match extent {
        ClipExtent::Global { symbol, offset, len } => {
            Extent::Fixed { start: program.symbol_address(symbol)?.wrapping_add(*offset), len: *len }
        }
        ClipExtent::Heap { calls, start, len } => {
            let mut site = [0; 3];
            for (slot, &call) in site.iter_mut().zip(calls) {
                *slot = addresses[call.index()]?;
            }
            Extent::Heap { site, start: *start, len: *len }
        }
        ClipExtent::Stack { thread, start, len } => {
            Extent::Stack { thread: thread.clone(), start: *start, len: *len }
        }
        ClipExtent::Memory { start, len } => Extent::Fixed { start: *start, len: *len },
    })
}

/// A site of a clip, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteText(String);

impl SiteText {
    fn of(site: &ClipSite) -> SiteText {
        SiteText(match site {
            ClipSite::Address(address) => format!("{address:#x}"),
            ClipSite::Source(Site { line: 0, function, .. }) => function.clone(),
            ClipSite::Source(Site { line, function, file, text, .. }) => match text.as_str() {
                "" => format!("{file}:{line} in {function}"),
                text => format!("`{text}` ({file}:{line} in {function})"),
            },
        })
    }
}

impl fmt::Display for SiteText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One side of a divergence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub thread: ThreadId,
    pub kind: EventKind,
    pub object: String,
    pub place: Option<SiteText>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {}: {}", self.thread, self.kind)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        match &self.place {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

/// The first event of a replay that is not what the clip says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Counted from 1.
    pub event: usize,
    /// `None` where the clip has no more events.
    pub expected: Option<Seen>,
    /// `None` where the run has no more events.
    pub actual: Option<Seen>,
}

/// Compares a replay with its clip, event by event.
pub fn compare(clip: &Clip, program: &Program, trace: &Trace) -> Option<Divergence> {
    let mut sites = Sites::new(program);
    let actual = events(trace, &mut sites);
    let seen = |event: &ClipEvent, sites: &[ClipSite]| Seen {
        thread: event.thread.clone(),
        kind: event.kind,
        object: event.object.clone(),
        place: event.site.map(|site| SiteText::of(&sites[site.index()])),
    };
    let same = |expected: &ClipEvent, actual: &ClipEvent| {
        let site =
            |event: &ClipEvent, sites: &[ClipSite]| event.site.map(|site| identity(&sites[site.index()]));
        (&expected.thread, expected.kind, &expected.object) == (&actual.thread, actual.kind, &actual.object)
            && site(expected, &clip.sites) == site(actual, &sites.list)
    };
    let number = (0..clip.events.len().max(actual.len())).find(
        |&number| !matches!((clip.events.get(number), actual.get(number)), (Some(a), Some(b)) if same(a, b)),
    )?;
    Some(Divergence {
        event: number + 1,
        expected: clip.events.get(number).map(|event| seen(event, &clip.sites)),
        actual: actual.get(number).map(|event| seen(event, &sites.list)),
    })
}

/// Whether the run ended in the failure that the clip names. The clip of an anomaly that did no harm names no failure;
/// its events alone are compared.
pub fn is_as_promised(clip: &Clip, trace: &Trace) -> bool {
    clip.finding.is_empty()
        || (trace.end.failure_kind().map(FailureKind::finding) == Some(&clip.finding)
            && trace.lasting_failure_message().as_ref() == Some(&clip.message))
}

/// What of a site is the same after lines have moved, or after everything was built anew.
#[derive(PartialEq, Eq)]
enum SiteIdentity {
    Source { function: String, callee: String, text: String, nth: u32 },
    Address(u64),
}

fn identity(site: &ClipSite) -> SiteIdentity {
    let site = match site {
        ClipSite::Source(site) => site,
        ClipSite::Address(address) => return SiteIdentity::Address(*address),
    };
    SiteIdentity::Source {
        function: without_hashes(&site.function).into(),
        callee: without_hashes(&site.callee).into(),
        text: match site.text.as_str() {
            "" => format!("{}:{}", site.line, site.column),
            text => text.split_whitespace().collect::<Vec<_>>().join(" "),
        },
        nth: site.nth,
    }
}

#[cfg(test)]
mod tests;
