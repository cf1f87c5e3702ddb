//! The graph of values of one function, made as far as it is asked for.
//!
//! A node is the result of an instruction, a merge of values where paths meet, what a call leaves in a location, or what
//! the function begins with. Its edges lead to the values it is computed from; its sources are what it takes from
//! outside the function and from memory. A load from memory that is not a local ends the way: what was stored there
//! is known to a run only.

mod through_calls;

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Load;
use super::cells::Cells;
use super::code::Code;
use super::location::{EXPOSED, FRAME, Location};
use super::pointer::{Base, Place, Pointer};
use super::summary::{Source, Summary, Way, Write};
use super::tracking::{Passed, Tracking};
use crate::flow::{BlockIndex, Dominators};

/// The number of a node.
pub(super) type NodeId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// What an instruction computes.
    Instruction(u32),
    /// A location that an instruction writes in part, or perhaps.
    Kept(u32, Location),
    /// Where paths meet at the start of a block.
    Merge(u32, Location),
    /// What the call at the end of a block leaves.
    AfterCall(u32, Location),
    /// What the call at the end of a block writes to memory: one of the writes of its summary, or [`ELSEWHERE`].
    Written(u32, u32),
    Entry(Location),
    /// What the function returns.
    Exit(Location),
}

/// Stands for what a call writes to memory that is not behind an argument.
const ELSEWHERE: u32 = u32::MAX;
/// More cells than this are read as one location.
const MAX_CELLS: usize = 12;

/// Where a value comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    pub(super) edges: Vec<(Way, NodeId)>,
    pub(super) sources: Vec<(Way, Source)>,
}

impl Origins {
    pub(super) fn extend(&mut self, more: Origins) {
        self.edges.extend(more.edges);
        self.sources.extend(more.sources);
    }
}

/// What writes a location in a block.
#[derive(Clone, Copy)]
struct Definition {
    location: Location,
    instruction: u32,
    keeps_old: bool,
}

pub(super) struct Values {
    pub(super) code: Code,
    pub(super) tracking: Tracking,
    pub(super) cells: Cells,
    /// The return address of the hook that announces an access, by number of the instruction.
    pub(super) hooks: FxHashMap<usize, u64>,
    /// The blocks whose branch decides whether a block is reached.
    deciders: Vec<Vec<usize>>,
    dominators: Option<Dominators>,
    /// By block, then by location and instruction.
    definitions: Vec<Vec<Definition>>,
    /// Stores to a place that is not known exactly, by block.
    wide: Vec<Vec<(usize, Range<usize>)>>,
    keys: Vec<Key>,
    ids: FxHashMap<Key, NodeId>,
    at_start: FxHashMap<(usize, Location), NodeId>,
    nodes: Vec<Option<Node>>,
    known_sources: KnownSources,
    /// The ways by which each node was come to in the current walk, as bits.
    seen: Vec<u8>,
}

/// Where a value comes from, in little space: functions have many nodes.
struct Node {
    edges: Box<[(Way, NodeId)]>,
    sources: Box<[(Way, u32)]>,
}

/// Sources by number. Walks meet the same ones over and over.
#[derive(Default)]
struct KnownSources {
    all: Vec<Source>,
    numbers: FxHashMap<Source, u32>,
    /// The ways by which each was come to in the current walk, as bits.
    seen: Vec<u8>,
    /// Those with bits in `seen`.
    found: Vec<u32>,
}

impl KnownSources {
    fn number(&mut self, source: Source) -> u32 {
        if let Some(known) = self.numbers.get(&source) {
            return *known;
        }
        let number = self.all.len() as u32;
        self.all.push(source.clone());
        self.seen.push(0);
        self.numbers.insert(source, number);
        number
    }

    fn find(&mut self, way: Way, number: u32) {
        let seen = &mut self.seen[number as usize];
        if *seen == 0 {
            self.found.push(number);
        }
        *seen |= 1 << way as u8;
    }

    /// Ends a walk: gives what was found, in order.
    fn take_found(&mut self) -> Vec<(Way, Source)> {
        let mut found = Vec::with_capacity(self.found.len());
        for number in std::mem::take(&mut self.found) {
            let seen = std::mem::take(&mut self.seen[number as usize]);
            let ways = [Way::Value, Way::Address, Way::Control];
            let ways = ways.into_iter().filter(|way| seen & 1 << *way as u8 != 0);
            found.extend(ways.map(|way| (way, self.all[number as usize].clone())));
        }
        found.sort_unstable();
        found
    }
}

impl Values {
    pub(super) fn new(
        code: Code,
        tracking: Tracking,
        hooks: FxHashMap<usize, u64>,
        deciders: Vec<Vec<usize>>,
    ) -> Values {
        let cells = Cells::of(&code, &tracking);
        let mut values = Values {
            definitions: Vec::new(),
            wide: Vec::new(),
            keys: Vec::new(),
            ids: FxHashMap::default(),
            at_start: FxHashMap::default(),
            nodes: Vec::new(),
            known_sources: KnownSources::default(),
            seen: Vec::new(),
            code,
            tracking,
            cells,
            hooks,
            deciders,
            dominators: None,
        };
        for block in 0..values.code.blocks.len() {
            let (definitions, wide) = values.writes_in(block);
            values.definitions.push(definitions);
            values.wide.push(wide);
        }
        values
    }

    fn writes_in(&self, block: usize) -> (Vec<Definition>, Vec<(usize, Range<usize>)>) {
        let (mut definitions, mut wide) = (Vec::new(), Vec::new());
        let exposed = self.exposed_cells();
        for number in self.code.blocks[block].clone() {
            let effect = &self.code.effects[number];
            let define = |location, keeps_old| Definition { location, instruction: number as u32, keeps_old };
            definitions
                .extend(effect.writes.iter().map(|written| define(written.location, written.keeps_old)));
            let places = self.tracking.places[number].iter().zip(&effect.memory);
            for (place, access) in places.filter(|(_, access)| access.writes) {
                let cells = self.cells_of(*place);
                if let Place::Frame { .. } = place {
                    let cells = cells.clone().map(Location::of_cell);
                    definitions.extend(cells.map(|location| define(location, access.conditional)));
                } else if !cells.is_empty() {
                    wide.push((number, cells.clone()));
                }
                definitions.extend((!cells.is_empty()).then(|| define(FRAME, true)));
                definitions.extend(overlap(&cells, &exposed).then(|| define(EXPOSED, true)));
            }
        }
        definitions.sort_by_key(|definition| (definition.location, definition.instruction));
        (definitions, wide)
    }

    /// The cells that an access may touch.
    fn cells_of(&self, place: Place) -> Range<usize> {
        match place {
            Place::Frame { offset, size } => self.cells.touching(offset, size),
            Place::SomewhereInFrame => 0..self.cells.count(),
            Place::Unknown(unknown) if unknown.may_be_frame() => 0..self.cells.count(),
            Place::Unknown(unknown) if unknown.may_be_exposed => self.exposed_cells(),
            Place::Unknown(_) | Place::Argument { .. } | Place::ReadOnly => 0..0,
        }
    }

    fn node(&mut self, key: Key) -> NodeId {
        *self.ids.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.nodes.push(None);
            (self.keys.len() - 1) as NodeId
        })
    }

    pub(super) fn instruction(&mut self, number: usize) -> NodeId {
        self.node(Key::Instruction(number as u32))
    }

    /// What the function returns in a location.
    pub(super) fn returned(&mut self, location: Location) -> NodeId {
        self.node(Key::Exit(location))
    }

    /// What a location holds before an instruction.
    pub(super) fn before(&mut self, instruction: usize, location: Location) -> NodeId {
        let block = self.code.block_of(instruction);
        match self.written_before(block, instruction, location) {
            Some(key) => self.node(key),
            None => self.at_start(block, location),
        }
    }

    /// What the last write of a location in a block, before an instruction, leaves.
    fn written_before(&self, block: usize, instruction: usize, location: Location) -> Option<Key> {
        let all = &self.definitions[block];
        let end = all
            .partition_point(|known| (known.location, known.instruction as usize) < (location, instruction));
        let exact = end.checked_sub(1).map(|last| all[last]).filter(|known| known.location == location);
        let wide = location.cell().and_then(|cell| {
            let covering = self.wide[block].iter().rev().filter(|(_, cells)| cells.contains(&cell));
            covering.map(|(number, _)| *number).find(|number| *number < instruction)
        });
        match (exact, wide) {
            (exact, Some(wide)) if exact.is_none_or(|exact| (exact.instruction as usize) < wide) => {
                Some(Key::Kept(wide as u32, location))
            }
            (Some(exact), _) if exact.keeps_old => Some(Key::Kept(exact.instruction, location)),
            (Some(exact), _) => Some(Key::Instruction(exact.instruction)),
            (None, _) => None,
        }
    }

    /// What a location holds at the start of a block. Chains of blocks with one predecessor are walked here, so that
    /// only a place where paths meet needs a node.
    fn at_start(&mut self, block: usize, location: Location) -> NodeId {
        let (mut at, mut passed) = (block, Vec::new());
        let found = loop {
            if let Some(known) = self.at_start.get(&(at, location)) {
                break *known;
            }
            passed.push(at);
            let is_entry = at == self.code.entry();
            let key = match (&self.code.predecessors[at][..], is_entry) {
                ([], _) => Some(Key::Entry(location)),
                ([only], false) => {
                    let before = *only;
                    let left = self.left_by(before, location);
                    if left.is_none() {
                        at = before;
                    }
                    left
                }
                _ => Some(Key::Merge(at as u32, location)),
            };
            if let Some(key) = key {
                break self.node(key);
            }
        };
        for block in passed {
            self.at_start.insert((block, location), found);
        }
        found
    }

    /// What writes a location last in a block, its call included.
    fn left_by(&self, block: usize, location: Location) -> Option<Key> {
        if !self.code.continues_without_call(block) && self.call_changes(block, location) {
            return Some(Key::AfterCall(block as u32, location));
        }
        self.written_before(block, self.code.blocks[block].end, location)
    }

    fn at_end(&mut self, block: usize, location: Location) -> NodeId {
        match self.left_by(block, location) {
            Some(key) => self.node(key),
            None => self.at_start(block, location),
        }
    }

    fn call(&self, block: usize) -> Option<(&Summary, &Passed)> {
        Some((self.code.calls[block].as_deref()?, self.tracking.calls[block].as_ref()?))
    }

    fn call_changes(&self, block: usize, location: Location) -> bool {
        let Some((summary, passed)) = self.call(block) else { return false };
        match location.is_memory() {
            false => !summary.preserves(location),
            true => {
                let cells = self.cells_in(location);
                summary.writes.iter().any(|write| overlap(&self.reached(summary, passed, write), &cells))
                    || (summary.elsewhere.is_some() && overlap(&self.exposed_cells(), &cells))
            }
        }
    }

    /// The cells that a location of the frame stands for.
    fn cells_in(&self, location: Location) -> Range<usize> {
        match location.cell() {
            _ if location == FRAME => 0..self.cells.count(),
            _ if location == EXPOSED => self.exposed_cells(),
            Some(cell) => cell..cell + 1,
            None => 0..0,
        }
    }

    fn exposed_cells(&self) -> Range<usize> {
        self.tracking.exposed.map_or(0..0, |offset| self.cells.around(offset))
    }

    /// The cells that a write of a callee may reach.
    fn reached(&self, summary: &Summary, passed: &Passed, write: &Write) -> Range<usize> {
        let range = summary.range(write, &passed.registers);
        let (offset, size) = range.map_or((None, 0), |(offset, size)| (Some(offset), size));
        self.behind(passed.registers[usize::from(write.register)], offset, size)
    }

    /// The cells behind a pointer.
    fn behind(&self, pointer: Pointer, offset: Option<i64>, size: u32) -> Range<usize> {
        match (pointer, offset) {
            (Pointer::At(Base::Frame, at), Some(offset)) => {
                self.cells.touching(at.saturating_add(offset), size)
            }
            (Pointer::At(Base::Frame, at), None) => self.cells.around(at),
            (Pointer::Within(Base::Frame), _) => 0..self.cells.count(),
            (Pointer::Unknown(unknown), _) if unknown.may_be_frame() => 0..self.cells.count(),
            (Pointer::Unknown(unknown), _) if unknown.may_be_exposed => self.exposed_cells(),
            _ => 0..0,
        }
    }

    /// Finds out where the value of a node comes from.
    fn expand(&mut self, node: NodeId) {
        let mut origins = match self.keys[node as usize] {
            Key::Instruction(number) => self.of_instruction(number as usize),
            Key::Kept(number, location) => {
                let new = self.instruction(number as usize);
                let old = self.before(number as usize, location);
                Origins { edges: vec![(Way::Value, new), (Way::Value, old)], sources: Vec::new() }
            }
            Key::Merge(block, location) => self.of_merge(node, block as usize, location),
            Key::AfterCall(block, location) => self.of_call(block as usize, location),
            Key::Written(block, write) => self.of_written(block as usize, write),
            Key::Entry(location) => self.of_entry(location),
            Key::Exit(location) => self.of_exit(location),
        };
        origins.edges.sort_unstable();
        origins.edges.dedup();
        let sources = origins.sources.into_iter();
        let sources = sources.map(|(way, source)| (way, self.known_sources.number(source))).collect();
        self.nodes[node as usize] = Some(Node { edges: origins.edges.into(), sources });
    }

    fn of_instruction(&mut self, number: usize) -> Origins {
        let mut origins = Origins::default();
        let effect = self.code.effects[number].clone();
        for location in effect.reads {
            origins.edges.push((Way::Value, self.before(number, location)));
        }
        let mut way_of_address = Way::Address;
        let places = self.tracking.places[number].clone();
        for (place, access) in places.into_iter().zip(effect.memory).filter(|(_, access)| access.reads) {
            let address = self.code.instructions[number].ip();
            let hook = self.hooks.get(&number).copied();
            let load = (Way::Value, Source::Load(Load { address, hook }));
            match place {
                Place::ReadOnly => way_of_address = Way::Value,
                Place::Frame { .. } | Place::SomewhereInFrame => origins.sources.extend(hook.map(|_| load)),
                Place::Argument { register, offset, size } => {
                    origins.sources.push(load);
                    origins.sources.push((Way::Value, Source::Behind { register, offset, size }));
                }
                Place::Unknown(unknown) => {
                    origins.sources.push(load);
                    origins.sources.extend(unknown.may_be_exposed.then_some((Way::Value, Source::Exposed)));
                    let arguments = (0..16_u8).filter(|register| unknown.arguments() >> register & 1 == 1);
                    origins.sources.extend(arguments.map(|register| {
                        (Way::Value, Source::Behind { register, offset: None, size: access.size })
                    }));
                }
            }
            let cells = self.cells_of(place);
            self.add_cells(&mut origins, Way::Value, number, cells);
        }
        for location in effect.address_reads {
            origins.edges.push((way_of_address, self.before(number, location)));
        }
        origins
    }

    /// What some cells hold before an instruction.
    fn add_cells(&mut self, origins: &mut Origins, way: Way, instruction: usize, cells: Range<usize>) {
        if cells.len() > MAX_CELLS {
            let exposed = self.exposed_cells();
            let is_exposed = exposed.start <= cells.start && cells.end <= exposed.end;
            let location = if is_exposed { EXPOSED } else { FRAME };
            origins.edges.push((way, self.before(instruction, location)));
            return;
        }
        for cell in cells {
            origins.edges.push((way, self.before(instruction, Location::of_cell(cell))));
        }
    }

    fn of_merge(&mut self, node: NodeId, block: usize, location: Location) -> Origins {
        let mut origins = Origins::default();
        let predecessors = self.code.predecessors[block].clone();
        if block == self.code.entry() {
            origins.edges.push((Way::Value, self.node(Key::Entry(location))));
        }
        for before in &predecessors {
            let value = self.at_end(*before, location);
            if value != node {
                origins.edges.push((Way::Value, value));
            }
        }
        if self.is_choice(node, &origins) {
            self.add_deciders(&mut origins, &predecessors, Some(block));
        }
        origins
    }

    /// Whether more than one value meets. Merges that pass on the same value, as around a loop that does not change it,
    /// are looked through.
    fn is_choice(&mut self, node: NodeId, origins: &Origins) -> bool {
        /// Beyond this many merges it counts as a choice.
        const MAX_MERGES: usize = 32;
        let mut open: Vec<NodeId> = origins.edges.iter().map(|(_, value)| *value).collect();
        let mut seen = FxHashSet::from_iter([node]);
        let mut only = None;
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            let Key::Merge(block, location) = self.keys[value as usize] else {
                if only.replace(value).is_some_and(|known| known != value) {
                    return true;
                }
                continue;
            };
            if seen.len() > MAX_MERGES {
                return true;
            }
            if block as usize == self.code.entry() {
                open.push(self.node(Key::Entry(location)));
            }
            for before in self.code.predecessors[block as usize].clone() {
                open.push(self.at_end(before, location));
            }
        }
        false
    }

    /// The branches that decide by which of some blocks a path goes, without those before `meeting` that only decide
    /// whether it is reached. A loop's own condition is not one of these: it decides how often values change.
    fn add_deciders(&mut self, origins: &mut Origins, blocks: &[usize], meeting: Option<usize>) {
        let mut deciders = FxHashSet::default();
        for &block in blocks {
            let decides = self.code.flow.blocks[block].successors.len() > 1;
            deciders.extend(decides.then_some(block));
            deciders.extend(self.deciders[block].iter().copied());
        }
        let index = |block: usize| BlockIndex(block as u32);
        if let Some(meeting) = meeting {
            let dominators = self.dominators.get_or_insert_with(|| self.code.flow.dominators());
            let reached_by = &self.deciders[meeting];
            deciders.retain(|&block| {
                let is_before = block != meeting && dominators.dominates(index(block), index(meeting));
                !(is_before && reached_by.contains(&block))
            });
        }
        self.add_branches(origins, deciders);
    }

    /// The branches that decide whether a block is executed, and the branches that decide about these.
    pub(super) fn conditions(&mut self, block: usize) -> Origins {
        let (mut deciders, mut open) = (FxHashSet::default(), vec![block]);
        while let Some(block) = open.pop() {
            for &decider in &self.deciders[block] {
                if deciders.insert(decider) {
                    open.push(decider);
                }
            }
        }
        let mut origins = Origins::default();
        self.add_branches(&mut origins, deciders);
        origins
    }

    fn add_branches(&mut self, origins: &mut Origins, blocks: FxHashSet<usize>) {
        for block in blocks {
            if let Some(last) = self.code.blocks[block].clone().last() {
                origins.edges.push((Way::Control, self.instruction(last)));
            }
        }
    }

    /// All sources of some values, each once, in order.
    pub(super) fn sources(&mut self, start: Origins) -> Vec<(Way, Source)> {
        for (way, source) in start.sources {
            let number = self.known_sources.number(source);
            self.known_sources.find(way, number);
        }
        let mut open = start.edges;
        let mut visited = Vec::new();
        while let Some((way, node)) = open.pop() {
            if self.seen.len() < self.keys.len() {
                self.seen.resize(self.keys.len(), 0);
            }
            let bit = 1 << way as u8;
            if self.seen[node as usize] & bit != 0 {
                continue;
            }
            self.seen[node as usize] |= bit;
            visited.push(node);
            if self.nodes[node as usize].is_none() {
                self.expand(node);
            }
            let Some(known) = &self.nodes[node as usize] else { continue };
            for (next, source) in &known.sources {
                self.known_sources.find(way.then(*next), *source);
            }
            open.extend(known.edges.iter().map(|(next, value)| (way.then(*next), *value)));
        }
        for node in visited {
            self.seen[node as usize] = 0;
        }
        self.known_sources.take_found()
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}
