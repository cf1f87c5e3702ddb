//! Places in the code at which a run stops, whatever is done there.

/// A place in the code at which a run stops, though others may notice nothing of what is done there.
///
/// A place is named by the address behind its instruction: for a call, that is the address that it returns to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A call of a hook that announces a plain access. The access is an event, whatever its memory is.
    Access(u64),
    /// Another call. There is an event before it ([`EventKind::Reach`](crate::EventKind::Reach)).
    Call(u64),
    /// Code that a jump can take the place of. There is an event before it, as before a call.
    Code(MovedCode),
}

/// Instructions that are moved elsewhere, so that a jump can take their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovedCode {
    /// The place that they belong to.
    pub place: u64,
    /// The place is a call. It comes just behind the instructions, and stays where it is.
    pub is_before_call: bool,
    /// Where the instructions are. They have at least [`MovedCode::JUMP`] bytes.
    pub start: u64,
    /// The same instructions, as they are to be written elsewhere, and a jump back.
    pub code: Vec<u8>,
    /// The parts of `code` that depend on where it is written.
    pub relatives: Vec<Relative>,
}

impl MovedCode {
    /// Bytes of the jump that takes the place of the instructions.
    pub const JUMP: u64 = 5;
    /// The most bytes of `code`. The longest instruction has 15 bytes, and four more cover what can begin before the jump
    /// is full, what a short branch grows by, and the jump back.
    pub const MAX_BYTES: usize = 64;
}

/// A distance of four bytes inside of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relative {
    /// Where it stands in the code.
    pub at: u32,
    /// Where in the code it counts from: the end of its instruction.
    pub from: u32,
    /// What it leads to.
    pub target: u64,
}

impl Watched {
    /// The address that stands for the place.
    pub fn place(&self) -> u64 {
        match self {
            Watched::Access(place) | Watched::Call(place) => *place,
            Watched::Code(moved) => moved.place,
        }
    }
}
