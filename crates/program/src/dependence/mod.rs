//! Which loads feed each branch, store, address, lock and indirect call.
//!
//! A dependence is followed backwards through registers, flags, locals on the stack, calls and arguments, until it comes
//! to a load from memory that is not a local. There it ends: which store such a load reads from is known to a run
//! only. A load that decides an address, or which of several values is taken, is told apart from one that a value is
//! computed from, because methods treat these by rules of their own.
//!
//! Where the code cannot be followed, the result has a [`Gap`], and is a part of what there may be. Two things are not
//! said by a gap. A load through a pointer ends the way also where the pointer leads to a local of a caller: what the
//! caller put there is found by the store, in the run. And what the C library does is taken from a table of names. A
//! result may be too much: a store to a place that is not known exactly counts as a store to every place it may be.
//!
//! `effect` says what an instruction reads and writes, in terms of the places of `location`. `tracking` follows
//! addresses forward, so that locals are known (`pointer`, `cells`). `values` is the graph that is walked backwards.
//! `summary` is what a call does; it comes from `summarize` for a function with code, and from `library` for others.
//! `analysis` puts these together, function after function, and `callers` goes on from arguments. `targets` lists what is
//! asked for.

mod analysis;
mod callers;
mod cells;
mod code;
mod effect;
mod library;
mod location;
mod pointer;
mod summarize;
mod summary;
mod targets;
mod tracking;
mod values;

use std::sync::Arc;

pub(crate) use analysis::DependenceCache;

use crate::flow::ModuleCode;

/// A load, by where it is in the code. Addresses are as linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    /// The instruction that loads. For an atomic operation or a library function, the call.
    pub address: u64,
    /// Where the hook returns to that announces the load, which is what the events of a trace are known by.
    pub hook: Option<u64>,
}

/// Why a set of loads may not have all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// What the indirect call at this address calls is not known.
    IndirectCall(u64),
    /// A function whose code is not in the file.
    External(Arc<str>),
    /// The function with this entry can be called from places that are not known, with other arguments.
    UnknownCallers(u64),
    /// The function with this entry is called from too many places. Not all of them were looked at.
    ManyCallers(u64),
    /// Arguments come from further up than calls were followed.
    DeepCalls,
    /// Functions that call each other did not settle.
    Recursion,
    /// There are more loads than are counted.
    TooManySources,
    /// The stack pointer could not be followed in the function with this entry.
    StackPointer(u64),
    /// Where the jump at this address leads to is not known.
    UnresolvedJump(u64),
}

/// The loads that something depends on. Each list is in order of address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadSet {
    /// The value is computed from these.
    pub value: Vec<Load>,
    /// These decide from where a value is loaded.
    pub through_address: Vec<Load>,
    /// These decide which of several values is taken.
    pub through_control: Vec<Load>,
    /// Why there may be more. None if the set is complete.
    pub gaps: Vec<Gap>,
}

impl LoadSet {
    /// Nothing can be missing.
    pub fn is_complete(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The loads of all three kinds.
    pub fn all(&self) -> impl Iterator<Item = &Load> {
        self.value.iter().chain(&self.through_address).chain(&self.through_control)
    }
}

/// Something that depends on loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The instruction, as linked.
    pub address: u64,
    /// Where the hook returns to that announces an access; where a call returns to.
    pub hook: Option<u64>,
    pub loads: LoadSet,
}

/// What the branches, stores and so on of one function depend on. Each list is in order of address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionDependence {
    pub entry: u64,
    /// Conditional branches, and jumps through a table.
    pub branches: Vec<Dependent>,
    /// The values that are stored to memory other than locals.
    pub stores: Vec<Dependent>,
    /// The addresses of loads and stores of memory other than locals.
    pub addresses: Vec<Dependent>,
    /// Which lock, atomic variable or other synchronisation object a call is about. There is one entry for each
    /// such argument.
    pub locks: Vec<Dependent>,
    /// Which function is called.
    pub indirect_calls: Vec<Dependent>,
}

impl ModuleCode<'_> {
    /// What the branches, stores and so on of the function that is entered at `entry` depend on. It is computed on first
    /// use and kept, with what it needs of the functions that are called. `None` if there is no code.
    pub fn dependence(&self, entry: u64) -> Option<Arc<FunctionDependence>> {
        analysis::Analysis::new(*self).function(entry)
    }
}
