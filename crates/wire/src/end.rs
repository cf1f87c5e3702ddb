//! How a run ended, as the run itself leaves it in shared memory.
//!
//! An [`End`] is stored as numbers: those of [`EndKind`], [`FailureKind`] and [`Role`]. There is no list of endings
//! here, so a new kind of failure needs nothing but its row in `trace`'s table.

use std::array;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use threadbare_trace::{End, EndKind, Failure, FailureKind, Related, Role, StackIndex, ThreadIndex};

/// A place in the terms of the process: who, at which address, called from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodePlace {
    pub thread: ThreadIndex,
    pub stack: StackIndex,
    /// The address of code; 0 when unknown.
    pub pc: u64,
}

/// The longest message a run can leave.
pub const MESSAGE_BYTES: usize = 1024;

/// What a run says of its end.
#[repr(C)]
pub struct EndSlot {
    /// 1 + the [`EndKind`]; 0 when the run said nothing.
    kind: AtomicU32,
    /// A [`FailureKind`].
    failure: AtomicU32,
    /// What the failure carries, or the step that could not be taken.
    detail: AtomicU32,
    at: PlaceSlot,
    /// One for each [`Role`].
    related: [PlaceSlot; Role::ALL.len()],
    message_bytes: AtomicU32,
    message: [AtomicU8; MESSAGE_BYTES],
}

/// A [`CodePlace`], or none.
#[repr(C)]
struct PlaceSlot {
    /// 1 + the thread's index; 0 for no place.
    thread: AtomicU32,
    stack: AtomicU32,
    pc: AtomicU64,
}

impl PlaceSlot {
    fn put(&self, place: Option<&CodePlace>) {
        let CodePlace { thread, stack, pc } = place.copied().unwrap_or_default();
        self.stack.store(stack.number(), Ordering::Relaxed);
        self.pc.store(pc, Ordering::Relaxed);
        self.thread.store(if place.is_some() { thread.number() + 1 } else { 0 }, Ordering::Relaxed);
    }

    fn get(&self) -> Option<CodePlace> {
        Some(CodePlace {
            thread: ThreadIndex::new(self.thread.load(Ordering::Relaxed).checked_sub(1)?),
            stack: StackIndex::new(self.stack.load(Ordering::Relaxed)),
            pc: self.pc.load(Ordering::Relaxed),
        })
    }
}

impl EndSlot {
    /// Nothing was said yet.
    pub fn clear(&self) {
        self.kind.store(0, Ordering::Relaxed);
    }

    /// Leaves word of the end. Of the message, as much is kept as there is room for.
    pub fn put(&self, end: &End<CodePlace>) {
        let (detail, message) = match end {
            End::Failed(failure) => {
                self.failure.store(failure.kind.number().into(), Ordering::Relaxed);
                for (slot, &role) in self.related.iter().zip(Role::ALL) {
                    slot.put(failure.related(role));
                }
                (failure.kind.detail().unwrap_or_default().cast_unsigned(), failure.message.as_str())
            }
            End::Diverged { step, reason } => (*step, reason.as_str()),
            End::Unsupported { message, .. } => (0, message.as_str()),
            End::Exec { program, .. } => (0, program.as_str()),
            End::Finished | End::EventBound | End::TimeLimit { .. } | End::MemoryLimit => (0, ""),
        };
        self.detail.store(detail, Ordering::Relaxed);
        self.at.put(end.at());
        let message = &message.as_bytes()[..message.len().min(MESSAGE_BYTES)];
        for (slot, &byte) in self.message.iter().zip(message) {
            slot.store(byte, Ordering::Relaxed);
        }
        self.message_bytes.store(message.len() as u32, Ordering::Relaxed);
        // Last, so that whoever sees the kind sees the rest.
        self.kind.store(1 + u32::from(end.kind() as u8), Ordering::Release);
    }

    /// The end that was left; `None` when the run said nothing, or nothing that makes sense.
    pub fn get(&self) -> Option<End<CodePlace>> {
        let kind = self.kind.load(Ordering::Acquire).checked_sub(1)?;
        Some(match u8::try_from(kind).ok().and_then(EndKind::from_byte)? {
            EndKind::Finished => End::Finished,
            EndKind::Failed => End::Failed(self.failure()?),
            EndKind::EventBound => End::EventBound,
            EndKind::TimeLimit => End::TimeLimit { at: self.at.get() },
            EndKind::MemoryLimit => End::MemoryLimit,
            EndKind::Diverged => {
                End::Diverged { step: self.detail.load(Ordering::Relaxed), reason: self.message() }
            }
            EndKind::Unsupported => End::Unsupported { message: self.message(), at: self.at.get()? },
            EndKind::Exec => End::Exec { program: self.message(), at: self.at.get()? },
        })
    }

    fn failure(&self) -> Option<Failure<CodePlace>> {
        let number = u8::try_from(self.failure.load(Ordering::Relaxed)).ok()?;
        let detail = self.detail.load(Ordering::Relaxed).cast_signed();
        let kind = FailureKind::from_number(number)?.with_detail(detail);
        let related = self.related.iter().zip(Role::ALL);
        let related = related.filter_map(|(slot, &role)| Some(Related { role, at: slot.get()? })).collect();
        Some(Failure { kind, message: self.message(), at: self.at.get()?, related })
    }

    fn message(&self) -> String {
        let length = (self.message_bytes.load(Ordering::Relaxed) as usize).min(MESSAGE_BYTES);
        let bytes: [u8; MESSAGE_BYTES] = array::from_fn(|i| self.message[i].load(Ordering::Relaxed));
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}
