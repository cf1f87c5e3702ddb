//! Shared memory locations (section 4.1: the attribute *m* of an event).
//!
//! A trace names memory by where an access begins. Accesses of different sizes may overlap, so objects that do are
//! taken together as one variable; whether two accesses to it really touch is then a question of their bytes.

use std::collections::HashMap;

use threadbare_trace::{Event, ObjectIndex, ObjectName, StackIndex, ThreadIndex, Trace, index_types};

index_types! {
    /// A piece of memory whose parts are accessed together, as an index into [`Variables`].
    Variable;
}

/// Which objects are the same variable.
#[derive(Debug)]
pub struct Variables {
    /// By object.
    of: Vec<Variable>,
    /// By object: where it begins in the block that it is part of.
    offset: Vec<i128>,
    /// By variable: it consists of several objects.
    mixed: Vec<bool>,
}

impl Variables {
    pub fn of(trace: &Trace) -> Variables {
        let mut sizes: Vec<u64> = vec![0; trace.objects.len()];
        for event in trace.events.iter().filter(|event| event.kind.is_access()) {
            let size = &mut sizes[event.object.index()];
            *size = (*size).max(u64::from(event.size)).max(1);
        }
        let mut blocks: HashMap<Block<'_>, Vec<(i128, ObjectIndex)>> = HashMap::new();
        let mut offset = Vec::with_capacity(trace.objects.len());
        for (index, object) in trace.objects.iter().enumerate() {
            let (block, start) = block(&object.name, ObjectIndex::at(index));
            offset.push(start);
            if sizes[index] > 0 {
                blocks.entry(block).or_default().push((start, ObjectIndex::at(index)));
            }
        }
        let mut variables =
            Variables { of: vec![Variable::default(); trace.objects.len()], offset, mixed: Vec::new() };
        let mut blocks: Vec<_> = blocks.into_values().collect();
        blocks.sort();
        for mut objects in blocks {
            objects.sort_unstable();
            variables.group(&objects, &sizes);
        }
        variables
    }

    /// Gives each run of overlapping objects of one block a variable.
    fn group(&mut self, objects: &[(i128, ObjectIndex)], sizes: &[u64]) {
        let mut end = None;
        for &(start, object) in objects {
            if end.is_some_and(|end| start < end) {
                *self.mixed.last_mut().expect("an object came before") = true;
            } else {
                self.mixed.push(false);
            }
            let own_end = start + i128::from(sizes[object.index()]);
            end = Some(end.map_or(own_end, |end: i128| end.max(own_end)));
            self.of[object.index()] = Variable::at(self.mixed.len() - 1);
        }
    }

    pub fn count(&self) -> usize {
        self.mixed.len()
    }

    /// The variable that an access is to.
    pub fn variable(&self, event: &Event) -> Variable {
        self.of[event.object.index()]
    }

    /// Accesses to it may touch different bytes.
    pub fn is_mixed(&self, variable: Variable) -> bool {
        self.mixed[variable.index()]
    }

    /// The two accesses have a byte in common.
    pub fn overlap(&self, a: &Event, b: &Event) -> bool {
        let range = |event: &Event| {
            let start = self.offset[event.object.index()];
            (start, start + i128::from(event.size.max(1)))
        };
        let ((a_start, a_end), (b_start, b_end)) = (range(a), range(b));
        self.variable(a) == self.variable(b) && a_start < b_end && b_start < a_end
    }
}

/// What an object lies in.
#[derive(PartialEq, Eq, Hash)]
enum Block<'t> {
    Global(&'t str),
    Heap {
        site: StackIndex,
        thread: ThreadIndex,
        ordinal: u32,
    },
    Stack(ThreadIndex),
    Memory,
    /// Something that overlaps nothing.
    Own(ObjectIndex),
}

fn block(name: &ObjectName, index: ObjectIndex) -> (Block<'_>, i128) {
    match name {
        ObjectName::Global { symbol, offset } => (Block::Global(symbol), (*offset).into()),
        &ObjectName::Heap { site, thread, ordinal, offset } => {
            (Block::Heap { site, thread, ordinal }, offset.into())
        }
        &ObjectName::Stack { thread, offset } => (Block::Stack(thread), offset.into()),
        &ObjectName::Memory { address } => (Block::Memory, address.into()),
        ObjectName::None | ObjectName::Thread(_) => (Block::Own(index), 0),
    }
}
