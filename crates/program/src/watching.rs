//! How a run is made to stop at a place in the code, whatever is done there.
//!
//! A place is the address behind an instruction. A run stops by itself before most operations on primitives. A call of
//! another function can be led through code of the runtime's, and so can any other instruction that is moved out of the
//! way of a jump. What is moved must be inside of one block, so that nothing jumps into it, and must not be a call, whose
//! return address would change.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use threadbare_trace::{MovedCode, Relative, Watched};

use crate::Program;
use crate::flow::{BlockEnd, BlockIndex, Callee, Flow, ModuleCode};

/// How a run stops at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By itself.
    OfItself,
    /// If the place is watched.
    Watched(Watched),
    /// Not at all: the code there is too short to be changed, or not known well enough.
    Impossible,
}

impl Stop {
    /// What has to be watched for it, if anything can be.
    pub fn watched(self) -> Option<Watched> {
        match self {
            Stop::Watched(watched) => Some(watched),
            Stop::OfItself | Stop::Impossible => None,
        }
    }
}

impl Program {
    /// How a run stops at a place.
    pub fn stop_at(&self, place: u64) -> Stop {
        self.find_stop(place).unwrap_or(Stop::Impossible)
    }

    fn find_stop(&self, place: u64) -> Option<Stop> {
        let code = self.code_at(place.checked_sub(1)?)?;
        let linked = code.linked(place);
        let flow = code.flow(code.function_at(linked - 1)?)?;
        let block = flow.block_at(linked - 1)?;
        let Some(call) = flow.block_of_call(linked).and_then(|block| flow[block].call.as_ref()) else {
            return moved(&code, &flow, block, linked, false).map(Stop::Watched);
        };
        let callee = code.callee_name(&call.callee).unwrap_or_default();
        if is_access_hook(callee) {
            return Some(Stop::Watched(Watched::Access(place)));
        }
        if is_operation(callee) {
            return Some(Stop::OfItself);
        }
        match call.callee {
            // A tail call returns elsewhere.
            _ if matches!(flow[block].end, BlockEnd::TailCall | BlockEnd::ConditionalTailCall) => None,
            Callee::Function(_) | Callee::Import(_)
                if call.return_address - call.address >= MovedCode::JUMP =>
            {
                Some(Stop::Watched(Watched::Call(place)))
            }
            _ => moved(&code, &flow, block, linked, true).map(Stop::Watched),
        }
    }

    /// The call that returns to this place never does, for all that is known.
    pub fn never_returns(&self, place: u64) -> bool {
        let end = || {
            let code = self.code_at(place)?;
            let linked = code.linked(place);
            let flow = code.flow(code.function_at(linked.checked_sub(1)?)?)?;
            Some(flow[flow.block_of_call(linked)?].end == BlockEnd::NoReturn)
        };
        end().unwrap_or(false)
    }

    /// For a statement that begins at this address, the place behind its first instruction, and the start of its block.
    pub fn statement_place(&self, address: u64) -> Option<(u64, u64)> {
        let code = self.code_at(address)?;
        let linked = code.linked(address);
        let flow = code.flow(code.function_at(linked)?)?;
        let block = flow.block_at(linked)?;
        let first = flow.instructions(block).find(|at| at.ip() == linked)?;
        Some((code.relocated(first.next_ip()), code.relocated(flow[block].range.start)))
    }
}

/// The hook with this name announces a plain access of a fixed size.
fn is_access_hook(name: &str) -> bool {
    let kinds = ["read", "write", "unaligned_", "volatile_", "vptr_"];
    let rest = name.strip_prefix("__tsan_");
    rest.is_some_and(|rest| kinds.iter().any(|kind| rest.starts_with(kind)) && !rest.contains("range"))
}

/// The function with this name is an operation in every run, and nothing else.
fn is_operation(name: &str) -> bool {
    const PRIMITIVES: &[&str] = &[
        "__tsan_atomic",
        "pthread_mutex_lock",
        "pthread_mutex_trylock",
        "pthread_mutex_timedlock",
        "pthread_mutex_unlock",
        "pthread_rwlock_rdlock",
        "pthread_rwlock_wrlock",
        "pthread_rwlock_try",
        "pthread_rwlock_timed",
        "pthread_rwlock_unlock",
        "pthread_spin_lock",
        "pthread_spin_trylock",
        "pthread_spin_unlock",
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "pthread_cond_clockwait",
        "pthread_cond_signal",
        "pthread_cond_broadcast",
        "pthread_barrier_wait",
        "pthread_create",
        "pthread_join",
        "sem_wait",
        "sem_trywait",
        "sem_timedwait",
        "sem_post",
        "mtx_lock",
        "mtx_trylock",
        "mtx_timedlock",
        "mtx_unlock",
        "cnd_wait",
        "cnd_timedwait",
        "cnd_signal",
        "cnd_broadcast",
        "thrd_create",
        "thrd_join",
        "thrd_yield",
        "sched_yield",
    ];
    PRIMITIVES.iter().any(|primitive| name.starts_with(primitive))
}

/// Moves the instructions that end at the place, or come before the call there, out of the way of a jump.
fn moved(
    code: &ModuleCode<'_>,
    flow: &Flow,
    block: BlockIndex,
    place: u64,
    is_before_call: bool,
) -> Option<Watched> {
    // A jump that was not resolved may lead anywhere.
    if flow.blocks.iter().any(|block| block.end == BlockEnd::UnresolvedJump) {
        return None;
    }
    let call = flow[block].call.as_ref().map(|call| call.address);
    let instructions: Vec<Instruction> =
        flow.instructions(block).filter(|at| call.is_none_or(|call| at.ip() < call)).collect();
    let end = instructions.last()?.next_ip();
    let wanted = match is_before_call {
        true => end,
        false => instructions.iter().find(|at| at.next_ip() == place)?.ip(),
    };
    // As near to the place as there is room for the jump.
    let starts = instructions.iter().map(Instruction::ip).filter(|&start| start <= wanted);
    let start = starts.rev().find(|start| end - start >= MovedCode::JUMP)?;
    let from = instructions.iter().filter(|at| at.ip() >= start);
    let count = from.clone().position(|at| at.next_ip() - start >= MovedCode::JUMP)? + 1;
    let mut moved = MovedCode {
        place: code.relocated(place),
        is_before_call,
        start: code.relocated(start),
        ..MovedCode::default()
    };
    let mut next = start;
    for instruction in from.take(count) {
        let bytes = flow.bytes(instruction.ip(), instruction.len())?;
        add(&mut moved, code, instruction, bytes)?;
        next = instruction.next_ip();
    }
    add_jump(&mut moved, &[0xe9], code.relocated(next));
    (moved.code.len() <= MovedCode::MAX_BYTES).then_some(Watched::Code(moved))
}

/// Adds an instruction, so that it does the same in another place; `None` if that is not possible.
fn add(moved: &mut MovedCode, code: &ModuleCode<'_>, at: &Instruction, bytes: &[u8]) -> Option<()> {
    match at.flow_control() {
        FlowControl::ConditionalBranch if at.is_jcc_short_or_near() => {
            // The condition is in the opcode, which comes before a distance of one byte or of four.
            let distance = if at.is_jcc_short() { 1 } else { 4 };
            let opcode = bytes.len().checked_sub(distance + 1).and_then(|position| bytes.get(position))?;
            add_jump(moved, &[0x0f, 0x80 | opcode & 0xf], code.relocated(at.near_branch_target()));
        }
        FlowControl::UnconditionalBranch if at.op0_kind() == OpKind::NearBranch64 => {
            add_jump(moved, &[0xe9], code.relocated(at.near_branch_target()));
        }
        FlowControl::Next | FlowControl::Return | FlowControl::IndirectBranch => {
            let first = moved.code.len();
            moved.code.extend(bytes);
            if at.is_ip_rel_memory_operand() {
                let displacement = displacement_position(at, bytes);
                let target = code.relocated(at.ip_rel_memory_address());
                add_relative(moved, first + displacement, target);
            }
        }
        // Loops with a counter, calls, and instructions that end the program.
        _ => return None,
    }
    Some(())
}

/// Adds a jump with a distance of four bytes.
fn add_jump(moved: &mut MovedCode, opcode: &[u8], target: u64) {
    moved.code.extend(opcode);
    let at = moved.code.len();
    moved.code.extend([0; 4]);
    add_relative(moved, at, target);
}

/// The last instruction has a distance to `target`.
fn add_relative(moved: &mut MovedCode, at: usize, target: u64) {
    moved.relatives.push(Relative { at: at as u32, from: moved.code.len() as u32, target });
}

/// Where in the bytes of an instruction its displacement stands.
fn displacement_position(at: &Instruction, bytes: &[u8]) -> usize {
    let mut decoder = Decoder::with_ip(64, bytes, at.ip(), DecoderOptions::NONE);
    // The offsets are those of the instruction that was decoded last.
    let _ = decoder.decode();
    decoder.get_constant_offsets(at).displacement_offset()
}
