//! What a run may depend on besides its plan.

/// Something outside of the plan that a run was seen to use. Two runs of one plan may differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Influence {
    Children,
    Outside,
    Files,
}

impl Influence {
    pub const ALL: [Influence; 3] = [Influence::Children, Influence::Outside, Influence::Files];

    /// Its bit in a set of them.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Those in a set.
    pub fn in_set(bits: u32) -> impl Iterator<Item = Influence> {
        Influence::ALL.into_iter().filter(move |influence| bits & influence.bit() != 0)
    }

    /// What the program does, in words that complete "it …".
    pub fn text(self) -> &'static str {
        match self {
            Influence::Children => "starts processes",
            Influence::Outside => "waits for other processes or the network",
            Influence::Files => "writes files",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_members_in_order() {
        let set = Influence::Files.bit() | Influence::Children.bit();
        assert!(Influence::in_set(set).eq([Influence::Children, Influence::Files]));
        assert_eq!(Influence::in_set(0).count(), 0);
    }
}
