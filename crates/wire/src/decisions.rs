//! The decisions of a run, as the runtime writes them.

use threadbare_trace::ThreadIndex;

use crate::words::Words;

/// The decisions of a run, one after the other. Each is a few words: how many records were in the log by then, the
/// state of the program, the thread that was picked, and a set of bits with a bit for each thread that could have
/// been picked. In a guided run there follow the waypoints that were passed, and a distance for each of those threads,
/// two to a word. In an exploration there follows what is known of the operation, if it may write.
#[derive(Clone, Debug)]
pub struct Decisions<'a>(Words<'a>);

/// A point in a run at which a thread had to be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Records in the log by then.
    pub records: u64,
    /// Two decisions with the same number were made in the same state of the program. In an exploration it is the state
    /// of the thread that was picked, or 0.
    pub state: u64,
    pub picked: ThreadIndex,
    /// How the operation of that thread may have to wait.
    pub patience: OperationPatience,
    pub round: Round,
    /// Only in an exploration, and only for what may write to at most eight bytes.
    pub update: Option<Update>,
    alternatives: &'a [u64],
    guidance: &'a [u64],
}

/// Whether an operation can be done at once, whatever the others have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperationPatience {
    /// It never waits.
    #[default]
    None,
    /// It waits until something is there.
    Endless,
    /// It waits, and may time out while other threads can run.
    Limited,
}

/// Whether what the thread did was part of a round of a loop that changed nothing, not even the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    /// It was not.
    #[default]
    None,
    /// It was, and the thread went on later. The run is the same without it.
    PassedOver,
    /// It was. The thread did nothing more, and would go round in the same way again.
    Last,
    /// It was, in turns of the plan, and so the thread was not let go on. Now it could.
    Abandoned,
}

/// Bits above the number of a thread, of which there are at most 2^16.
const WAITS: u64 = 1 << 30;
const MAY_TIME_OUT: u64 = 1 << 31;
const ROUND_SHIFT: u32 = 28;
const ROUND: u64 = 3 << ROUND_SHIFT;
/// The last words are an [`Update`].
const UPDATES: u64 = 1 << 27;
const THREAD: u64 = 0xffff;

/// What an operation does that may write, as far as that depends on what memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// What memory held before.
    pub found: u64,
    pub condition: Condition,
}

/// When a [`Condition`] makes a change, on the wire.
const IF_EQUAL: u64 = 1;
const UNLESS_EQUAL: u64 = 2;

/// Whether an operation changes what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The bits that it depends on.
    pub mask: u64,
    /// What they are compared with.
    pub value: u64,
    /// It changes memory if they are equal; otherwise if they are not.
    pub changes_if_equal: bool,
}

impl Condition {
    pub const ALWAYS: Condition = Condition { mask: 0, value: 0, changes_if_equal: true };
    pub const NEVER: Condition = Condition { changes_if_equal: false, ..Condition::ALWAYS };

    /// Words that are never all zero.
    pub fn words(&self) -> [u64; 3] {
        [self.mask, self.value, if self.changes_if_equal { IF_EQUAL } else { UNLESS_EQUAL }]
    }

    pub fn from_words([mask, value, when]: [u64; 3]) -> Option<Condition> {
        let changes_if_equal = when == IF_EQUAL;
        (changes_if_equal || when == UNLESS_EQUAL).then_some(Condition { mask, value, changes_if_equal })
    }

    /// Whether it changes memory that holds this.
    pub fn changes(&self, content: u64) -> bool {
        (content & self.mask == self.value) == self.changes_if_equal
    }
}

impl Update {
    fn from_words(words: &[u64]) -> Option<Update> {
        let &[found, mask, value, when] = words else { return None };
        Some(Update { found, condition: Condition::from_words([mask, value, when])? })
    }

    pub fn words(&self) -> [u64; 4] {
        let [mask, value, when] = self.condition.words();
        [self.found, mask, value, when]
    }
}

impl Round {
    fn from_bits(word: u64) -> Round {
        match (word & ROUND) >> ROUND_SHIFT {
            0 => Round::None,
            1 => Round::PassedOver,
            2 => Round::Last,
            _ => Round::Abandoned,
        }
    }
}

impl OperationPatience {
    pub fn to_bits(self) -> u64 {
        match self {
            OperationPatience::None => 0,
            OperationPatience::Endless => WAITS,
            OperationPatience::Limited => WAITS | MAY_TIME_OUT,
        }
    }

    pub fn from_bits(word: u64) -> OperationPatience {
        match (word & WAITS != 0, word & MAY_TIME_OUT != 0) {
            (false, _) => OperationPatience::None,
            (true, false) => OperationPatience::Endless,
            (true, true) => OperationPatience::Limited,
        }
    }
}

impl<'a> Decisions<'a> {
    pub fn new(words: &'a [u64]) -> Decisions<'a> {
        Decisions(Words(words))
    }

    /// Words that come before the set of alternatives.
    pub const HEAD: usize = 3;

    /// Those words; the set that follows takes `set` words, and what there is of guidance takes `guidance` words.
    pub fn head(
        records: u64,
        state: u64,
        (picked, patience): (ThreadIndex, OperationPatience),
        set: usize,
        guidance: usize,
    ) -> [u64; Decisions::HEAD] {
        let picked = u64::from(picked.number()) & THREAD | patience.to_bits();
        [records, state, picked | (set as u64) << 32 | (guidance as u64) << 48]
    }

    /// The last word of the head, for a decision that an [`Update`] follows instead of guidance.
    pub fn with_update(word: u64) -> u64 {
        word | UPDATES
    }

    /// The last word of the head, for a decision that turned out to be part of such a round.
    pub fn in_round(word: u64, round: Round) -> u64 {
        word & !ROUND | (round as u64) << ROUND_SHIFT
    }
}

impl<'a> Iterator for Decisions<'a> {
    type Item = Decision<'a>;

    fn next(&mut self) -> Option<Decision<'a>> {
        let words = &mut self.0;
        let (records, state, last) = (words.next().ok()?, words.next().ok()?, words.next().ok()?);
        let (alternatives, rest) = words.0.split_at_checked((last >> 32 & 0xffff) as usize)?;
        let (guidance, rest) = rest.split_at_checked((last >> 48) as usize)?;
        words.0 = rest;
        let picked = ThreadIndex::new((last & THREAD) as u32);
        let patience = OperationPatience::from_bits(last);
        let round = Round::from_bits(last);
        let (update, guidance) = match last & UPDATES {
            0 => (None, guidance),
            _ => (Update::from_words(guidance), &[][..]),
        };
        Some(Decision { records, state, picked, patience, round, update, alternatives, guidance })
    }
}

impl Decision<'_> {
    /// All threads that could have been picked, in order, with the one that was.
    pub fn alternatives(&self) -> impl Iterator<Item = ThreadIndex> {
        members(self.alternatives)
    }

    /// In a guided run, the waypoints that were passed before.
    pub fn passed(&self) -> Option<u32> {
        self.guidance.first().map(|&passed| passed as u32)
    }

    /// In a guided run, what [`GuidedStep`] says of each of the alternatives, in their order.
    pub fn steps(&self) -> impl Iterator<Item = GuidedStep> {
        let words = self.guidance.iter().skip(1).flat_map(|&word| [word as u32, (word >> 32) as u32]);
        words.zip(self.alternatives()).map(|(word, _)| GuidedStep::from_word(word))
    }
}

/// What a guided run knows of a thread that may go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuidedStep {
    /// It stands before the next waypoint.
    Passes,
    /// So far it is from the next waypoint, by the preference of the guidance.
    Distance(u32),
}

impl GuidedStep {
    /// Distances begin with 1 on the wire; infinity stays what it is.
    fn from_word(word: u32) -> GuidedStep {
        match word {
            0 => GuidedStep::Passes,
            u32::MAX => GuidedStep::Distance(u32::MAX),
            word => GuidedStep::Distance(word - 1),
        }
    }

    fn to_word(self) -> u32 {
        match self {
            GuidedStep::Passes => 0,
            GuidedStep::Distance(distance) => distance.saturating_add(1),
        }
    }

    /// Words of a decision: the waypoints that were passed, and the steps of the alternatives.
    pub fn words(passed: u32, steps: &[GuidedStep]) -> Vec<u64> {
        let pair = |pair: &[GuidedStep]| {
            let high = pair.get(1).map_or(0, |step| step.to_word());
            u64::from(pair[0].to_word()) | u64::from(high) << 32
        };
        std::iter::once(u64::from(passed)).chain(steps.chunks(2).map(pair)).collect()
    }
}

/// The members of a set of threads, which has a bit for each, in order.
pub fn members(words: &[u64]) -> impl Iterator<Item = ThreadIndex> {
    words.iter().enumerate().flat_map(|(i, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| ThreadIndex::at(i * 64 + rest.trailing_zeros() as usize))
    })
}
