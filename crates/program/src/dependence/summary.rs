//! What a call does, in terms of what the caller passes: the interface between a function and its callers.

use std::sync::Arc;

use super::location::{self, ARGUMENTS, Location, RDI};
use super::pointer::Pointer;
use super::{Gap, Load};

/// How something that is loaded reaches a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Way {
    /// The value is computed from it.
    Value,
    /// It decides which memory a value is loaded from.
    Address,
    /// It decides which of several values is taken.
    Control,
}

impl Way {
    /// The way to something behind another: only what a value is computed from all the way is its value.
    pub(super) fn then(self, next: Way) -> Way {
        if self == Way::Value { next } else { self }
    }
}

/// Where a dependence ends inside a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Source {
    Load(Load),
    /// What a register has at the entry of the function.
    Register(Location),
    /// Memory of the caller above the return address: arguments on the stack.
    Stack {
        offset: i64,
        size: u32,
    },
    /// What is behind a pointer that was passed in a register. No offset stands for all of it. Like [`Source::Exposed`]
    /// it goes from a call to its caller only: seen from inside, a load through a pointer is a load like any other.
    Behind {
        register: u8,
        offset: Option<i64>,
        size: u32,
    },
    /// What is behind addresses that the caller had stored or given away before.
    Exposed,
    Gap(Gap),
}

pub(super) type Sources = Arc<[(Way, Source)]>;

/// Memory behind an argument that a call may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) register: u8,
    /// Offset and size; `None` for all of it.
    pub(super) range: Option<(i64, u32)>,
    /// It is written by every call, and wholly.
    pub(super) certain: bool,
    pub(super) sources: Sources,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Locations that are left as they are, as bits, besides those that every function leaves.
    pub(super) preserved: u128,
    /// What each returned value depends on. Other locations that are not preserved hold nothing of use.
    pub(super) results: Vec<(Location, Sources)>,
    /// `rax` and `rdx` as addresses.
    pub(super) pointers: [Pointer; 2],
    pub(super) writes: Vec<Write>,
    /// What is written to memory that is not behind an argument, if anything is.
    pub(super) elsewhere: Option<Sources>,
    /// The register with the number of bytes that are read and written behind arguments.
    pub(super) length: Option<u8>,
    /// What is written behind the first argument is a copy of what is behind the second.
    pub(super) copies: bool,
    /// Registers with an address that is kept beyond the call or passed to unknown code, as bits.
    pub(super) leaks: u16,
}

impl Write {
    /// The call stores for certain, or tries to, as an atomic operation does.
    pub(super) fn certain_or_atomic(&self, name: &str) -> bool {
        self.certain || (name.starts_with("__tsan_atomic") && self.register == RDI)
    }
}

impl Summary {
    /// A call that only destroys registers.
    pub(super) fn nothing() -> Summary {
        Summary {
            preserved: 0,
            results: Vec::new(),
            pointers: [Pointer::OUTSIDE; 2],
            writes: Vec::new(),
            elsewhere: None,
            length: None,
            copies: false,
            leaks: 0,
        }
    }

    /// A call that has not been looked at yet. It is the start of the search for what recursion does.
    pub(super) fn unvisited() -> Summary {
        Summary { preserved: u128::MAX, pointers: [Pointer::Unset; 2], ..Summary::nothing() }
    }

    /// A call of which nothing is known: results depend on all arguments, and everything in reach may be written.
    pub(super) fn unknown(gap: Gap) -> Summary {
        let mut sources = vec![(Way::Value, Source::Gap(gap)), (Way::Value, Source::Exposed)];
        sources.extend(location::arguments().map(|location| (Way::Value, Source::Register(location))));
        let behind = |register| (Way::Value, Source::Behind { register, offset: None, size: 0 });
        sources.extend(ARGUMENTS.into_iter().map(behind));
        sources.sort();
        let sources: Sources = sources.into();
        let write = |register| Write { register, range: None, certain: false, sources: sources.clone() };
        let arguments = ARGUMENTS.iter().fold(0, |bits, &register| bits | 1_u16 << register);
        let pointer =
            Pointer::Unknown(super::pointer::Unknown { bases: u32::from(arguments), may_be_exposed: true });
        Summary {
            preserved: 0,
            results: location::results().map(|location| (location, sources.clone())).collect(),
            pointers: [pointer; 2],
            writes: ARGUMENTS.into_iter().map(write).collect(),
            elsewhere: Some(sources.clone()),
            length: None,
            copies: false,
            leaks: arguments,
        }
    }

    /// Says of all that it may depend on more.
    pub(super) fn add_gaps(&mut self, gaps: &[Gap]) {
        let extended = |sources: &Sources| -> Sources {
            let gaps = gaps.iter().map(|gap| (Way::Value, Source::Gap(gap.clone())));
            let mut all: Vec<_> = sources.iter().cloned().chain(gaps).collect();
            all.sort();
            all.dedup();
            all.into()
        };
        self.results.iter_mut().for_each(|(_, sources)| *sources = extended(sources));
        self.writes.iter_mut().for_each(|write| write.sources = extended(&write.sources));
        self.elsewhere = Some(extended(&self.elsewhere.take().unwrap_or_else(|| Arc::from([]))));
    }

    pub(super) fn preserves(&self, location: Location) -> bool {
        location.is_callee_saved() || (location.0 < 128 && self.preserved >> location.0 & 1 == 1)
    }

    pub(super) fn result(&self, location: Location) -> Option<&Sources> {
        self.results.iter().find(|(of, _)| *of == location).map(|(_, sources)| sources)
    }

    /// The part behind its pointer that a write may reach, for a call that is given these registers.
    pub(super) fn range(&self, write: &Write, registers: &[Pointer; 16]) -> Option<(i64, u32)> {
        write.range.or_else(|| Some((0, self.length(registers)?)))
    }

    /// The number of bytes that are read and written behind arguments, where it is fixed.
    pub(super) fn length(&self, registers: &[Pointer; 16]) -> Option<u32> {
        match registers[usize::from(self.length?)] {
            Pointer::Constant(length) => u32::try_from(length).ok(),
            _ => None,
        }
    }

    pub(super) fn leaks(&self, register: u8) -> bool {
        self.leaks >> register & 1 == 1
    }
}
