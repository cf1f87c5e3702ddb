//! What one instruction reads and writes.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::location::{self, Location, Written};

/// What an instruction reads and writes, apart from the stack pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    /// What the written values are computed from.
    pub(super) reads: Vec<Location>,
    /// What addresses are computed from.
    pub(super) address_reads: Vec<Location>,
    pub(super) writes: Vec<Written>,
    pub(super) memory: Vec<MemoryAccess>,
}

/// A memory operand, also an implied one.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryAccess {
    /// `fs` for the thread's own memory.
    pub(super) segment: Register,
    pub(super) base: Register,
    pub(super) index: Register,
    pub(super) scale: u32,
    pub(super) displacement: i64,
    /// Zero where it is not known, as for repeated string instructions.
    pub(super) size: u32,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// It may be left as it is.
    pub(super) conditional: bool,
}

/// Reads effects out of instructions.
pub(super) struct Effects {
    factory: InstructionInfoFactory,
}

impl Effects {
    pub(super) fn new() -> Effects {
        Effects { factory: InstructionInfoFactory::new() }
    }

    pub(super) fn of(&mut self, at: &Instruction) -> Effect {
        let mut effect = Effect::default();
        let is_call = matches!(at.mnemonic(), Mnemonic::Call | Mnemonic::Ret);
        if at.mnemonic() == Mnemonic::Nop || at.mnemonic() == Mnemonic::Endbr64 {
            return effect;
        }
        let info = self.factory.info(at);
        for used in info.used_memory() {
            // What a call pushes is its return address.
            if is_call && used.base() == Register::RSP && location::writes(used.access()) {
                continue;
            }
            let access = used.access();
            let repeated = at.has_rep_prefix() || at.has_repne_prefix();
            let is_string = at.is_string_instruction();
            let size = if repeated && is_string { 0 } else { used.memory_size().size() };
            effect.memory.push(MemoryAccess {
                segment: used.segment(),
                base: used.base(),
                index: used.index(),
                scale: used.scale(),
                displacement: used.displacement().cast_signed(),
                size: u32::try_from(size).unwrap_or_default(),
                reads: location::reads(access),
                writes: location::writes(access),
                conditional: location::is_conditional(access) || (repeated && is_string),
            });
        }
        let is_operand = |register: Register| {
            (0..at.op_count()).any(|operand| {
                at.op_kind(operand) == OpKind::Register
                    && at.op_register(operand).full_register() == register.full_register()
                    && location::reads(info.op_access(operand))
            })
        };
        let in_address = |register: Register| {
            let full = register.full_register();
            info.used_memory()
                .iter()
                .any(|used| used.base().full_register() == full || used.index().full_register() == full)
        };
        for used in info.used_registers() {
            let (register, access) = (used.register(), used.access());
            if register.full_register() == Register::RSP {
                continue;
            }
            if location::reads(access) {
                let addressing = in_address(register);
                if addressing {
                    location::read_by(register, &mut effect.address_reads);
                }
                if !addressing || is_operand(register) {
                    location::read_by(register, &mut effect.reads);
                }
            }
            if location::writes(access) {
                let conditional = location::is_conditional(access);
                location::written_by(register, conditional, &mut effect.writes);
            }
        }
        // The registers of the floating-point stack move with every push and pop, and are taken as one.
        let stack = at.fpu_stack_increment_info();
        let names_stack = (0..at.op_count())
            .any(|operand| at.op_kind(operand) == OpKind::Register && at.op_register(operand).is_st());
        if stack.increment() != 0 || stack.writes_top() || names_stack {
            location::read_by(Register::ST0, &mut effect.reads);
            location::written_by(Register::ST0, false, &mut effect.writes);
        }
        effect.reads.extend(location::flags(at.rflags_read()));
        let written = location::flags(at.rflags_modified());
        effect.writes.extend(written.map(|location| Written { location, keeps_old: false }));
        effect
    }
}
