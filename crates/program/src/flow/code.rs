//! [`ModuleCode`]: what can be asked about the code of one file, and what was computed already.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::call_graph::CallGraph;
use super::descent::Descent;
use super::function::{BlockEnd, BlockIndex, Callee, Flow};
use super::pieces::{self, Pieces};
use super::stores::ConstantStores;
use super::{access, blocks, no_return, pointer};
use crate::distance::CodeGraph;
use crate::image::Image;
use crate::kept_graph;
use crate::symbols::Kind;
use crate::unpoisoned;

/// What is known of the control flow of a file. Everything is computed on first use, one function at a time.
#[derive(Default)]
pub(crate) struct FlowCache {
    pieces: OnceLock<Pieces>,
    /// By entry.
    flows: Mutex<HashMap<u64, Arc<Flow>>>,
    /// Whether a function may return, by entry.
    pub(super) returns: Mutex<HashMap<u64, bool>>,
    /// The functions that parts belong to, by start of the part, found by going through all code.
    owners: OnceLock<HashMap<u64, u64>>,
    call_graph: OnceLock<CallGraph>,
    stores: OnceLock<ConstantStores>,
    graph: OnceLock<CodeGraph>,
}

impl FlowCache {
    /// The control flow of a function if every call returns that is not known by name never to do so.
    pub(super) fn decode(image: &Image, entry: u64) -> Option<Flow> {
        let pieces = image.flows.pieces(image);
        let descent = Descent::from(image, pieces, entry)?;
        let mut flow = blocks::flow(&descent, pieces, entry)?;
        pointer::resolve(image, pieces, &mut flow);
        Some(flow)
    }

    pub(super) fn pieces(&self, image: &Image) -> &Pieces {
        self.pieces.get_or_init(|| Pieces::of(image))
    }
}

/// The code of one file of a program: the executable or a shared object. All addresses are as linked.
#[derive(Clone, Copy)]
pub struct ModuleCode<'program> {
    pub(super) image: &'program Image,
    bias: u64,
}

impl<'program> ModuleCode<'program> {
    pub(crate) fn new(image: &'program Image, bias: u64) -> ModuleCode<'program> {
        ModuleCode { image, bias }
    }

    pub(crate) fn image(&self) -> &'program Image {
        self.image
    }

    /// The memory at an address keeps what the file or the loader put there.
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        self.pieces().is_constant(address)
    }

    /// An address of the process as linked.
    pub fn linked(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }

    /// The address in the process of an address as linked.
    pub fn relocated(&self, linked: u64) -> u64 {
        linked.wrapping_add(self.bias)
    }

    pub(super) fn pieces(&self) -> &'program Pieces {
        self.image.flows.pieces(self.image)
    }

    /// The entries of all functions, by address.
    pub fn functions(&self) -> Vec<u64> {
        let owners = self.owners();
        let starts = self.pieces().all().iter().map(|piece| piece.start);
        starts.filter(|&start| !owners.contains_key(&start) && !self.is_part(start)).collect()
    }

    /// The entry of the function that has the code at `address`, which may be in a part of it that is elsewhere.
    pub fn function_at(&self, address: u64) -> Option<u64> {
        let start = self.pieces().at(address)?.start;
        if !self.is_part(start) {
            return Some(start);
        }
        let named = pieces::cold_part_of(self.image, start)
            .into_iter()
            .flat_map(|stem| self.image.symbols.named(stem).filter(|symbol| symbol.kind == Kind::Function));
        let has_part = |entry: &u64| {
            self.flow(*entry).is_some_and(|flow| flow.ranges.iter().any(|range| range.start == start))
        };
        let named = named.map(|symbol| symbol.address).find(has_part);
        named.or_else(|| self.owners().get(&start).copied()).or(Some(start))
    }

    /// A piece of code that does not begin a function, as far as it tells by itself.
    fn is_part(&self, start: u64) -> bool {
        self.pieces().is_part(self.image, start)
    }

    fn owners(&self) -> &'program HashMap<u64, u64> {
        self.image.flows.owners.get_or_init(|| self.pieces().owners(self.image))
    }

    /// The control flow of the function that is entered at `entry`; `None` if there is no code.
    pub fn flow(&self, entry: u64) -> Option<Arc<Flow>> {
        if let Some(known) = unpoisoned(&self.image.flows.flows).get(&entry) {
            return Some(Arc::clone(known));
        }
        let flow = Arc::new(self.decode(entry)?);
        unpoisoned(&self.image.flows.flows).insert(entry, Arc::clone(&flow));
        Some(flow)
    }

    /// The same without keeping it, for those who look at every function once.
    pub fn decode(&self, entry: u64) -> Option<Flow> {
        let mut flow = FlowCache::decode(self.image, entry)?;
        for block in &mut flow.blocks {
            if let (BlockEnd::Call, Some(call)) = (&block.end, &block.call)
                && let Callee::Function(callee) = call.callee
                && !self.may_return(callee)
            {
                block.end = BlockEnd::NoReturn;
                block.successors = call.landing_pad.into_iter().collect();
            }
        }
        Some(flow)
    }

    /// Whether a function can return to its caller, for all that is known.
    pub fn may_return(&self, entry: u64) -> bool {
        no_return::may_return(self.image, entry)
    }

    /// The linkage name of the function that starts at `entry`.
    pub fn name(&self, entry: u64) -> Option<&'program str> {
        Some(&self.image.symbols.starting_at(entry, Kind::Function)?.name)
    }

    /// The function that other modules find by this linkage name.
    pub fn definition(&self, name: &str) -> Option<u64> {
        self.image.symbols.definition(name).map(|symbol| symbol.address)
    }

    /// The linkage name of what a call leads to, if it has one.
    pub fn callee_name<'call>(&self, callee: &'call Callee) -> Option<&'call str>
    where
        'program: 'call,
    {
        match callee {
            Callee::Function(entry) => self.name(*entry),
            Callee::Import(name) => Some(name),
            Callee::Indirect => None,
        }
    }

    /// The address of the load or store that the call at the end of a block announces to the runtime: a call of
    /// `__tsan_read4` and the like. `None` where that cannot be told, and for other calls.
    pub fn announced_access(&self, flow: &Flow, block: BlockIndex) -> Option<u64> {
        let call = flow[block].call.as_ref()?;
        access::behind(flow, block, self.callee_name(&call.callee)?)
    }

    /// The variable that the instruction at `address` loads or stores, if it names it as a constant: its address as linked.
    pub fn fixed_address(&self, address: u64) -> Option<u64> {
        let flow = self.flow(self.function_at(address)?)?;
        let mut instructions = flow.instructions(flow.block_at(address)?);
        let access = instructions.find(|access| access.ip() == address)?;
        access.is_ip_rel_memory_operand().then(|| access.ip_rel_memory_address())
    }

    /// The places that store to a variable at this address, where the code names it as a constant: the addresses that
    /// the hooks return to. Found by going through all functions on first use; none in a file with very many of them.
    pub fn stores_to(&self, address: u64) -> &'program [u64] {
        self.image.flows.stores.get_or_init(|| ConstantStores::of(self)).to(address)
    }

    /// The blocks of all functions of the file, for distances; made on first use, or kept from an earlier one.
    pub(crate) fn graph(&self) -> &'program CodeGraph {
        let make = || CodeGraph::of(self);
        let Image { flows, .. } = self.image;
        flows.graph.get_or_init(|| {
            kept_graph::kept_or_made(self.image.build_id().as_deref(), self.image.bytes().len(), make)
        })
    }

    /// The calls between all functions of the file; found by decoding all of them on first use.
    pub fn call_graph(&self) -> &'program CallGraph {
        self.image.flows.call_graph.get_or_init(|| CallGraph::of(self))
    }
}
