//! The load or store that a call of the runtime announces.
//!
//! Compilers put the call of `__tsan_read4` and the like in front of the access, with its address as the argument. What
//! is between the two depends on the compiler and its options. So the argument is followed symbolically from the call to the
//! next instruction that accesses the same address in the same way.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::function::{BlockIndex, Flow};
use super::straight;

/// What a hook announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Announced {
    reads: bool,
    writes: bool,
    /// In bytes.
    size: usize,
}

/// The address of the instruction that makes the access which the call at the end of `block` announces.
pub(super) fn behind(flow: &Flow, block: BlockIndex, hook: &str) -> Option<u64> {
    let announced = announced(hook)?;
    let predecessors = flow.predecessors();
    let (argument, mut state) = straight::argument(flow, &predecessors, block, Register::RDI)?;
    let call = flow.instructions(block).last()?;
    let after = straight::instructions(flow, &straight::after(flow, block));
    let mut of_another_size = None;
    let mut before = call;
    for at in after {
        state.step(&before, at.ip());
        if accesses(&at, announced) && state.address(&at) == Some(argument.linear) {
            if at.memory_size().size() == announced.size {
                return Some(at.ip());
            }
            of_another_size.get_or_insert(at.ip());
        }
        before = at;
    }
    of_another_size
}

fn announced(hook: &str) -> Option<Announced> {
    let mut rest = hook.strip_prefix("__tsan_")?;
    match rest {
        "vptr_update" => return Some(Announced { reads: false, writes: true, size: 8 }),
        "vptr_read" => return Some(Announced { reads: true, writes: false, size: 8 }),
        _ => {}
    }
    for prefix in ["unaligned_", "volatile_", "unaligned_"] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    rest = rest.strip_suffix("_pc").unwrap_or(rest);
    let (reads, writes, size) = if let Some(size) = rest.strip_prefix("read_write") {
        (true, true, size)
    } else if let Some(size) = rest.strip_prefix("read") {
        (true, false, size)
    } else {
        (false, true, rest.strip_prefix("write")?)
    };
    Some(Announced { reads, writes, size: size.parse().ok()? })
}

/// The instruction reads or writes memory as announced.
fn accesses(at: &Instruction, announced: Announced) -> bool {
    if matches!(at.mnemonic(), Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Call) {
        return false;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(at);
    (0..at.op_count()).filter(|&operand| at.op_kind(operand) == OpKind::Memory).any(|operand| {
        let access = info.op_access(operand);
        let reads = matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        let writes = matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        (reads || !announced.reads) && (writes || !announced.writes)
    })
}
