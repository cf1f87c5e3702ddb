//! What can happen in a run.

use crate::{LocationIndex, ObjectIndex, StackIndex, ThreadIndex};

/// Defines a byte-sized enum with a textual name per variant, readable in both directions.
macro_rules! named_bytes {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $value,)+ }

        impl $name {
            /// Every variant, in the order of its number.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The word used for it in files and on the screen.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// The variant with this number.
            pub const fn from_byte(byte: u8) -> Option<$name> {
                match byte { $($value => Some($name::$variant),)+ _ => None }
            }

            /// The variant with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.name()) }
        }
    };
}

pub(crate) use named_bytes;

/// What the analyses and reports need to know of a kind of events. Each kind has a row in the table below with those that
/// are true of it, so a new kind cannot be left out by mistake.
mod property {
    /// Loads memory.
    pub const READS: u16 = 1;
    /// May change memory.
    pub const WRITES: u16 = 1 << 1;
    /// Has a memory order.
    pub const ORDERED: u16 = 1 << 2;
    /// Takes a lock.
    pub const ACQUIRES: u16 = 1 << 3;
    /// Gives a lock back.
    pub const RELEASES: u16 = 1 << 4;
    /// Takes or gives back the read side of a lock.
    pub const SHARED: u16 = 1 << 5;
    /// The object has a state of its own, so that the order of all that is done to it matters.
    pub const STATEFUL: u16 = 1 << 6;
    /// The object is a thread.
    pub const THREAD: u16 = 1 << 7;
    /// A thread or a process has only one such event.
    pub const UNIQUE: u16 = 1 << 8;
    /// Bookkeeping that never is a schedule point.
    pub const SILENT: u16 = 1 << 9;
    /// It makes a difference to others whether the thread is preempted before it.
    pub const PREEMPTION: u16 = 1 << 10;
    /// The object is a primitive in the program's memory, which must be there and must not be destroyed.
    ///
    /// Not of the ends of waits: a condition variable or a barrier may be destroyed as soon as all its waiters are let
    /// go, and a futex wait looks at its word only when it begins. Not of `FUTEX_WAKE`: the kernel does not look at the
    /// word, and locks are made to wake others after they are unlocked, when another thread may have freed the lock.
    pub const PRIMITIVE: u16 = 1 << 11;
}

/// Defines the kinds of events. A row is `Variant = number, "name", [properties]`.
macro_rules! event_kinds {
    ($($(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal, [$($property:ident)*];)+) => {
        named_bytes! {
            /// The kinds of events. The numbers are part of the trace format and of the wire: append, never renumber.
            EventKind { $($(#[$vmeta])* $variant = $value, $text;)+ } }

        impl EventKind {
            const fn properties(self) -> u16 {
                match self { $(EventKind::$variant => 0 $(| property::$property)*,)+ }
            }
        }
    };
}

// The numbers are part of the trace format and of the wire: append, never renumber.
event_kinds! {
    /// A plain load.
    Read = 1, "read", [READS PREEMPTION];
    /// A plain store.
    Write = 2, "write", [WRITES PREEMPTION];
    AtomicLoad = 3, "atomic-load", [READS ORDERED PREEMPTION];
    AtomicStore = 4, "atomic-store", [WRITES ORDERED PREEMPTION];
    /// Exchange, fetch-and-op or compare-exchange; a failed compare-exchange has [`Outcome::Failed`].
    AtomicRmw = 5, "atomic-rmw", [READS WRITES ORDERED PREEMPTION];
    Fence = 6, "fence", [ORDERED];
    /// A mutex, spinlock, or the write side of a read-write lock was taken, or (by outcome) was not.
    Lock = 7, "lock", [ACQUIRES PREEMPTION PRIMITIVE];
    Unlock = 8, "unlock", [RELEASES PRIMITIVE];
    /// The read side of a read-write lock.
    ReadLock = 9, "read-lock", [ACQUIRES SHARED PREEMPTION PRIMITIVE];
    ReadUnlock = 10, "read-unlock", [RELEASES SHARED PRIMITIVE];
    /// A condition wait began and its mutex was released.
    Wait = 11, "wait", [STATEFUL PREEMPTION PRIMITIVE];
    /// A condition wait ended and its mutex is held again.
    Wake = 12, "wake", [STATEFUL PREEMPTION];
    NotifyOne = 13, "notify-one", [STATEFUL PREEMPTION PRIMITIVE];
    NotifyAll = 14, "notify-all", [STATEFUL PREEMPTION PRIMITIVE];
    /// A thread was created; the object is the new thread.
    Fork = 15, "fork", [THREAD PREEMPTION];
    /// The first event of a created thread.
    Begin = 16, "begin", [UNIQUE];
    /// The last event of a created thread.
    End = 17, "end", [UNIQUE];
    Join = 18, "join", [THREAD];
    Detach = 19, "detach", [THREAD];
    SemWait = 20, "sem-wait", [STATEFUL PREEMPTION PRIMITIVE];
    SemPost = 21, "sem-post", [STATEFUL PREEMPTION PRIMITIVE];
    /// A thread arrived at a barrier.
    BarrierArrive = 22, "barrier-arrive", [STATEFUL PREEMPTION PRIMITIVE];
    /// A thread left a barrier that was full.
    BarrierLeave = 23, "barrier-leave", [STATEFUL PREEMPTION];
    /// A `once` routine starts, or is found done.
    OnceEnter = 24, "once-enter", [STATEFUL PREEMPTION PRIMITIVE];
    /// A `once` routine has returned.
    OnceLeave = 25, "once-leave", [STATEFUL PREEMPTION PRIMITIVE];
    /// A futex wait went to sleep.
    FutexWait = 26, "futex-wait", [STATEFUL PREEMPTION PRIMITIVE];
    /// A futex wait ended.
    FutexResume = 27, "futex-resume", [STATEFUL PREEMPTION];
    FutexWake = 28, "futex-wake", [STATEFUL PREEMPTION];
    Allocate = 29, "allocate", [SILENT];
    Free = 30, "free", [SILENT];
    /// A function was entered (recorded on request).
    Enter = 31, "enter", [SILENT];
    /// A function was left (recorded on request).
    Leave = 32, "leave", [SILENT];
    Yield = 33, "yield", [PREEMPTION];
    Sleep = 34, "sleep", [PREEMPTION];
    /// The process is about to end by `exit` or a return from `main`.
    Exit = 35, "exit", [UNIQUE];
    /// An oracle fired.
    Failure = 36, "failure", [SILENT];
    /// A thread was asked to end.
    Cancel = 37, "cancel", [STATEFUL THREAD PREEMPTION];
    /// Input or output through a descriptor that may have to be waited for.
    Io = 38, "io", [STATEFUL PREEMPTION];
    /// A signal was sent to a thread.
    Signal = 39, "signal", [STATEFUL THREAD PREEMPTION];
    /// A thread came to a place that the plan watches ([`Watched`](crate::Watched)).
    Reach = 40, "reach", [PREEMPTION];
}

/// What an event does to a lock. `shared` is true for the read side of a read-write lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockEffect {
    Acquires { shared: bool },
    Releases { shared: bool },
}

impl EventKind {
    const fn has(self, property: u16) -> bool {
        self.properties() & property != 0
    }

    /// A load or store of memory, atomic or not.
    pub const fn is_access(self) -> bool {
        self.has(property::READS | property::WRITES)
    }

    /// An access that loads memory.
    pub const fn is_read(self) -> bool {
        self.has(property::READS)
    }

    /// An access that may change memory.
    pub const fn is_write(self) -> bool {
        self.has(property::WRITES)
    }

    /// The memory order of the event means something.
    pub const fn has_memory_order(self) -> bool {
        self.has(property::ORDERED)
    }

    /// What it does to its lock when it succeeds; `None` if it is not about a lock.
    pub const fn lock_effect(self) -> Option<LockEffect> {
        let shared = self.has(property::SHARED);
        if self.has(property::ACQUIRES) {
            Some(LockEffect::Acquires { shared })
        } else if self.has(property::RELEASES) {
            Some(LockEffect::Releases { shared })
        } else {
            None
        }
    }

    /// The object has a state of its own: what is done to it means something else in another order.
    pub const fn is_stateful(self) -> bool {
        self.has(property::STATEFUL)
    }

    /// The object is a thread.
    pub const fn is_about_thread(self) -> bool {
        self.has(property::THREAD)
    }

    /// The object is a primitive that the program must not have freed or destroyed.
    pub const fn needs_primitive(self) -> bool {
        self.has(property::PRIMITIVE)
    }

    /// A thread or a process has only one such event, so that it needs no place in the code to be found by.
    pub const fn is_unique(self) -> bool {
        self.has(property::UNIQUE)
    }

    /// It may find that there is nothing to do, and touch less then.
    pub const fn may_turn_out_otherwise(self) -> bool {
        matches!(
            self,
            EventKind::AtomicRmw
                | EventKind::Lock
                | EventKind::ReadLock
                | EventKind::SemWait
                | EventKind::Wait
                | EventKind::FutexWait
                | EventKind::NotifyOne
                | EventKind::NotifyAll
                | EventKind::FutexWake
                | EventKind::OnceEnter
        )
    }

    /// Bookkeeping that never is a schedule point, so that no plan can stop before it.
    pub const fn is_silent(self) -> bool {
        self.has(property::SILENT)
    }

    /// A preemption before it can lead to another run. Before any other event it is the same as before the thread's
    /// next: the event does nothing that others could come before or after. (Whoever waits for an unlock also waits for
    /// what comes after it.)
    pub const fn is_preemption_point(self) -> bool {
        self.has(property::PREEMPTION)
    }
}

named_bytes! {
    /// The memory order of an atomic event, numbered as compilers pass it to ThreadSanitizer.
    MemoryOrder {
        Relaxed = 0, "relaxed";
        Consume = 1, "consume";
        Acquire = 2, "acquire";
        Release = 3, "release";
        AcqRel = 4, "acq-rel";
        SeqCst = 5, "seq-cst";
    }
}

named_bytes! {
    /// How an operation that may go either way went.
    Outcome {
        Done = 0, "done";
        /// A try that found the object taken, or a compare-exchange that found another value.
        Failed = 1, "failed";
        TimedOut = 2, "timed-out";
        /// The operation returned an error, such as unlocking what is not held.
        Error = 3, "error";
        /// The time of a wait or a sleep was up while other threads could still run, so they were slow. The event's size
        /// is how long it was to last, as a [`Span`](crate::Span).
        Early = 4, "early";
        /// An atomic operation stored what it had found. Only runs of an exploration tell this from [`Done`](Outcome::Done).
        Unchanged = 5, "unchanged";
    }
}

/// One thing that happened. Indices point into the tables of the [`Trace`](crate::Trace) that holds the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub thread: ThreadIndex,
    pub kind: EventKind,
    /// Meaningful for atomic kinds; [`MemoryOrder::Relaxed`] otherwise.
    pub order: MemoryOrder,
    pub outcome: Outcome,
    /// Bytes accessed or allocated; the bits of a [`Span`](crate::Span) for [`Outcome::Early`]; 0 where that means nothing.
    pub size: u32,
    pub object: ObjectIndex,
    pub location: LocationIndex,
    /// The calls that led here, outermost last; see [`StackNode`](crate::StackNode).
    pub stack: StackIndex,
    /// What was read or written (the low 8 bytes), the bytes allocated or freed, the thread created or joined, how
    /// many were woken, the signal sent, the descriptor used.
    pub value: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the table from rows that contradict themselves.
    #[test]
    fn properties_go_together() {
        for &kind in EventKind::ALL {
            assert!(!(kind.is_silent() && kind.is_preemption_point()), "{kind}");
            assert!(!(kind.is_access() && kind.lock_effect().is_some()), "{kind}");
            assert!(!(kind.is_unique() && kind.is_preemption_point()), "{kind}");
            assert!(!(kind.has(property::SHARED) && kind.lock_effect().is_none()), "{kind}");
        }
        let accesses = EventKind::ALL.iter().filter(|kind| kind.is_access()).count();
        assert_eq!(accesses, 5);
    }
}
