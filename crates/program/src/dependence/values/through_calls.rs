//! Where values come from that a function is given, gives back, or has from a call.

use super::super::Gap;
use super::super::location::{Location, RDI, RSI};
use super::super::pointer::{Base, Pointer};
use super::super::summary::{Source, Sources, Summary, Way, Write};
use super::super::tracking::Passed;
use super::{ELSEWHERE, Key, NodeId, Origins, Values, overlap};

impl Values {
    pub(super) fn of_entry(&self, location: Location) -> Origins {
        let mut origins = Origins::default();
        if !location.is_memory() {
            origins.sources.push((Way::Value, Source::Register(location)));
        }
        for extent in self.cells_in(location).map(|cell| self.cells.extent(cell)) {
            if extent.start >= 8 {
                let size = u32::try_from(extent.end - extent.start).unwrap_or(u32::MAX);
                origins.sources.push((Way::Value, Source::Stack { offset: extent.start, size }));
            }
        }
        origins
    }

    pub(super) fn of_exit(&mut self, location: Location) -> Origins {
        let mut origins = Origins::default();
        let exits: Vec<usize> = self.code.exits().collect();
        for &block in &exits {
            let is_tail_call = self.code.is_tail_call(block) && self.call_changes(block, location);
            let value = match is_tail_call {
                true => self.node(Key::AfterCall(block as u32, location)),
                false => {
                    let end = self.code.blocks[block].end;
                    match self.written_before(block, end, location) {
                        Some(key) => self.node(key),
                        None => self.at_start(block, location),
                    }
                }
            };
            origins.edges.push((Way::Value, value));
        }
        let mut distinct: Vec<NodeId> = origins.edges.iter().map(|(_, value)| *value).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() > 1 {
            self.add_deciders(&mut origins, &exits, None);
        }
        origins
    }

    /// A cell that a call copies from another known part of the frame.
    pub(super) fn of_copy(&mut self, block: usize, cell: usize) -> Option<Origins> {
        let (summary, passed) = self.call(block).filter(|(summary, _)| summary.copies)?;
        let (Pointer::At(Base::Frame, to), Pointer::At(Base::Frame, from)) =
            (passed.registers[usize::from(RDI)], passed.registers[usize::from(RSI)])
        else {
            return None;
        };
        let size = i64::from(summary.length(&passed.registers)?);
        let extent = self.cells.extent(cell);
        let is_inside = extent.start >= to && extent.end <= to.saturating_add(size);
        let copied = u32::try_from(extent.end - extent.start).ok().filter(|_| is_inside)?;
        let call = self.code.blocks[block].clone().last()?;
        let mut origins = Origins::default();
        let cells = self.cells.touching(from.saturating_add(extent.start - to), copied);
        self.add_cells(&mut origins, Way::Value, call, cells);
        Some(origins)
    }

    pub(super) fn of_call(&mut self, block: usize, location: Location) -> Origins {
        let Some((summary, _)) = self.call(block) else { return Origins::default() };
        if !location.is_memory() {
            let sources = summary.result(location).cloned();
            return sources.map(|sources| self.of_callee(block, &sources)).unwrap_or_default();
        }
        if let Some(origins) = location.cell().and_then(|cell| self.of_copy(block, cell)) {
            return origins;
        }
        let Some((summary, passed)) = self.call(block) else { return Origins::default() };
        let cells = self.cells_in(location);
        let (mut written, mut replaced) = (Vec::new(), false);
        for (number, write) in summary.writes.iter().enumerate() {
            if overlap(&self.reached(summary, passed, write), &cells) {
                written.push(number as u32);
                let covers = |cell| write.certain && self.is_covered(summary, passed, write, cell);
                replaced |= location.cell().is_some_and(covers);
            }
        }
        if summary.elsewhere.is_some() && overlap(&self.exposed_cells(), &cells) {
            written.push(ELSEWHERE);
        }
        let mut origins = Origins::default();
        for number in written {
            origins.edges.push((Way::Value, self.node(Key::Written(block as u32, number))));
        }
        if !replaced && let Some(call) = self.code.blocks[block].clone().last() {
            origins.edges.push((Way::Value, self.before(call, location)));
        }
        origins
    }

    pub(super) fn of_written(&mut self, block: usize, write: u32) -> Origins {
        let sources = self.call(block).and_then(|(summary, _)| match write {
            ELSEWHERE => summary.elsewhere.clone(),
            number => summary.writes.get(number as usize).map(|write| write.sources.clone()),
        });
        sources.map(|sources| self.of_callee(block, &sources)).unwrap_or_default()
    }

    fn is_covered(&self, summary: &Summary, passed: &Passed, write: &Write, cell: usize) -> bool {
        let pointer = passed.registers[usize::from(write.register)];
        let range = summary.range(write, &passed.registers);
        let (Pointer::At(Base::Frame, at), Some((skip, size))) = (pointer, range) else { return false };
        let (start, extent) = (at.saturating_add(skip), self.cells.extent(cell));
        start <= extent.start && extent.end <= start.saturating_add(size.into())
    }

    /// What a callee depends on, in the terms of the call at the end of a block.
    pub(in crate::dependence) fn of_callee(&mut self, block: usize, sources: &Sources) -> Origins {
        let mut origins = Origins::default();
        let Some(call) = self.code.blocks[block].clone().last() else { return origins };
        let Some(passed) = self.tracking.calls[block].clone() else { return origins };
        let length = self.call(block).and_then(|(summary, passed)| summary.length(&passed.registers));
        for (way, source) in sources.iter() {
            match source {
                Source::Load(_) | Source::Gap(_) => origins.sources.push((*way, source.clone())),
                Source::Exposed => {
                    origins.sources.push((*way, Source::Exposed));
                    let cells = self.exposed_cells();
                    self.add_cells(&mut origins, *way, call, cells);
                }
                Source::Register(location) => {
                    let number = (location.0 / 2) as usize;
                    if location.0 >= 32 || !passed.registers[number].is_fixed() {
                        origins.edges.push((*way, self.before(call, *location)));
                    }
                }
                Source::Stack { offset, size } => {
                    self.on_stack(&mut origins, *way, call, &passed, *offset, *size);
                }
                Source::Behind { register, offset, size } => {
                    let pointer = passed.registers[usize::from(*register)];
                    let (offset, size) = match length.filter(|_| offset.is_none()) {
                        Some(length) => (Some(0), length),
                        None => (*offset, *size),
                    };
                    let cells = self.behind(pointer, offset, size);
                    self.add_cells(&mut origins, *way, call, cells);
                    origins.sources.extend(passed_on(pointer, offset, size).map(|source| (*way, source)));
                }
            }
        }
        origins
    }

    /// An argument on the stack.
    fn on_stack(
        &mut self,
        origins: &mut Origins,
        way: Way,
        call: usize,
        passed: &Passed,
        offset: i64,
        size: u32,
    ) {
        let Some(stack) = passed.stack else {
            return origins.sources.push((way, Source::Gap(Gap::StackPointer(self.code.flow.entry))));
        };
        // A call pushes the return address, which is at offset 0 for the callee.
        let pushed = if self.code.is_tail_call(self.code.block_of(call)) { 0 } else { 8 };
        let own = stack.saturating_add(offset).saturating_sub(pushed);
        let cells = self.cells.touching(own, size);
        if cells.is_empty() && own >= 8 {
            origins.sources.push((way, Source::Stack { offset: own, size }));
        }
        self.add_cells(origins, way, call, cells);
    }
}

/// What is behind a pointer that the caller was given itself.
fn passed_on(pointer: Pointer, offset: Option<i64>, size: u32) -> impl Iterator<Item = Source> {
    let (bases, offset) = match pointer {
        Pointer::At(Base::Argument(register), at) => {
            (1_u16 << register, offset.map(|offset| at.saturating_add(offset)))
        }
        Pointer::Within(Base::Argument(register)) => (1 << register, None),
        Pointer::Unknown(unknown) => (unknown.arguments(), None),
        _ => (0, None),
    };
    let registers = (0..16_u8).filter(move |register| bases >> register & 1 == 1);
    registers.map(move |register| Source::Behind { register, offset, size })
}
