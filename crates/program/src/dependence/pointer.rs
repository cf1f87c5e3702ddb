//! What is known of a 64-bit value as an address.

/// What addresses are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Base {
    /// The stack pointer at the entry of the function, where the return address is.
    Frame,
    /// The value that a general register has at the entry.
    Argument(u8),
}

/// What is known of a value as an address. A merge of two values only goes down in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// No path leads here yet.
    Unset,
    Constant(i64),
    At(Base, i64),
    /// The base plus something unknown.
    Within(Base),
    Unknown(Unknown),
}

/// A value of which the base is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    /// The bases it may be relative to. See [`bit`].
    pub(super) bases: u32,
    /// It came from memory or a call, so that it may be an address of the frame that was stored before.
    pub(super) may_be_exposed: bool,
}

const FRAME_BIT: u32 = 1 << 16;

/// The bit of a base in [`Unknown::bases`].
pub(super) fn bit(base: Base) -> u32 {
    match base {
        Base::Frame => FRAME_BIT,
        Base::Argument(register) => 1 << register,
    }
}

impl Unknown {
    pub(super) fn may_be_frame(self) -> bool {
        self.bases & FRAME_BIT != 0
    }

    /// The argument registers among the bases, as bits.
    pub(super) fn arguments(self) -> u16 {
        (self.bases & 0xffff) as u16
    }
}

impl Pointer {
    /// A number, or an address that is none of the frame.
    pub(super) const OUTSIDE: Pointer = Pointer::Unknown(Unknown { bases: 0, may_be_exposed: false });
    /// Whatever memory may hold.
    pub(super) const ANY: Pointer = Pointer::Unknown(Unknown { bases: 0, may_be_exposed: true });

    fn unknown(self) -> Unknown {
        match self {
            Pointer::Unset | Pointer::Constant(_) => Unknown { bases: 0, may_be_exposed: false },
            Pointer::At(base, _) | Pointer::Within(base) => {
                Unknown { bases: bit(base), may_be_exposed: false }
            }
            Pointer::Unknown(unknown) => unknown,
        }
    }

    pub(super) fn base(self) -> Option<Base> {
        match self {
            Pointer::At(base, _) | Pointer::Within(base) => Some(base),
            _ => None,
        }
    }

    /// Nothing that is loaded can change it.
    pub(super) fn is_fixed(self) -> bool {
        matches!(self, Pointer::Constant(_) | Pointer::At(Base::Frame, _))
    }

    fn either(self, other: Pointer) -> Pointer {
        let (a, b) = (self.unknown(), other.unknown());
        Pointer::Unknown(Unknown {
            bases: a.bases | b.bases,
            may_be_exposed: a.may_be_exposed || b.may_be_exposed,
        })
    }

    /// What holds where two paths meet.
    pub(super) fn join(self, other: Pointer) -> Pointer {
        match (self, other) {
            (a, b) if a == b => a,
            (Pointer::Unset, known) | (known, Pointer::Unset) => known,
            (a, b) if a.base().is_some() && a.base() == b.base() => {
                a.base().map_or(Pointer::ANY, Pointer::Within)
            }
            (a, b) => a.either(b),
        }
    }

    pub(super) fn plus(self, offset: i64) -> Pointer {
        match self {
            Pointer::Constant(value) => Pointer::Constant(value.wrapping_add(offset)),
            Pointer::At(base, at) => Pointer::At(base, at.wrapping_add(offset)),
            other => other,
        }
    }

    /// The result of arithmetic on two values.
    ///
    /// A frame address plus anything is an address of the frame. An argument may be a number, so that an argument
    /// plus something that may be an address can have either for its base.
    pub(super) fn combine(self, other: Pointer) -> Pointer {
        match (self, other) {
            (Pointer::Constant(value), known) | (known, Pointer::Constant(value)) => known.plus(value),
            (Pointer::At(Base::Frame, _) | Pointer::Within(Base::Frame), _)
            | (_, Pointer::At(Base::Frame, _) | Pointer::Within(Base::Frame)) => Pointer::Within(Base::Frame),
            (known, Pointer::OUTSIDE) | (Pointer::OUTSIDE, known) => known.somewhere(),
            (a, b) => a.either(b),
        }
    }

    /// The same, multiplied. Frame addresses are aligned by dividing and multiplying them; an argument that is
    /// multiplied is a number.
    pub(super) fn times(self, factor: u32) -> Pointer {
        match self {
            _ if factor == 1 => self,
            Pointer::Constant(value) => Pointer::Constant(value.wrapping_mul(factor.into())),
            Pointer::At(Base::Frame, _) | Pointer::Within(Base::Frame) => Pointer::Within(Base::Frame),
            Pointer::Unknown(unknown) if unknown.may_be_frame() => self,
            _ => Pointer::OUTSIDE,
        }
    }

    /// The same with an unknown number added.
    pub(super) fn somewhere(self) -> Pointer {
        match self {
            Pointer::At(base, _) => Pointer::Within(base),
            Pointer::Constant(_) => Pointer::OUTSIDE,
            other => other,
        }
    }
}

/// The memory that an operand is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A known part of the frame, from the stack pointer at the entry.
    Frame {
        offset: i64,
        size: u32,
    },
    SomewhereInFrame,
    /// Behind a pointer that the function was given, at an offset that may be known.
    Argument {
        register: u8,
        offset: Option<i64>,
        size: u32,
    },
    /// Memory that nothing writes once the program is loaded.
    ReadOnly,
    Unknown(Unknown),
}

impl Place {
    pub(super) fn of(address: Pointer, size: u32) -> Place {
        match address {
            Pointer::At(Base::Frame, offset) if size > 0 => Place::Frame { offset, size },
            Pointer::At(Base::Frame, _) | Pointer::Within(Base::Frame) => Place::SomewhereInFrame,
            Pointer::At(Base::Argument(register), offset) if size > 0 => {
                Place::Argument { register, offset: Some(offset), size }
            }
            Pointer::At(Base::Argument(register), _) | Pointer::Within(Base::Argument(register)) => {
                Place::Argument { register, offset: None, size }
            }
            Pointer::Unset | Pointer::Constant(_) => Place::Unknown(address.unknown()),
            Pointer::Unknown(unknown) => Place::Unknown(unknown),
        }
    }

    /// Memory of the function's own frame, and no other.
    pub(super) fn is_frame(self) -> bool {
        matches!(self, Place::Frame { .. } | Place::SomewhereInFrame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects writes through a pointer that is a local's address on one path only.
    #[test]
    fn a_merge_remembers_the_frame() {
        let local = Pointer::At(Base::Frame, -16);
        let Pointer::Unknown(merged) = local.join(Pointer::ANY) else { panic!("two bases are unknown") };
        assert!(merged.may_be_frame());
        assert_eq!(local.join(Pointer::At(Base::Frame, -8)), Pointer::Within(Base::Frame));
        assert_eq!(local.combine(Pointer::OUTSIDE), Pointer::Within(Base::Frame));
        assert_eq!(local.combine(Pointer::Constant(8)), Pointer::At(Base::Frame, -8));
    }
}
