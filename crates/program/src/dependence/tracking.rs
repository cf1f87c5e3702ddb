//! Follows addresses forward through a function: which operands are in its own frame, and where.
//!
//! Compilers address locals by the stack pointer, by a frame pointer, or by a copy of either that may itself have been
//! kept in a local. All of these are followed. What is found out decides which loads are locals, and which calls and
//! stores may change a local.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::code::Code;
use super::effect::{Effect, MemoryAccess};
use super::location::{self, ARGUMENTS, RAX, RBP, RDX, RSP};
use super::pointer::{Base, Place, Pointer, Unknown};
use super::summary::Summary;

/// Distance that is put between parts of the frame whose distance is known at run time only.
const APART: i64 = 1 << 40;
/// A function whose addresses have not settled after so many passes is given up, and that is said.
const MAX_PASSES: usize = 16;

/// What is known of the addresses in a function.
pub(super) struct Tracking {
    /// For each instruction the place of each of its memory operands.
    pub(super) places: Vec<Vec<Place>>,
    /// For each block with a call, what is passed.
    pub(super) calls: Vec<Option<Passed>>,
    /// The lowest offset of the frame whose address was stored or given away for good.
    pub(super) exposed: Option<i64>,
    /// Argument registers whose pointer was stored or given away for good, as bits.
    pub(super) leaked: u16,
    /// `rax` and `rdx` at the returns.
    pub(super) returned: [Pointer; 2],
    /// The stack pointer could not be followed everywhere.
    pub(super) is_lost: bool,
}

/// What a call is given.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) registers: [Pointer; 16],
    /// The stack pointer before the call, from that at the entry.
    pub(super) stack: Option<i64>,
}

#[derive(Clone, PartialEq)]
struct State {
    registers: [Pointer; 16],
    /// What is known of 8-byte parts of the frame, by offset.
    slots: Vec<(i64, Pointer)>,
}

struct Tracker<'a> {
    code: &'a Code,
    is_read_only: &'a dyn Fn(u64) -> bool,
    exposed: Option<i64>,
    leaked: u16,
    /// Arguments that were stored in the frame: they are leaked if that part of the frame is exposed.
    kept: Vec<(i64, u8)>,
    is_lost: bool,
}

/// Follows the addresses in a function. `effects` loses what has a fixed value: it depends on nothing.
pub(super) fn track(code: &mut Code, is_read_only: &dyn Fn(u64) -> bool) -> Tracking {
    let mut tracker =
        Tracker { code, is_read_only, exposed: None, leaked: 0, kept: Vec::new(), is_lost: false };
    let (mut states, mut is_settled) = (Vec::new(), false);
    for _ in 0..MAX_PASSES {
        let before = (tracker.exposed, tracker.leaked);
        states = tracker.settle();
        tracker.leak_what_was_kept();
        is_settled = (tracker.exposed, tracker.leaked) == before;
        if is_settled {
            break;
        }
    }
    let mut fixed = Vec::new();
    let mut tracking = tracker.record(states, &mut fixed);
    tracking.is_lost |= !is_settled;
    for (effect, fixed) in code.effects.iter_mut().zip(fixed) {
        let is_fixed = |location: &location::Location| location.0 < 32 && fixed >> (location.0 / 2) & 1 == 1;
        effect.reads.retain(|location| !is_fixed(location));
        effect.address_reads.retain(|location| !is_fixed(location));
    }
    tracking
}

impl Tracker<'_> {
    /// The state at the start of each block, once it no longer changes.
    fn settle(&mut self) -> Vec<Option<State>> {
        let mut states: Vec<Option<State>> = vec![None; self.code.blocks.len()];
        let mut registers = [Pointer::OUTSIDE; 16];
        for (number, register) in registers.iter_mut().enumerate() {
            *register = Pointer::At(Base::Argument(number as u8), 0);
        }
        registers[usize::from(RSP)] = Pointer::At(Base::Frame, 0);
        states[self.code.entry()] = Some(State { registers, slots: Vec::new() });
        let mut open = std::collections::BTreeSet::from([self.code.entry()]);
        while let Some(block) = open.pop_first() {
            let Some(mut state) = states[block].clone() else { continue };
            for instruction in self.code.blocks[block].clone() {
                self.step(&mut state, instruction);
            }
            let without_call = self.code.continues_without_call(block);
            if let Some(summary) = self.code.calls[block].clone().filter(|_| !without_call) {
                self.call(&mut state, &summary);
            }
            let probed = self.end_of_probing(block, &state);
            for (number, next) in self.code.flow.blocks[block].successors.iter().enumerate() {
                let mut arriving = state.clone();
                if let Some(reached) = probed.filter(|_| number > 0) {
                    arriving.registers[usize::from(RSP)] = reached;
                }
                if merge(&mut states[next.index()], arriving) {
                    open.insert(next.index());
                }
            }
        }
        states
    }

    /// The stack pointer behind a loop that touches each page of a large frame, which ends when it equals a register.
    fn end_of_probing(&self, block: usize, state: &State) -> Option<Pointer> {
        let [.., compare, branch] = self.code.instructions.get(self.code.blocks[block].clone())? else {
            return None;
        };
        let compares = compare.mnemonic() == Mnemonic::Cmp
            && compare.op0_kind() == OpKind::Register
            && compare.op1_kind() == OpKind::Register
            && compare.op0_register() == Register::RSP;
        let limit = location::general(compare.op1_register()).filter(|_| compares)?;
        (branch.mnemonic() == Mnemonic::Jne).then(|| state.registers[usize::from(limit)])
    }

    fn leak_what_was_kept(&mut self) {
        if let Some(exposed) = self.exposed {
            let reached = self.kept.iter().filter(|(offset, _)| (*offset < 0) == (exposed < 0));
            self.leaked |= reached.fold(0, |bits, (_, register)| bits | 1 << register);
        }
    }

    fn record(&mut self, states: Vec<Option<State>>, fixed: &mut Vec<u16>) -> Tracking {
        let mut tracking = Tracking {
            places: vec![Vec::new(); self.code.instructions.len()],
            calls: vec![None; self.code.blocks.len()],
            exposed: self.exposed,
            leaked: self.leaked,
            returned: [Pointer::Unset; 2],
            is_lost: false,
        };
        fixed.resize(self.code.instructions.len(), 0);
        self.is_lost = false;
        let is_exit: std::collections::HashSet<usize> = self.code.exits().collect();
        for (block, state) in states.into_iter().enumerate() {
            let Some(mut state) = state else { continue };
            for instruction in self.code.blocks[block].clone() {
                let memory = &self.code.effects[instruction].memory;
                tracking.places[instruction] =
                    memory.iter().map(|access| self.place(&state, access)).collect();
                let registers = state.registers.iter().enumerate();
                fixed[instruction] = registers
                    .fold(0, |bits, (number, register)| bits | u16::from(register.is_fixed()) << number);
                self.step(&mut state, instruction);
            }
            if let Some(summary) = self.code.calls[block].clone() {
                let stack = match state.registers[usize::from(RSP)] {
                    Pointer::At(Base::Frame, offset) => Some(offset),
                    _ => None,
                };
                tracking.calls[block] = Some(Passed { registers: state.registers, stack });
                self.call(&mut state, &summary);
            }
            if is_exit.contains(&block) {
                let now = [RAX, RDX].map(|register| state.registers[usize::from(register)]);
                tracking.returned = [0, 1].map(|n| tracking.returned[n].join(now[n]));
            }
        }
        tracking.is_lost = self.is_lost;
        tracking
    }

    fn address(&self, state: &State, access: &MemoryAccess) -> Pointer {
        if matches!(access.segment, Register::FS | Register::GS) {
            return Pointer::OUTSIDE;
        }
        let value = |register: Register| match location::general(register) {
            Some(number) => state.registers[usize::from(number)],
            None if register == Register::None || register == Register::RIP => Pointer::Constant(0),
            None => Pointer::OUTSIDE,
        };
        let index = value(access.index).times(access.scale);
        value(access.base).combine(index).plus(access.displacement)
    }

    fn place(&self, state: &State, access: &MemoryAccess) -> Place {
        let constant = |register: Register| match location::general(register) {
            Some(number) => state.registers[usize::from(number)],
            None => Pointer::OUTSIDE,
        };
        let address = self.address(state, access);
        let table = match (address, constant(access.base), constant(access.index)) {
            (Pointer::Constant(at), _, _) => Some(at),
            (_, Pointer::Constant(at), _) => Some(at.wrapping_add(access.displacement)),
            (_, _, Pointer::Constant(at)) if access.scale == 1 => Some(at.wrapping_add(access.displacement)),
            _ => None,
        };
        if table.is_some_and(|at| (self.is_read_only)(at.cast_unsigned())) {
            return Place::ReadOnly;
        }
        Place::of(address, access.size)
    }

    fn step(&mut self, state: &mut State, instruction: usize) {
        let (at, effect) = (&self.code.instructions[instruction], &self.code.effects[instruction]);
        let stored = stored_value(state, at, effect);
        let loaded = self.loaded_value(state, effect);
        for access in effect.memory.iter().filter(|access| access.writes) {
            let place = self.place(state, access);
            self.store(
                state,
                place,
                if access.size == 8 { stored } else { Pointer::ANY },
                access.conditional,
            );
            if access.size != 8 && stored.base().is_some() {
                self.escape(stored);
            }
        }
        let results = results(state, at, effect, loaded);
        for written in &effect.writes {
            // An address that goes into a vector register is not followed further.
            if written.location.0 >= 32 && written.location.0 < 104 {
                self.escape(stored);
            }
        }
        for (register, value, conditional) in results {
            let old = state.registers[usize::from(register)];
            state.registers[usize::from(register)] = if conditional { old.join(value) } else { value };
        }
        self.move_stack(state, at);
    }

    /// The stack pointer behind an instruction.
    fn move_stack(&mut self, state: &mut State, at: &Instruction) {
        let stack = usize::from(RSP);
        let now = state.registers[stack];
        let on_stack = at.op0_kind() == OpKind::Register && at.op0_register() == Register::RSP;
        state.registers[stack] = match at.mnemonic() {
            Mnemonic::Push => now.plus(-8),
            Mnemonic::Pop if on_stack => Pointer::ANY,
            Mnemonic::Pop => now.plus(8),
            Mnemonic::Pushfq => now.plus(-8),
            Mnemonic::Popfq => now.plus(8),
            Mnemonic::Leave => state.registers[usize::from(RBP)].plus(8),
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And if on_stack => {
                let amount = match at.op1_kind() {
                    OpKind::Register => {
                        location::general(at.op1_register()).map(|r| state.registers[usize::from(r)])
                    }
                    _ => at.try_immediate(1).ok().map(|value| Pointer::Constant(value.cast_signed())),
                };
                match (at.mnemonic(), amount) {
                    (Mnemonic::Add, Some(Pointer::Constant(amount))) => now.plus(amount),
                    (Mnemonic::Sub, Some(Pointer::Constant(amount))) => now.plus(amount.wrapping_neg()),
                    _ => now.plus(-APART),
                }
            }
            Mnemonic::Lea if on_stack => results_of_lea(state, at),
            Mnemonic::Mov if on_stack => match location::general(at.op1_register()) {
                Some(from) if at.op1_kind() == OpKind::Register => state.registers[usize::from(from)],
                _ => Pointer::ANY,
            },
            _ => now,
        };
        if at.mnemonic() == Mnemonic::Leave {
            let saved = now_slot(state, state.registers[stack].plus(-8));
            state.registers[usize::from(RBP)] = saved;
        }
        self.is_lost |= !matches!(state.registers[stack], Pointer::At(Base::Frame, _));
    }

    /// The value that an instruction loads, as an address.
    fn loaded_value(&self, state: &State, effect: &Effect) -> Option<Pointer> {
        let access = effect.memory.iter().find(|access| access.reads)?;
        Some(match self.place(state, access) {
            _ if access.size < 8 && access.size > 0 => Pointer::OUTSIDE,
            Place::Frame { offset, size: 8 } => now_slot(state, Pointer::At(Base::Frame, offset)),
            _ => Pointer::ANY,
        })
    }

    fn store(&mut self, state: &mut State, place: Place, value: Pointer, conditional: bool) {
        match (place, value.base()) {
            (Place::Frame { offset, .. }, Some(Base::Argument(register))) => {
                self.kept.push((offset, register));
            }
            _ => self.escape(value),
        }
        match place {
            Place::Frame { offset, size } => {
                let value = if conditional {
                    now_slot(state, Pointer::At(Base::Frame, offset)).join(value)
                } else {
                    value
                };
                forget(state, offset, offset.saturating_add(size.into()));
                if size == 8 && value != Pointer::ANY {
                    let position = state.slots.partition_point(|(known, _)| *known < offset);
                    state.slots.insert(position, (offset, value));
                }
            }
            Place::SomewhereInFrame => state.slots.clear(),
            Place::Unknown(unknown) => self.forget_reachable(state, unknown),
            Place::Argument { .. } | Place::ReadOnly => {}
        }
    }

    fn forget_reachable(&mut self, state: &mut State, unknown: Unknown) {
        self.leaked |= unknown.arguments();
        if unknown.may_be_frame() {
            state.slots.clear();
        } else if let Some(exposed) = self.exposed.filter(|_| unknown.may_be_exposed) {
            forget_around(state, exposed);
        }
    }

    /// An address is put where it is not followed.
    fn escape(&mut self, value: Pointer) {
        let expose = |exposed: Option<i64>, offset: i64| Some(exposed.map_or(offset, |at| at.min(offset)));
        match value {
            Pointer::At(Base::Frame, offset) => self.exposed = expose(self.exposed, offset),
            Pointer::Within(Base::Frame) => self.exposed = Some(i64::MIN),
            Pointer::At(Base::Argument(register), _) | Pointer::Within(Base::Argument(register)) => {
                self.leaked |= 1 << register;
            }
            Pointer::Unknown(unknown) => {
                self.leaked |= unknown.arguments();
                if unknown.may_be_frame() {
                    self.exposed = Some(i64::MIN);
                }
            }
            Pointer::Unset | Pointer::Constant(_) => {}
        }
    }

    fn call(&mut self, state: &mut State, summary: &Summary) {
        for register in ARGUMENTS {
            if summary.leaks(register) {
                self.escape(state.registers[usize::from(register)]);
            }
        }
        for write in &summary.writes {
            let pointer = state.registers[usize::from(write.register)];
            match (pointer, summary.range(write, &state.registers)) {
                (Pointer::At(Base::Frame, offset), Some((skip, size))) => {
                    let start = offset.saturating_add(skip);
                    forget(state, start, start.saturating_add(size.into()));
                }
                (Pointer::At(Base::Frame, offset), None) => forget_around(state, offset),
                (Pointer::Within(Base::Frame), _) => state.slots.clear(),
                (Pointer::Unknown(unknown), _) => self.forget_reachable(state, unknown),
                _ => {}
            }
        }
        if let Some(exposed) = self.exposed.filter(|_| summary.elsewhere.is_some()) {
            forget_around(state, exposed);
        }
        let returned = summary.pointers.map(|pointer| translate(pointer, &state.registers));
        for number in 0..16_u8 {
            if !summary.preserves(location::Location::low(number)) {
                state.registers[usize::from(number)] = Pointer::ANY;
            }
        }
        for (register, pointer) in [RAX, RDX].into_iter().zip(returned) {
            if !summary.preserves(location::Location::low(register)) {
                state.registers[usize::from(register)] = pointer;
            }
        }
    }
}

/// A pointer in terms of a callee's arguments, in the terms of its caller.
pub(super) fn translate(pointer: Pointer, registers: &[Pointer; 16]) -> Pointer {
    match pointer {
        Pointer::At(Base::Argument(register), offset) => registers[usize::from(register)].plus(offset),
        Pointer::Within(Base::Argument(register)) => registers[usize::from(register)].somewhere(),
        Pointer::Unknown(unknown) => {
            let arguments = (0..16).filter(|register| unknown.arguments() >> register & 1 == 1);
            let none = Pointer::Unknown(Unknown { bases: 0, ..unknown });
            arguments.fold(none, |all, register| all.join(registers[register].somewhere()))
        }
        // An address of a frame that is gone.
        Pointer::At(Base::Frame, _) | Pointer::Within(Base::Frame) => Pointer::ANY,
        Pointer::Unset | Pointer::Constant(_) => pointer,
    }
}

/// Adds a state to that of a block; whether it changed.
fn merge(known: &mut Option<State>, arriving: State) -> bool {
    let Some(known) = known else {
        *known = Some(arriving);
        return true;
    };
    let mut changed = false;
    for (register, new) in known.registers.iter_mut().zip(arriving.registers) {
        let joined = register.join(new);
        changed |= joined != *register;
        *register = joined;
    }
    let before = known.slots.len();
    known.slots.retain_mut(|(offset, value)| {
        let Ok(found) = arriving.slots.binary_search_by_key(offset, |(known, _)| *known) else {
            return false;
        };
        let joined = value.join(arriving.slots[found].1);
        changed |= joined != *value;
        *value = joined;
        true
    });
    changed || known.slots.len() != before
}

fn forget(state: &mut State, start: i64, end: i64) {
    state.slots.retain(|(offset, _)| *offset >= end || offset.saturating_add(8) <= start);
}

/// Forgets what may be reached from an address at a distance that is not known. See `Cells::around`.
fn forget_around(state: &mut State, offset: i64) {
    state.slots.retain(|(known, _)| (*known < 0) != (offset < 0));
}

/// What is known of 8 bytes of the frame.
fn now_slot(state: &State, address: Pointer) -> Pointer {
    let Pointer::At(Base::Frame, offset) = address else { return Pointer::ANY };
    match state.slots.binary_search_by_key(&offset, |(known, _)| *known) {
        Ok(found) => state.slots[found].1,
        Err(_) => Pointer::ANY,
    }
}

/// The address, if it is one, among the values that an instruction reads out of registers.
fn stored_value(state: &State, at: &Instruction, effect: &Effect) -> Pointer {
    let is_immediate =
        (0..at.op_count()).any(|operand| !matches!(at.op_kind(operand), OpKind::Register | OpKind::Memory));
    if matches!(at.mnemonic(), Mnemonic::Mov | Mnemonic::Push) && is_immediate {
        return Pointer::OUTSIDE;
    }
    let mut registers: Vec<u8> =
        effect.reads.iter().filter(|read| read.0 < 32).map(|read| (read.0 / 2) as u8).collect();
    if matches!(at.mnemonic(), Mnemonic::Mov | Mnemonic::Push) && at.op_count() > 0 {
        let operand = at.op_count() - 1;
        if at.op_kind(operand) == OpKind::Register && at.op_register(operand) == Register::RSP {
            registers.push(RSP);
        }
    }
    registers.dedup();
    let values = registers.into_iter().map(|number| state.registers[usize::from(number)]);
    values.reduce(Pointer::combine).unwrap_or(Pointer::ANY)
}

fn results_of_lea(state: &State, at: &Instruction) -> Pointer {
    let value = |register: Register| match location::general(register) {
        Some(number) => state.registers[usize::from(number)],
        None => Pointer::Constant(0),
    };
    let index = value(at.memory_index()).times(at.memory_index_scale());
    value(at.memory_base()).combine(index).plus(at.memory_displacement64().cast_signed())
}

/// The general registers that an instruction writes, apart from the stack pointer, each with what is known of its new
/// value and whether it may also keep the old one.
fn results(
    state: &State,
    at: &Instruction,
    effect: &Effect,
    loaded: Option<Pointer>,
) -> Vec<(u8, Pointer, bool)> {
    let mut found: Vec<(u8, Pointer, bool)> = Vec::new();
    for written in effect.writes.iter().filter(|written| written.location.0 < 32) {
        let register = (written.location.0 / 2) as u8;
        if register == RSP || found.iter().any(|(known, ..)| *known == register) {
            continue;
        }
        found.push((register, result(state, at, effect, loaded, register), written.keeps_old));
    }
    found
}

fn result(
    state: &State,
    at: &Instruction,
    effect: &Effect,
    loaded: Option<Pointer>,
    register: u8,
) -> Pointer {
    let old = state.registers[usize::from(register)];
    let is_register = |operand: u32| at.op_kind(operand) == OpKind::Register;
    let is_wide = at.op_count() == 0 || !is_register(0) || at.op0_register().is_gpr64();
    let source = || match at.op1_kind() {
        OpKind::Register => location::general(at.op1_register())
            .map_or(Pointer::ANY, |from| state.registers[usize::from(from)]),
        OpKind::Memory => loaded.unwrap_or(Pointer::ANY),
        _ => at.try_immediate(1).map_or(Pointer::OUTSIDE, |value| Pointer::Constant(value.cast_signed())),
    };
    let narrowed = |value: Pointer| match value {
        Pointer::Constant(value) if at.op0_register().is_gpr32() => Pointer::Constant(value & 0xffff_ffff),
        _ => Pointer::OUTSIDE,
    };
    match at.mnemonic() {
        Mnemonic::Mov if is_wide => source(),
        Mnemonic::Mov if at.op0_register().is_gpr32() => narrowed(source()),
        Mnemonic::Lea if is_wide => results_of_lea(state, at),
        Mnemonic::Xor if is_register(0) && is_register(1) && at.op0_register() == at.op1_register() => {
            Pointer::Constant(0)
        }
        Mnemonic::Pop => loaded.unwrap_or(Pointer::ANY),
        Mnemonic::Leave => old,
        Mnemonic::Add if is_wide => old.combine(source()),
        Mnemonic::Sub if is_wide => match source() {
            Pointer::Constant(amount) => old.plus(amount.wrapping_neg()),
            _ => old.somewhere(),
        },
        Mnemonic::Inc if is_wide => old.plus(1),
        Mnemonic::Dec if is_wide => old.plus(-1),
        _ if !is_wide => Pointer::OUTSIDE,
        _ => {
            let values = effect.reads.iter().filter(|read| read.0 < 32).map(|read| read.0 / 2);
            let values = values.map(|number| state.registers[number as usize].somewhere());
            // A vector register may hold anything.
            let other = effect.reads.iter().any(|read| (32..104).contains(&read.0)).then_some(Pointer::ANY);
            values.chain(loaded).chain(other).fold(Pointer::OUTSIDE, Pointer::combine)
        }
    }
}
