//! What an event touches, and which events cannot change places.
//!
//! Two events of different threads are *independent* if they do the same in either order and leave the same state.
//! Searches that try one order of independent events instead of both rest on this, so a doubt is decided for
//! "touches": a search then tries more than it has to, and misses nothing.

use crate::{EventKind, Outcome, ThreadIndex};

/// What an event does to a stretch of something that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    pub space: Space,
    pub start: u64,
    pub len: u64,
    pub effect: Effect,
}

/// What threads share. Addresses mean something else in each space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// Bytes of memory.
    Memory = 0,
    /// Locks and other primitives, by address.
    Object = 1,
    /// Threads, by index: their creation and their end.
    Thread = 2,
    /// There is one of it: virtual time, the numbers of threads, what is outside of the program.
    World = 3,
    /// The whole program: everything before and after.
    All = 4,
}

/// What is done to what is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Effect {
    /// Finds out about it. Others may observe it too, before or after.
    Observes = 0,
    /// Changes it in a way that goes together with others of the same kind, such as taking the read side of a lock.
    Shares = 1,
    /// Changes it.
    Changes = 2,
}

/// The places of [`Space::World`].
const TIME: u64 = 0;
const THREAD_NUMBERS: u64 = 1;
const OUTSIDE: u64 = 2;

impl Touch {
    fn new(space: Space, start: u64, len: u64, effect: Effect) -> Touch {
        Touch { space, start, len, effect }
    }

    fn object(address: u64, effect: Effect) -> Touch {
        Touch::new(Space::Object, address, 1, effect)
    }

    /// The creation and the end of a thread.
    pub fn thread(thread: u64, effect: Effect) -> Touch {
        Touch::new(Space::Thread, thread, 1, effect)
    }

    fn world(place: u64) -> Touch {
        Touch::new(Space::World, place, 1, Effect::Changes)
    }

    /// Everything.
    pub const ALL: Touch = Touch { space: Space::All, start: 0, len: 0, effect: Effect::Changes };

    /// The touch with these numbers for its space and effect.
    pub fn from_bytes(space: u8, effect: u8, start: u64, len: u64) -> Option<Touch> {
        let spaces = [Space::Memory, Space::Object, Space::Thread, Space::World, Space::All];
        let effects = [Effect::Observes, Effect::Shares, Effect::Changes];
        let (&space, &effect) = (spaces.get(usize::from(space))?, effects.get(usize::from(effect))?);
        Some(Touch { space, start, len, effect })
    }

    /// The two cannot change places.
    pub fn conflicts(&self, other: &Touch) -> bool {
        if self.space == Space::All || other.space == Space::All {
            return true;
        }
        let overlap = self.space == other.space
            && self.start < other.start.saturating_add(other.len)
            && other.start < self.start.saturating_add(self.len);
        overlap && self.effect.conflicts(other.effect)
    }
}

impl Effect {
    /// Two that observe go together, and two that share.
    pub fn conflicts(self, other: Effect) -> bool {
        self == Effect::Changes || self != other
    }
}

/// An event, as far as what it touches depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    pub thread: ThreadIndex,
    pub kind: EventKind,
    pub outcome: Outcome,
    /// An address, or for thread events the other thread.
    pub object: u64,
    pub size: u64,
    pub value: u64,
}

/// What the event touches: at most two things.
pub fn touches(deed: &Deed) -> impl Iterator<Item = Touch> + use<> {
    let (first, second) = touched(deed);
    first.into_iter().chain(second)
}

fn touched(deed: &Deed) -> (Option<Touch>, Option<Touch>) {
    use Effect::{Changes, Observes, Shares};
    let &Deed { kind, outcome, object, size, value, .. } = deed;
    let memory = |effect| Touch::new(Space::Memory, object, size.max(1), effect);
    let primitive = |effect| Touch::object(object, effect);
    // What only found out that something cannot be had has changed nothing.
    let has_changed = !matches!(outcome, Outcome::Failed | Outcome::Unchanged);
    let unless_failed = |effect| if has_changed { effect } else { Observes };
    // The time of a wait is up: it observes that what it waited for is not there, and time goes on.
    if matches!(outcome, Outcome::TimedOut | Outcome::Early) && kind != EventKind::Sleep {
        let effect = match kind {
            // It no longer waits for a notification.
            EventKind::Wake | EventKind::FutexResume => Changes,
            _ => Observes,
        };
        let waited_for =
            if kind.is_about_thread() { Touch::thread(object, effect) } else { primitive(effect) };
        return (Some(waited_for), Some(Touch::world(TIME)));
    }
    match kind {
        EventKind::Read | EventKind::AtomicLoad => (Some(memory(Observes)), None),
        EventKind::Write | EventKind::AtomicStore => (Some(memory(Changes)), None),
        EventKind::AtomicRmw => (Some(memory(unless_failed(Changes))), None),
        EventKind::Free => (Some(Touch::new(Space::Memory, object, value.max(1), Changes)), None),
        EventKind::Lock | EventKind::SemWait => (Some(primitive(unless_failed(Changes))), None),
        EventKind::Unlock | EventKind::SemPost => (Some(primitive(Changes)), None),
        EventKind::ReadLock => (Some(primitive(unless_failed(Shares))), None),
        EventKind::ReadUnlock => (Some(primitive(Shares)), None),
        // Threads may begin to wait in any order: whoever notifies does not choose.
        EventKind::Wait => (Some(primitive(unless_failed(Shares))), None),
        // The compiler's futex word is memory; those who wait there are the object.
        EventKind::FutexWait if outcome == Outcome::Failed => (Some(memory(Observes)), None),
        EventKind::FutexWait => (Some(memory(Observes)), Some(primitive(Shares))),
        EventKind::Wake | EventKind::FutexResume => (Some(primitive(Changes)), None),
        // A notification that nobody waits for is lost.
        EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake => {
            (Some(primitive(if value == 0 { Observes } else { Changes })), None)
        }
        EventKind::BarrierArrive => (Some(primitive(Changes)), None),
        // The routine was done before: nothing changes.
        EventKind::OnceEnter => (Some(primitive(if value == 0 { Observes } else { Changes })), None),
        EventKind::OnceLeave => (Some(primitive(Changes)), None),
        EventKind::Fork => (Some(Touch::thread(object, Changes)), Some(Touch::world(THREAD_NUMBERS))),
        EventKind::Begin | EventKind::End => {
            (Some(Touch::thread(deed.thread.number().into(), Changes)), None)
        }
        EventKind::Join => (Some(Touch::thread(object, Observes)), None),
        EventKind::Detach => (Some(Touch::thread(object, Changes)), None),
        EventKind::Io => (Some(Touch::world(OUTSIDE)), None),
        // A sleep ends when nobody else can go on. The others of these end the program, or a thread anywhere in it.
        EventKind::Sleep | EventKind::Exit | EventKind::Failure | EventKind::Cancel | EventKind::Signal => {
            (Some(Touch::ALL), None)
        }
        // Whoever leaves a barrier comes after all who have arrived, and stands in nobody's way.
        EventKind::BarrierLeave
        | EventKind::Allocate
        | EventKind::Enter
        | EventKind::Leave
        | EventKind::Fence
        | EventKind::Yield
        | EventKind::Reach => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deed(kind: EventKind, outcome: Outcome, object: u64, size: u64) -> Deed {
        Deed { thread: ThreadIndex::MAIN, kind, outcome, object, size, value: 1 }
    }

    fn conflict(one: Deed, other: Deed) -> bool {
        let mut pairs = touches(&one).flat_map(|touch| touches(&other).map(move |other| (touch, other)));
        let conflict = pairs.any(|(one, other)| one.conflicts(&other));
        let mut reversed = touches(&other).flat_map(|touch| touches(&one).map(move |one| (touch, one)));
        assert_eq!(conflict, reversed.any(|(one, other)| one.conflicts(&other)), "conflicts are mutual");
        conflict
    }

    #[test]
    fn reads_go_together_and_writes_do_not() {
        let access = |kind, at, size| deed(kind, Outcome::Done, at, size);
        use EventKind::{AtomicLoad, AtomicRmw, Read, Write};
        assert!(!conflict(access(Read, 8, 8), access(AtomicLoad, 8, 8)));
        assert!(conflict(access(Read, 8, 8), access(Write, 15, 1)));
        assert!(!conflict(access(Read, 8, 8), access(Write, 16, 1)));
        assert!(conflict(access(AtomicRmw, 8, 4), access(AtomicLoad, 8, 4)));
        let failed = deed(AtomicRmw, Outcome::Failed, 8, 4);
        assert!(!conflict(failed, access(AtomicLoad, 8, 4)) && !conflict(failed, failed));
    }

    #[test]
    fn locks() {
        use EventKind::{Lock, ReadLock, ReadUnlock, Unlock};
        let [lock, unlock, read, unread] =
            [Lock, Unlock, ReadLock, ReadUnlock].map(|kind| deed(kind, Outcome::Done, 8, 0));
        let tried = deed(Lock, Outcome::Failed, 8, 0);
        assert!(conflict(lock, lock) && conflict(lock, unlock) && conflict(lock, read));
        assert!(!conflict(read, read) && !conflict(read, unread));
        assert!(conflict(tried, unlock) && conflict(tried, unread) && !conflict(tried, tried));
        assert!(!conflict(lock, deed(Lock, Outcome::Done, 16, 0)));
    }

    #[test]
    fn the_end_of_the_program_goes_with_nothing() {
        let exit = deed(EventKind::Exit, Outcome::Done, 0, 0);
        assert!(conflict(exit, deed(EventKind::Read, Outcome::Done, 8, 8)));
        assert!(!conflict(exit, deed(EventKind::Yield, Outcome::Done, 0, 0)));
    }

    #[test]
    fn bytes_name_every_space_and_effect() {
        for space in 0..5 {
            for effect in 0..3 {
                let touch = Touch::from_bytes(space, effect, 1, 2).expect("a touch");
                assert_eq!((touch.space as u8, touch.effect as u8), (space, effect));
            }
        }
        assert_eq!(Touch::from_bytes(5, 0, 0, 0), None);
    }
}
