//! Describes a function for its callers.

use super::Gap;
use super::code::Code;
use super::location::{self, Location};
use super::pointer::{Place, Pointer};
use super::summary::{Source, Sources, Summary, Way, Write};
use super::values::{Origins, Values};

/// A result with more sources than this is cut short, and said to be.
const MAX_SOURCES: usize = 64;
/// Parts behind one argument that are told apart.
const MAX_RANGES: usize = 24;

pub(super) fn summarize(values: &mut Values) -> Summary {
    let preserved = preserved(&values.code);
    let mut summary = Summary { preserved, ..Summary::nothing() };
    for location in location::results() {
        if !summary.preserves(location) {
            let node = values.returned(location);
            let start = Origins { edges: vec![(Way::Value, node)], sources: Vec::new() };
            let sources = values.sources(start);
            summary.results.push((location, bounded(sources)));
        }
    }
    let mut writes = Writes::default();
    for number in 0..values.code.instructions.len() {
        stores_of(values, number, &mut writes);
    }
    for block in 0..values.code.blocks.len() {
        writes_of_call(values, block, &mut writes);
    }
    writes.finish(values, &mut summary);
    summary.leaks = values.tracking.leaked;
    summary.pointers = values.tracking.returned.map(|pointer| match pointer {
        Pointer::At(super::pointer::Base::Frame, _) | Pointer::Within(super::pointer::Base::Frame) => {
            Pointer::ANY
        }
        other => other,
    });
    summary
}

pub(super) fn bounded(mut sources: Vec<(Way, Source)>) -> Sources {
    if sources.len() > MAX_SOURCES {
        // Gaps are last, and must not be lost.
        let gaps: Vec<_> = sources
            .iter()
            .filter(|(_, source)| matches!(source, Source::Gap(_)))
            .take(MAX_SOURCES)
            .cloned()
            .collect();
        sources.truncate(MAX_SOURCES);
        sources.extend(gaps);
        sources.push((Way::Value, Source::Gap(Gap::TooManySources)));
        sources.sort();
        sources.dedup();
    }
    sources.into()
}

/// The locations that no instruction and no call of a function changes, as bits.
fn preserved(code: &Code) -> u128 {
    let mut bits = u128::MAX;
    for (block, instructions) in code.blocks.iter().enumerate().filter(|(block, _)| code.reachable[*block]) {
        for effect in &code.effects[instructions.clone()] {
            let written = effect.writes.iter().filter(|written| written.location.0 < 128);
            bits = written.fold(bits, |bits, written| bits & !(1 << written.location.0));
        }
        if let Some(call) = &code.calls[block] {
            bits &= call.preserved;
        }
    }
    // Those that every function preserves are saved and restored, and count as preserved anyway.
    (0..32).filter(|&n| Location(n).is_callee_saved()).fold(bits, |bits, n| bits | 1 << n)
}

/// Offset and size of what is written behind a pointer; `None` for all of it.
type Part = Option<(i64, u32)>;

/// What a function writes outside of its frame. What goes to the same place is looked at together, in one walk.
#[derive(Default)]
struct Writes {
    behind: Vec<(u8, Part, Origins)>,
    elsewhere: Option<Origins>,
}

impl Writes {
    fn add(&mut self, place: Place, written: Origins) {
        match place {
            Place::Argument { register, offset, size } => {
                self.add_behind(register, offset.map(|offset| (offset, size)), written);
            }
            _ => self.elsewhere.get_or_insert_default().extend(written),
        }
    }

    fn add_behind(&mut self, register: u8, range: Part, written: Origins) {
        let known = self.behind.iter().position(|(at, part, _)| (*at, *part) == (register, range));
        match known {
            Some(known) => self.behind[known].2.extend(written),
            None if range.is_some() && self.parts(register) >= MAX_RANGES => {
                self.add_behind(register, None, written);
            }
            None => self.behind.push((register, range, written)),
        }
    }

    fn parts(&self, register: u8) -> usize {
        self.behind.iter().filter(|(at, ..)| *at == register).count()
    }

    fn finish(self, values: &mut Values, summary: &mut Summary) {
        let mut write = |(register, range, written)| Write {
            register,
            range,
            certain: false,
            sources: bounded(values.sources(written)),
        };
        summary.writes = self.behind.into_iter().map(&mut write).collect();
        summary.writes.sort_by_key(|write| (write.register, write.range));
        summary.elsewhere = self.elsewhere.map(|written| bounded(values.sources(written)));
    }
}

fn stores_of(values: &mut Values, number: usize, writes: &mut Writes) {
    let block = values.code.block_of(number);
    if !values.code.reachable[block] {
        return;
    }
    for index in 0..values.tracking.places[number].len() {
        let place = values.tracking.places[number][index];
        let is_write = values.code.effects[number].memory[index].writes;
        if !is_write || place.is_frame() || place == Place::ReadOnly {
            continue;
        }
        let mut written = values.conditions(block);
        written.edges.push((Way::Value, values.instruction(number)));
        writes.add(place, written);
    }
}

fn writes_of_call(values: &mut Values, block: usize, writes: &mut Writes) {
    let (Some(summary), Some(passed)) =
        (values.code.calls[block].clone(), values.tracking.calls[block].clone())
    else {
        return;
    };
    for write in &summary.writes {
        let pointer = passed.registers[usize::from(write.register)];
        let place = match summary.range(write, &passed.registers) {
            Some((skip, size)) => Place::of(pointer.plus(skip), size),
            None => Place::of(pointer.somewhere(), 0),
        };
        if !place.is_frame() {
            let written = written_by_call(values, block, &write.sources);
            writes.add(place, written);
        }
    }
    if let Some(elsewhere) = &summary.elsewhere {
        let written = written_by_call(values, block, elsewhere);
        writes.elsewhere.get_or_insert_default().extend(written);
    }
}

/// What a callee writes depends on, and on whether it is called.
fn written_by_call(values: &mut Values, block: usize, sources: &Sources) -> Origins {
    let mut written = values.conditions(block);
    written.extend(values.of_callee(block, sources));
    written
}
