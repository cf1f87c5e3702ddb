//! What registers and stack slots hold along one path of instructions, as far as addresses and jumps need it.
//!
//! A value is a constant, a multiple of something unknown plus a constant, or an entry of a table. Comparisons on the
//! path bound what is unknown. Two simplifications are harmless, because what is found is checked against the code: a
//! store through a pointer changes no slot that was read before, and the width of a register is ignored.

use std::collections::HashMap;

use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// A value that is not known, but that is the same wherever its number occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Unknown(u32);

/// A value, and where it was read if it may be an entry of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    pub(super) linear: Linear,
    pub(super) entry: Option<Entry>,
}

/// What was read at an address that is constant or depends on one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) address: Linear,
    pub(super) size: usize,
    /// The constant part of the operand that it was read with.
    pub(super) table: i64,
    /// The constant that was added to it.
    pub(super) base: Option<i64>,
}

/// `factor * unknown + offset`; without an unknown, a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Linear {
    pub(super) unknown: Option<Unknown>,
    pub(super) factor: i64,
    pub(super) offset: i64,
}

/// What is known of an unknown. Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: i64,
    pub(super) high: i64,
    /// A comparison or a mask set `high`, and not only the width of a type.
    pub(super) is_checked: bool,
}

/// Registers, slots and what is known of the unknowns.
pub(super) struct State {
    registers: [Value; 16],
    slots: HashMap<Linear, Value>,
    /// For an unknown plus an offset each. They are not joined into one for the unknown alone, because the sum may have
    /// wrapped around.
    intervals: HashMap<Unknown, Vec<(i64, Interval)>>,
    /// The comparison that the flags come from.
    compared: Option<Comparison>,
    /// What two different unknowns add up to, without their offsets.
    sums: HashMap<(Linear, Linear), Linear>,
    next: u32,
    info: InstructionInfoFactory,
}

#[derive(Clone, Copy, Debug)]
struct Comparison {
    left: Linear,
    right: i64,
    /// The width of both in bits.
    bits: u32,
}

impl Linear {
    fn constant(offset: i64) -> Linear {
        Linear { unknown: None, factor: 0, offset }
    }

    pub(super) fn as_constant(self) -> Option<i64> {
        self.unknown.is_none().then_some(self.offset)
    }

    fn plus(self, other: Linear) -> Option<Linear> {
        let offset = self.offset.wrapping_add(other.offset);
        match (self.unknown, other.unknown) {
            (_, None) => Some(Linear { offset, ..self }),
            (None, _) => Some(Linear { offset, ..other }),
            (Some(a), Some(b)) if a == b => {
                Some(Linear { factor: self.factor.wrapping_add(other.factor), offset, ..self })
            }
            _ => None,
        }
    }

    fn times(self, factor: i64) -> Linear {
        Linear { factor: self.factor.wrapping_mul(factor), offset: self.offset.wrapping_mul(factor), ..self }
    }
}

impl From<Linear> for Value {
    fn from(linear: Linear) -> Value {
        Value { linear, entry: None }
    }
}

impl Interval {
    /// Nothing but that it is no negative index.
    const ANY: Interval = Interval { low: 0, high: i64::MAX, is_checked: false };

    fn join(self, other: Interval) -> Interval {
        Interval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            is_checked: self.is_checked && other.is_checked,
        }
    }
}

impl State {
    pub(super) fn new() -> State {
        let unknown = |number| Linear { unknown: Some(Unknown(number)), factor: 1, offset: 0 }.into();
        State {
            registers: std::array::from_fn(|number| unknown(u32::try_from(number).unwrap_or_default())),
            slots: HashMap::new(),
            intervals: HashMap::new(),
            compared: None,
            sums: HashMap::new(),
            next: 16,
            info: InstructionInfoFactory::new(),
        }
    }

    fn fresh(&mut self) -> Linear {
        self.next += 1;
        Linear { unknown: Some(Unknown(self.next)), factor: 1, offset: 0 }
    }

    /// What is known of an unknown, each for the unknown plus an offset.
    pub(super) fn intervals(&self, value: Linear) -> &[(i64, Interval)] {
        value.unknown.and_then(|unknown| self.intervals.get(&unknown)).map_or(&[], Vec::as_slice)
    }

    fn know(&mut self, unknown: Unknown, offset: i64, interval: Interval) {
        let known = self.intervals.entry(unknown).or_default();
        match known.iter_mut().find(|(at, _)| *at == offset) {
            Some((_, known)) => *known = meet(Some(*known), interval),
            None => known.push((offset, interval)),
        }
    }

    /// What a register holds.
    pub(super) fn register(&self, register: Register) -> Option<Value> {
        number_of(register).map(|number| self.registers[number])
    }

    /// Tells what a register holds.
    pub(super) fn set(&mut self, register: Register, address: u64) {
        if let Some(number) = number_of(register) {
            self.registers[number] = Linear::constant(address.cast_signed()).into();
        }
    }

    /// The address of the memory operand of an instruction; `None` for the memory of a thread.
    pub(super) fn address(&mut self, at: &Instruction) -> Option<Linear> {
        if matches!(at.segment_prefix(), Register::FS | Register::GS) {
            return None;
        }
        let displacement = Linear::constant(at.memory_displacement64().cast_signed());
        if at.is_ip_rel_memory_operand() {
            return Some(displacement);
        }
        let mut sum = displacement;
        if at.memory_base() != Register::None {
            let base = self.register(at.memory_base())?.linear;
            sum = self.added(sum, base);
        }
        if at.memory_index() != Register::None {
            let index = self.register(at.memory_index())?.linear;
            sum = self.added(sum, index.times(at.memory_index_scale().into()));
        }
        Some(sum)
    }

    /// What an operand reads.
    pub(super) fn operand(&mut self, at: &Instruction, operand: u32) -> Option<Value> {
        match at.try_op_kind(operand).ok()? {
            OpKind::Register => self.register(at.try_op_register(operand).ok()?),
            OpKind::Memory => {
                let address = self.address(at)?;
                let table = self.constant_part(at);
                Some(self.load(address, at.memory_size().size(), table))
            }
            _ => immediate(at, operand).map(|value| Linear::constant(value).into()),
        }
    }

    /// What is constant in the address of a memory operand.
    fn constant_part(&self, at: &Instruction) -> i64 {
        let displacement = at.memory_displacement64().cast_signed();
        if at.is_ip_rel_memory_operand() {
            return displacement;
        }
        let registers = [at.memory_base(), at.memory_index()];
        let constants =
            registers.into_iter().filter_map(|register| self.register(register)?.linear.as_constant());
        constants.fold(displacement, i64::wrapping_add)
    }

    fn load(&mut self, address: Linear, size: usize, table: i64) -> Value {
        if let Some(known) = self.slots.get(&address) {
            return *known;
        }
        let linear = self.fresh();
        if let (1 | 2, Some(unknown)) = (size, linear.unknown) {
            let high = if size == 1 { 0xff } else { 0xffff };
            self.know(unknown, 0, Interval { high, ..Interval::ANY });
        }
        let is_entry =
            address.unknown.is_none() || matches!(size, 4 | 8) && i64::try_from(size) == Ok(address.factor);
        let value = Value { linear, entry: is_entry.then_some(Entry { address, size, table, base: None }) };
        // What the loader or the program may change is still the same when it is read again on the same path.
        self.slots.insert(address, value);
        value
    }

    /// Executes an instruction; `next` is the address of the one that follows it on the path.
    pub(super) fn step(&mut self, at: &Instruction, next: u64) {
        match at.flow_control() {
            FlowControl::ConditionalBranch => {
                let is_taken = at.near_branch_target() == next;
                if at.next_ip() != at.near_branch_target() {
                    self.learn(at.condition_code(), is_taken);
                }
                return;
            }
            FlowControl::Call | FlowControl::IndirectCall => return self.call(at),
            _ => {}
        }
        let compared = self.compared_by(at);
        let written = self.result(at);
        self.overwrite(at);
        if at.rflags_modified() != 0 {
            self.compared = compared;
        }
        let Some(value) = written else { return };
        match at.op0_kind() {
            _ if at.op_count() == 0 => self.registers[0] = value,
            OpKind::Register => {
                if let Some(number) = number_of(at.op0_register()) {
                    self.registers[number] = value;
                }
            }
            OpKind::Memory => {
                if let Some(address) = self.address(at) {
                    self.slots.insert(address, value);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, at: &Instruction) {
        const LOST: [Register; 9] = [
            Register::RAX,
            Register::RCX,
            Register::RDX,
            Register::RSI,
            Register::RDI,
            Register::R8,
            Register::R9,
            Register::R10,
            Register::R11,
        ];
        if at.mnemonic() == Mnemonic::Syscall {
            return self.overwrite(at);
        }
        for register in LOST {
            let fresh = self.fresh();
            number_of(register).into_iter().for_each(|number| self.registers[number] = fresh.into());
        }
        self.compared = None;
    }

    /// Forgets what an instruction overwrites.
    fn overwrite(&mut self, at: &Instruction) {
        let info = self.info.info(at);
        let is_write = |access| {
            matches!(
                access,
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            )
        };
        let used = info.used_registers().iter().filter(|used| is_write(used.access()));
        let registers: Vec<Register> = used.map(iced_x86::UsedRegister::register).collect();
        let writes_memory = (0..at.op_count())
            .any(|operand| at.op_kind(operand) == OpKind::Memory && is_write(info.op_access(operand)));
        let slot = if writes_memory { self.address(at) } else { None };
        for register in registers {
            self.replace(register, at);
        }
        if let Some(slot) = slot {
            self.slots.remove(&slot);
        }
    }

    fn replace(&mut self, register: Register, at: &Instruction) {
        let Some(number) = number_of(register) else { return };
        let is_stack_pointer = register.full_register() == Register::RSP;
        self.registers[number] =
            if is_stack_pointer && matches!(at.mnemonic(), Mnemonic::Push | Mnemonic::Pop) {
                let pointer = self.registers[number].linear;
                let moved = i64::from(at.stack_pointer_increment());
                Linear { offset: pointer.offset.wrapping_add(moved), ..pointer }.into()
            } else {
                self.fresh().into()
            };
    }

    fn compared_by(&mut self, at: &Instruction) -> Option<Comparison> {
        if !matches!(at.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub) {
            return None;
        }
        let bytes = match at.op0_kind() {
            OpKind::Register => at.op0_register().size(),
            _ => at.memory_size().size(),
        };
        let left = self.operand(at, 0)?.linear;
        let right = self.operand(at, 1)?.linear.as_constant()?;
        Some(Comparison { left, right, bits: u32::try_from(bytes * 8).ok()? })
    }

    /// What an instruction leaves in its first operand, if it is understood.
    fn result(&mut self, at: &Instruction) -> Option<Value> {
        use Mnemonic as M;
        if at.op_count() == 0 {
            // These extend the accumulator.
            let extends = matches!(at.mnemonic(), M::Cdqe | M::Cwde | M::Cbw);
            return extends.then(|| self.registers[0]);
        }
        match at.mnemonic() {
            M::Mov | M::Movzx | M::Movsx | M::Movsxd => self.operand(at, 1),
            M::Lea => self.address(at).map(Value::from),
            M::Xor
                if at.op0_kind() == OpKind::Register
                    && at.op1_kind() == OpKind::Register
                    && at.op0_register() == at.op1_register() =>
            {
                Some(Linear::constant(0).into())
            }
            M::Add => {
                let (left, right) = (self.operand(at, 0)?, self.operand(at, 1)?);
                self.sum(left, right)
            }
            M::Sub => {
                let (left, right) = (self.operand(at, 0)?, self.operand(at, 1)?);
                let right = right.linear.as_constant()?.wrapping_neg();
                self.sum(left, Linear::constant(right).into())
            }
            M::Inc | M::Dec => {
                let one = Linear::constant(if at.mnemonic() == M::Inc { 1 } else { -1 });
                let value = self.operand(at, 0)?;
                self.sum(value, one.into())
            }
            M::Shl | M::Sal | M::And | M::Shr => self.shift_or_mask(at),
            _ if at.condition_code() != ConditionCode::None && is_conditional_move(at) => self.choice(at),
            _ => None,
        }
    }

    fn shift_or_mask(&mut self, at: &Instruction) -> Option<Value> {
        let left = self.operand(at, 0)?.linear;
        let amount = immediate(at, 1)?;
        let high = match at.mnemonic() {
            Mnemonic::Shl | Mnemonic::Sal => {
                return (0..8).contains(&amount).then(|| left.times(1 << amount).into());
            }
            Mnemonic::And if amount >= 0 => amount,
            Mnemonic::Shr => {
                let bits = i64::try_from(at.op0_register().size() * 8).ok()?.checked_sub(amount)?;
                if (0..63).contains(&bits) { (1 << bits) - 1 } else { i64::MAX }
            }
            _ => return None,
        };
        let value = self.fresh();
        let is_checked = at.mnemonic() == Mnemonic::And;
        self.know(value.unknown?, 0, Interval { low: 0, high, is_checked });
        Some(value.into())
    }

    /// A conditional move is one value or the other, each under its condition.
    fn choice(&mut self, at: &Instruction) -> Option<Value> {
        let (kept, moved) = (self.operand(at, 0)?, self.operand(at, 1)?);
        let under = |value: Value, is_taken: bool| {
            let value = value.linear;
            if let Some(constant) = value.as_constant() {
                return Some(Interval { low: constant, high: constant, is_checked: true });
            }
            let (compared, interval) = self.condition(at.condition_code(), is_taken)?;
            (value == compared).then_some(interval)
        };
        let joined = under(kept, false)?.join(under(moved, true)?);
        let value = self.fresh();
        self.know(value.unknown?, 0, joined);
        Some(value.into())
    }

    fn added(&mut self, left: Linear, right: Linear) -> Linear {
        if let Some(sum) = left.plus(right) {
            return sum;
        }
        let key = (Linear { offset: 0, ..left }, Linear { offset: 0, ..right });
        let known = self.sums.get(&key).or_else(|| self.sums.get(&(key.1, key.0))).copied();
        let sum = known.unwrap_or_else(|| self.fresh());
        self.sums.insert(key, sum);
        Linear { offset: left.offset.wrapping_add(right.offset), ..sum }
    }

    fn sum(&mut self, left: Value, right: Value) -> Option<Value> {
        let entry = match (left.entry, right.entry) {
            (Some(entry), None) => Some((entry, right.linear)),
            (None, Some(entry)) => Some((entry, left.linear)),
            _ => None,
        };
        let entry = entry.and_then(|(entry, base)| {
            let base = entry.base.unwrap_or_default().wrapping_add(base.as_constant()?);
            Some(Entry { base: Some(base), ..entry })
        });
        let linear = self.added(left.linear, right.linear);
        Some(Value { linear, entry })
    }

    fn learn(&mut self, condition: ConditionCode, is_taken: bool) {
        if let Some((compared, interval)) = self.condition(condition, is_taken)
            && let Some(unknown) = compared.unknown.filter(|_| compared.factor == 1)
        {
            self.know(unknown, compared.offset, interval);
        }
    }

    /// What the flags say of what was compared if a condition holds, or does not.
    fn condition(&self, condition: ConditionCode, holds: bool) -> Option<(Linear, Interval)> {
        use ConditionCode as C;
        let Comparison { left, mut right, bits } = self.compared?;
        if right < 0 && matches!(condition, C::a | C::ae | C::b | C::be) {
            // As a number without a sign.
            right = right.checked_add(1_i64.checked_shl(bits).filter(|_| bits < 63)?)?;
        }
        let at_most = |high: i64| Interval { low: 0, high, is_checked: true };
        let at_least = |low: i64| Interval { low, ..Interval::ANY };
        let interval = match (condition, holds) {
            (C::a | C::g, false) | (C::be | C::le, true) => at_most(right),
            (C::ae | C::ge, false) | (C::b | C::l, true) => at_most(right.checked_sub(1)?),
            (C::e, true) | (C::ne, false) => Interval { low: right, high: right, is_checked: true },
            (C::a | C::g, true) | (C::be | C::le, false) => at_least(right.checked_add(1)?),
            (C::ae | C::ge, true) | (C::b | C::l, false) => at_least(right),
            _ => return None,
        };
        Some((left, interval))
    }
}

fn meet(known: Option<Interval>, other: Interval) -> Interval {
    let Some(known) = known else { return other };
    let (high, is_checked) = if known.high <= other.high {
        (known.high, known.is_checked)
    } else {
        (other.high, other.is_checked)
    };
    Interval { low: known.low.max(other.low), high, is_checked }
}

fn is_conditional_move(at: &Instruction) -> bool {
    at.op_count() == 2 && at.op0_kind() == OpKind::Register && at.flow_control() == FlowControl::Next
}

/// The number of a general register, whatever part of it is named.
fn number_of(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr() && full != Register::None).then(|| full.number())
}

/// The value of an immediate operand, with its sign.
fn immediate(at: &Instruction, operand: u32) -> Option<i64> {
    Some(match at.try_op_kind(operand).ok()? {
        OpKind::Immediate8 => i64::from(at.immediate8().cast_signed()),
        OpKind::Immediate16 => i64::from(at.immediate16().cast_signed()),
        OpKind::Immediate32 => i64::from(at.immediate32().cast_signed()),
        _ => at.try_immediate(operand).ok()?.cast_signed(),
    })
}
