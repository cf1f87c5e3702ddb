//! Which functions of a file call which.
//!
//! Calls, tail calls and calls through the linker's stubs are known. A call through a pointer may lead to every function
//! whose address is taken: by an instruction, or by data such as a virtual table. This is not narrowed by types, because
//! C allows a function to be called through a pointer of another type, and optimised code does not show the type.

use std::collections::{BTreeSet, HashMap, HashSet};

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use object::elf::{
    SHF_ALLOC, SHF_EXECINSTR, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_PREINIT_ARRAY, SHT_PROGBITS,
};
use object::read::elf::SectionHeader as _;
use object::{Object as _, ObjectSection as _, SectionFlags};

use super::callee;
use super::code::ModuleCode;
use super::function::{BlockEnd, BlockIndex, Callee, Flow};
use super::straight;
use crate::image::{Elf, Slot};

/// The calls of all functions of a file. Addresses are as linked.
#[derive(Debug, Default)]
pub struct CallGraph {
    /// By entry.
    functions: HashMap<u64, Vec<CallSite>>,
    /// The functions that call a function by its address, by callee.
    callers: HashMap<u64, Vec<u64>>,
    address_taken: Vec<u64>,
}

/// A call that a function makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The address behind the instruction.
    pub return_address: u64,
    pub callee: Callee,
    /// A jump to the callee, which then returns to the caller's caller.
    pub is_tail: bool,
    /// The callee starts a thread, which begins with this function.
    pub starts_thread_at: Option<u64>,
}

/// Functions that start a thread, and the register with the address of its first function.
const THREAD_STARTERS: [(&str, Register); 3] = [
    ("pthread_create", Register::RDX),
    ("__pthread_create_2_1", Register::RDX),
    ("thrd_create", Register::RSI),
];

/// The function with this name starts a thread with a function that it is given.
pub(crate) fn is_thread_starter(name: &str) -> bool {
    THREAD_STARTERS.iter().any(|(starter, _)| *starter == name)
}

impl CallGraph {
    /// The calls of a function, by address.
    pub fn calls(&self, entry: u64) -> &[CallSite] {
        self.functions.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// All functions with code, in no order.
    pub fn functions(&self) -> impl Iterator<Item = u64> {
        self.functions.keys().copied()
    }

    /// The functions that call `entry` other than through a pointer, or start a thread with it.
    pub fn callers(&self, entry: u64) -> &[u64] {
        self.callers.get(&entry).map_or(&[], Vec::as_slice)
    }

    /// The functions that a call through a pointer may lead to, by address.
    pub fn indirect_targets(&self) -> &[u64] {
        &self.address_taken
    }

    pub(super) fn of(module: &ModuleCode<'_>) -> CallGraph {
        let mut graph = CallGraph::default();
        let entries = module.functions();
        let mut taken = Taken {
            entries: entries.iter().copied().collect(),
            found: BTreeSet::new(),
            slots: HashSet::new(),
        };
        for entry in entries {
            let Some(flow) = module.decode(entry) else { continue };
            for at in flow.indices().flat_map(|block| flow.instructions(block)) {
                taken.look_at(&at);
            }
            let sites = calls(module, &flow);
            for site in &sites {
                let called = match site.callee {
                    Callee::Function(callee) => Some(callee),
                    _ => None,
                };
                for callee in called.into_iter().chain(site.starts_thread_at) {
                    graph.callers.entry(callee).or_default().push(entry);
                }
            }
            graph.functions.insert(entry, sites);
        }
        graph.callers.values_mut().for_each(Vec::dedup);
        taken.look_at_data(module);
        graph.address_taken = taken.found.into_iter().collect();
        graph
    }
}

fn calls(module: &ModuleCode<'_>, flow: &Flow) -> Vec<CallSite> {
    let calls = flow.indices().filter_map(|block| Some((block, flow[block].call.as_ref()?)));
    calls
        .map(|(block, call)| CallSite {
            return_address: call.return_address,
            callee: call.callee.clone(),
            is_tail: matches!(flow[block].end, BlockEnd::TailCall | BlockEnd::ConditionalTailCall),
            starts_thread_at: thread_start(module, flow, block, &call.callee),
        })
        .collect()
}

/// The function that a started thread begins with, if the address is a constant of the code.
fn thread_start(module: &ModuleCode<'_>, flow: &Flow, block: BlockIndex, callee: &Callee) -> Option<u64> {
    let name = module.callee_name(callee)?;
    let (_, register) = THREAD_STARTERS.iter().find(|(starter, _)| *starter == name)?;
    let (value, _) = straight::argument(flow, &flow.predecessors(), block, *register)?;
    let constant = value.linear.as_constant().map(i64::cast_unsigned);
    let slot = || value.entry.filter(|entry| entry.base.is_none())?.address.as_constant();
    let through = |slot: i64| match callee::through(module.image, module.pieces(), slot.cast_unsigned()) {
        Callee::Function(function) => Some(function),
        _ => None,
    };
    constant.or_else(|| slot().and_then(through)).filter(|&function| module.pieces().is_code(function))
}

/// Collects the functions whose address is taken.
struct Taken {
    entries: HashSet<u64>,
    found: BTreeSet<u64>,
    /// Fixed addresses that instructions read, other than to call what is there.
    slots: HashSet<u64>,
}

impl Taken {
    fn note(&mut self, address: u64) {
        if self.entries.contains(&address) {
            self.found.insert(address);
        }
    }

    fn look_at(&mut self, at: &Instruction) {
        let is_call = matches!(at.mnemonic(), Mnemonic::Call | Mnemonic::Jmp);
        for operand in 0..at.op_count() {
            match at.op_kind(operand) {
                OpKind::Memory if at.is_ip_rel_memory_operand() => {
                    let address = at.ip_rel_memory_address();
                    if at.mnemonic() == Mnemonic::Lea {
                        self.note(address);
                    } else if !is_call {
                        self.slots.insert(address);
                    }
                }
                OpKind::Memory => self.note(at.memory_displacement64()),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    self.note(at.immediate(operand));
                }
                _ => {}
            }
        }
    }

    /// Looks for addresses in data: what the loader fills in, and words of the file.
    fn look_at_data(&mut self, module: &ModuleCode<'_>) {
        let Ok(elf) = Elf::parse(&**module.image.bytes()) else { return };
        let mut offset_tables = Vec::new();
        for section in elf.sections() {
            let range = section.address()..section.address().saturating_add(section.size());
            if section.name().is_ok_and(|name| name.starts_with(".got")) {
                offset_tables.push(range);
            } else if is_data(&section) {
                for word in section.data().unwrap_or_default().chunks_exact(8) {
                    word.try_into().ok().map(u64::from_le_bytes).into_iter().for_each(|word| self.note(word));
                }
            }
        }
        for (slot, target) in module.image.slots() {
            // What is only called through its slot has no address that anyone could keep.
            let is_for_calls =
                offset_tables.iter().any(|range| range.contains(slot)) && !self.slots.contains(slot);
            match target {
                _ if is_for_calls => {}
                Slot::Address(target) | Slot::Resolver(target) => self.note(*target),
                Slot::Symbol(name) => {
                    let own = module.image.symbols.definition(name).map(|symbol| symbol.address);
                    own.into_iter().for_each(|address| self.note(address));
                }
            }
        }
    }
}

/// Tables of the linker's name every function that others may use. They take no address.
fn is_data(section: &object::read::elf::ElfSection64<'_, '_, object::LittleEndian>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    let kind = section.elf_section_header().sh_type(object::LittleEndian);
    let is_program = matches!(kind, SHT_PROGBITS | SHT_INIT_ARRAY | SHT_FINI_ARRAY | SHT_PREINIT_ARRAY);
    is_program && sh_flags.contains(SHF_ALLOC) && !sh_flags.contains(SHF_EXECINSTR)
}
