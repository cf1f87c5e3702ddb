//! Turns a run into a trace: looks up the names of its addresses.

use std::collections::{BTreeMap, HashMap};

use threadbare_program::Program;
use threadbare_trace::{
    Event, EventKind, Location, LocationIndex, MemoryOrder, Object, ObjectIndex, ObjectName, Outcome,
    Pending, StackIndex, StackNode, ThreadId, ThreadIndex, Trace, TracePlace,
};
use threadbare_wire::{CodePlace, PROCESS, Record, StackSpan};

use crate::run::Run;

/// A heap block. A freed one keeps its name until its memory is allocated again.
struct Block {
    size: u64,
    site: StackIndex,
    thread: ThreadIndex,
    ordinal: u32,
}

/// The tables of the trace that is being made.
struct Tables<'p> {
    program: &'p Program,
    threads: Vec<ThreadId>,
    objects: Vec<Object>,
    object_of: HashMap<ObjectName, ObjectIndex>,
    /// The objects at this point of the run, by address.
    object_at: BTreeMap<u64, ObjectIndex>,
    locations: Vec<Location>,
    location_of: HashMap<u64, LocationIndex>,
    stacks: Vec<StackNode>,
    /// Nodes added for allocation sites, which are a stack and the call in it.
    site_of: HashMap<(StackIndex, LocationIndex), StackIndex>,
    blocks: BTreeMap<u64, Block>,
    allocated: HashMap<(StackIndex, ThreadIndex), u32>,
    /// Where each thread's stack lies.
    spans: &'p [StackSpan],
}

/// Makes the trace of a run.
pub fn trace(run: &Run<'_>) -> Trace {
    let worker = run.worker;
    let memory = worker.memory();
    let mut tables = Tables::new(worker.program(), run.thread_ids(), memory.stack_spans());
    for stack in memory.stacks().iter().skip(1) {
        let location = tables.location(stack.pc);
        tables.stacks.push(StackNode { parent: StackIndex::new(stack.parent), location });
    }
    let prologue = memory.records().len() - run.records().len();
    for record in &memory.records()[..prologue] {
        tables.event(record);
    }
    // Of one size from the start: there may be many millions.
    let mut events = Vec::with_capacity(run.records().len());
    events.extend(run.records().iter().filter_map(|record| tables.event(record)));
    let pending = memory.pending().iter().filter_map(|record| {
        let kind = record.event_kind()?;
        Some(Pending {
            thread: record.thread_index(),
            kind,
            object: tables.object(kind, record.object),
            location: tables.location(record.pc),
            stack: record.stack_index(),
            blocked: record.blocked != 0,
            holders: record.holder_index().into_iter().collect(),
        })
    });
    let pending = pending.collect();
    let end = run.ended().clone().map(|CodePlace { thread, stack, pc }| TracePlace {
        thread,
        location: tables.location(pc),
        stack,
    });
    let target = worker.target();
    Trace {
        program: target.program.to_string_lossy().into_owned(),
        arguments: target.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        threads: tables.threads,
        objects: tables.objects,
        locations: tables.locations,
        stacks: tables.stacks,
        events,
        pending,
        end,
    }
}

impl<'p> Tables<'p> {
    fn new(program: &'p Program, threads: Vec<ThreadId>, spans: &'p [StackSpan]) -> Tables<'p> {
        Tables {
            program,
            threads,
            objects: vec![Object::none()],
            object_of: HashMap::from([(ObjectName::None, ObjectIndex::NONE)]),
            object_at: BTreeMap::new(),
            locations: vec![Location::default()],
            location_of: HashMap::from([(0, LocationIndex::NONE)]),
            stacks: vec![StackNode::default()],
            site_of: HashMap::new(),
            blocks: BTreeMap::new(),
            allocated: HashMap::new(),
            spans,
        }
    }

    fn location(&mut self, pc: u64) -> LocationIndex {
        if let Some(&index) = self.location_of.get(&pc) {
            return index;
        }
        let index = LocationIndex::at(self.locations.len());
        self.locations.push(self.program.location(pc));
        self.location_of.insert(pc, index);
        index
    }

    /// The event of a record; `None` for one that does not decode, which only a crash can leave.
    fn event(&mut self, record: &Record) -> Option<Event> {
        let kind = record.event_kind()?;
        let location = self.location(record.pc());
        if kind == EventKind::Allocate {
            self.allocate(record, location);
        }
        let object = self.object(kind, record.object);
        Some(Event {
            thread: record.thread_index(),
            kind,
            order: record.order().unwrap_or(MemoryOrder::SeqCst),
            outcome: record.outcome().unwrap_or(Outcome::Error),
            size: u32::try_from(record.size()).unwrap_or(u32::MAX),
            object,
            location,
            stack: record.stack_index(),
            value: record.value,
        })
    }

    fn allocate(&mut self, record: &Record, location: LocationIndex) {
        let (nodes, parent) = (&mut self.stacks, record.stack_index());
        let site = *self.site_of.entry((parent, location)).or_insert_with(|| {
            nodes.push(StackNode { parent, location });
            StackIndex::at(nodes.len() - 1)
        });
        let thread = record.thread_index();
        let ordinal = self.allocated.entry((site, thread)).or_default();
        *ordinal += 1;
        let block = Block { size: record.value, site, thread, ordinal: *ordinal };
        let there = record.object..record.object + block.size.max(1);
        remove_range(&mut self.blocks, there.clone());
        remove_range(&mut self.object_at, there);
        self.blocks.insert(record.object, block);
    }

    fn object(&mut self, kind: EventKind, number: u64) -> ObjectIndex {
        match (kind.is_about_thread(), number) {
            // A signal may be sent to the process.
            (true, PROCESS) if kind == EventKind::Signal => self.named(ObjectName::None, 0),
            (true, _) => self.named(ObjectName::Thread(ThreadIndex::new(number as u32)), number),
            (false, 0) => self.named(ObjectName::None, 0),
            (false, _) => self.memory_object(number),
        }
    }

    /// The object at an address. Looking up its name is costly, and most events are about few objects.
    fn memory_object(&mut self, address: u64) -> ObjectIndex {
        if let Some(&index) = self.object_at.get(&address) {
            return index;
        }
        let index = self.named(self.memory(address), address);
        self.object_at.insert(address, index);
        index
    }

    /// The object of this name, which lies at `number` if it is memory.
    fn named(&mut self, name: ObjectName, number: u64) -> ObjectIndex {
        if let Some(&index) = self.object_of.get(&name) {
            return index;
        }
        let display = self.display(&name, number);
        let index = ObjectIndex::at(self.objects.len());
        self.object_of.insert(name.clone(), index);
        self.objects.push(Object { name, display });
        index
    }

    /// The name of the memory at `address`, as things are at this point of the run.
    fn memory(&self, address: u64) -> ObjectName {
        if let Some((&start, block)) = self.blocks.range(..=address).next_back()
            && address - start < block.size.max(1)
        {
            let &Block { site, thread, ordinal, .. } = block;
            return ObjectName::Heap { site, thread, ordinal, offset: address - start };
        }
        if let Some(global) = self.program.global(address) {
            return ObjectName::Global { symbol: global.symbol, offset: global.offset };
        }
        match self.spans.iter().position(|span| (span.low..span.high).contains(&address)) {
            Some(thread) => ObjectName::Stack {
                thread: ThreadIndex::at(thread),
                offset: address.wrapping_sub(self.spans[thread].base) as i64,
            },
            None => ObjectName::Memory { address },
        }
    }

    /// The name for people. It has no line number, so it is the same after a rebuild.
    fn display(&self, name: &ObjectName, address: u64) -> String {
        let thread =
            |thread: ThreadIndex| self.threads.get(thread.index()).map_or("?".into(), ToString::to_string);
        match *name {
            ObjectName::None => String::new(),
            ObjectName::Global { ref symbol, offset } => match self.program.global(address) {
                Some(global) => global.display,
                None => format!("{symbol}+{offset}"),
            },
            ObjectName::Heap { site, thread: by, ordinal, offset } => {
                format!("{}'s block {}.{ordinal} +{offset}", self.allocator(site), thread(by))
            }
            // A local of the outermost function has a name; others move with the depth of calls.
            ObjectName::Stack { thread: of, offset } => {
                let local = self.program.local(self.spans[of.index()].routine + 1, offset);
                local.unwrap_or_else(|| format!("stack of {} {offset:+}", thread(of)))
            }
            ObjectName::Thread(index) => format!("thread {}", thread(index)),
            ObjectName::Memory { address } => format!("memory {address:#x}"),
        }
    }

    /// The function that allocated a block: the innermost one outside the standard library.
    fn allocator(&self, site: StackIndex) -> &str {
        let stack = |stack: StackIndex| self.stacks.get(stack.index()).filter(|_| !stack.is_empty());
        let calls = std::iter::successors(stack(site), |inner| stack(inner.parent));
        let mut functions = calls
            .flat_map(|call| &self.locations[call.location.index()].frames)
            .map(|frame| frame.function.as_str());
        let innermost = functions.clone().next().unwrap_or_default();
        functions.find(|function| !threadbare_program::is_library_function(function)).unwrap_or(innermost)
    }
}

fn remove_range<T>(map: &mut BTreeMap<u64, T>, range: std::ops::Range<u64>) {
    let stale: Vec<u64> = map.range(range).map(|(&start, _)| start).collect();
    for start in stale {
        map.remove(&start);
    }
}
