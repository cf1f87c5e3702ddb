//! Constants that branches compare with, and constants that are stored: which store would make a branch go the other way.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

use super::code::ModuleCode;
use super::function::{BlockIndex, Flow};
use super::straight;

/// How a conditional branch compares a value with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    condition: ConditionCode,
    constant: u64,
    /// Of the value.
    bytes: usize,
}

impl Comparison {
    /// Whether the branch goes the same way for both values; `None` if that cannot be told.
    pub fn tells_apart(&self, one: u64, other: u64) -> Option<bool> {
        Some(self.holds(one)? != self.holds(other)?)
    }

    fn holds(&self, value: u64) -> Option<bool> {
        let unused = 64 - 8 * self.bytes as u32;
        let (value, constant) = (value << unused, self.constant << unused);
        let (signed, signed_constant) = (value.cast_signed(), constant.cast_signed());
        Some(match self.condition {
            ConditionCode::e => value == constant,
            ConditionCode::ne => value != constant,
            ConditionCode::b => value < constant,
            ConditionCode::ae => value >= constant,
            ConditionCode::be => value <= constant,
            ConditionCode::a => value > constant,
            ConditionCode::l => signed < signed_constant,
            ConditionCode::ge => signed >= signed_constant,
            ConditionCode::le => signed <= signed_constant,
            ConditionCode::g => signed > signed_constant,
            _ => return None,
        })
    }
}

impl Flow {
    /// The comparison with a constant that the branch at the end of a block goes by, if it is one.
    pub fn comparison(&self, block: BlockIndex) -> Option<Comparison> {
        let instructions: Vec<Instruction> = self.instructions(block).collect();
        let (branch, before) = instructions.split_last()?;
        let compare = before.iter().rfind(|instruction| instruction.rflags_modified() != 0)?;
        let is_register = |operand| compare.op_kind(operand) == OpKind::Register;
        let constant = match compare.mnemonic() {
            Mnemonic::Cmp if is_immediate(compare, 1) => compare.immediate(1),
            Mnemonic::Test
                if is_register(0) && is_register(1) && compare.op0_register() == compare.op1_register() =>
            {
                0
            }
            _ => return None,
        };
        let bytes = if is_register(0) { compare.op0_register().size() } else { compare.memory_size().size() };
        let condition = branch.condition_code();
        (condition != ConditionCode::None && (1..=8).contains(&bytes)).then_some(Comparison {
            condition,
            constant,
            bytes,
        })
    }
}

impl ModuleCode<'_> {
    /// The constant that is stored by the operation that returns to `place`, if it is one. Both are as linked.
    pub fn stored_constant(&self, place: u64) -> Option<u64> {
        let flow = self.flow(self.function_at(place.checked_sub(1)?)?)?;
        let block = flow.block_of_call(place)?;
        let callee = self.callee_name(&flow[block].call.as_ref()?.callee)?;
        if callee.starts_with("__tsan_atomic") && callee.ends_with("_store") {
            let (value, _) = straight::argument(&flow, &flow.predecessors(), block, Register::RSI)?;
            return value.linear.as_constant().map(i64::cast_unsigned);
        }
        let store = self.announced_access(&flow, block)?;
        let store = flow.instructions(flow.block_at(store)?).find(|instruction| instruction.ip() == store)?;
        let is_plain = store.mnemonic() == Mnemonic::Mov && store.op0_kind() == OpKind::Memory;
        (is_plain && is_immediate(&store, 1)).then(|| store.immediate(1))
    }
}

fn is_immediate(instruction: &Instruction, operand: u32) -> bool {
    instruction.op_count() > operand && instruction.try_immediate(operand).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(condition: ConditionCode, constant: u64, bytes: usize) -> Comparison {
        Comparison { condition, constant, bytes }
    }

    /// Values are compared in their own size, and with their sign where the branch does.
    #[test]
    fn values_on_both_sides() {
        let is_three = comparison(ConditionCode::e, 3, 4);
        assert_eq!(is_three.tells_apart(0, 3), Some(true));
        assert_eq!(is_three.tells_apart(0, 2), Some(false));
        let is_negative = comparison(ConditionCode::l, 0, 4);
        assert_eq!(is_negative.tells_apart(1, 0xffff_ffff), Some(true));
        let is_below = comparison(ConditionCode::b, 5, 1);
        assert_eq!(is_below.tells_apart(0x104, 4), Some(false));
        assert_eq!(comparison(ConditionCode::o, 0, 4).tells_apart(0, 1), None);
    }
}
