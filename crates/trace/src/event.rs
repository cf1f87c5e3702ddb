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

named_bytes! {
    /// The kinds of events. The numbers are part of the trace format and of the wire: append, never renumber.
    EventKind {
        /// A plain load.
        Read = 1, "read";
        /// A plain store.
        Write = 2, "write";
        AtomicLoad = 3, "atomic-load";
        AtomicStore = 4, "atomic-store";
        /// Exchange, fetch-and-op or compare-exchange; a failed compare-exchange has [`Outcome::Failed`].
        AtomicRmw = 5, "atomic-rmw";
        Fence = 6, "fence";
        /// A mutex, spinlock, or the write side of a read-write lock was taken, or (by outcome) was not.
        Lock = 7, "lock";
        Unlock = 8, "unlock";
        /// The read side of a read-write lock.
        ReadLock = 9, "read-lock";
        ReadUnlock = 10, "read-unlock";
        /// A condition wait began and its mutex was released.
        Wait = 11, "wait";
        /// A condition wait ended and its mutex is held again.
        Wake = 12, "wake";
        NotifyOne = 13, "notify-one";
        NotifyAll = 14, "notify-all";
        /// A thread was created; the object is the new thread.
        Fork = 15, "fork";
        /// The first event of a created thread.
        Begin = 16, "begin";
        /// The last event of a created thread.
        End = 17, "end";
        Join = 18, "join";
        Detach = 19, "detach";
        SemWait = 20, "sem-wait";
        SemPost = 21, "sem-post";
        /// A thread arrived at a barrier.
        BarrierArrive = 22, "barrier-arrive";
        /// A thread left a barrier that was full.
        BarrierLeave = 23, "barrier-leave";
        /// A `once` routine starts, or is found done.
        OnceEnter = 24, "once-enter";
        /// A `once` routine has returned.
        OnceLeave = 25, "once-leave";
        /// A futex wait went to sleep.
        FutexWait = 26, "futex-wait";
        /// A futex wait ended.
        FutexResume = 27, "futex-resume";
        FutexWake = 28, "futex-wake";
        Allocate = 29, "allocate";
        Free = 30, "free";
        /// A function was entered (recorded on request).
        Enter = 31, "enter";
        /// A function was left (recorded on request).
        Leave = 32, "leave";
        Yield = 33, "yield";
        Sleep = 34, "sleep";
        /// The process is about to end by `exit` or a return from `main`.
        Exit = 35, "exit";
        /// An oracle fired.
        Failure = 36, "failure";
        /// A thread was asked to end.
        Cancel = 37, "cancel";
        /// Input or output through a descriptor that may have to be waited for.
        Io = 38, "io";
        /// A signal was sent to a thread.
        Signal = 39, "signal";
    }
}

impl EventKind {
    /// A load or store of memory, atomic or not.
    pub const fn is_access(self) -> bool {
        matches!(
            self,
            EventKind::Read
                | EventKind::Write
                | EventKind::AtomicLoad
                | EventKind::AtomicStore
                | EventKind::AtomicRmw
        )
    }

    /// An access that may change memory.
    pub const fn is_write(self) -> bool {
        matches!(self, EventKind::Write | EventKind::AtomicStore | EventKind::AtomicRmw)
    }

    /// Bookkeeping that never is a schedule point, so that no plan can stop before it.
    pub const fn is_silent(self) -> bool {
        matches!(
            self,
            EventKind::Allocate | EventKind::Free | EventKind::Enter | EventKind::Leave | EventKind::Failure
        )
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
    /// Bytes accessed or allocated; 0 where that means nothing.
    pub size: u32,
    pub object: ObjectIndex,
    pub location: LocationIndex,
    /// The calls that led here, outermost last; see [`StackNode`](crate::StackNode).
    pub stack: StackIndex,
    /// What was read or written (the low 8 bytes), the bytes allocated or freed, the thread created or joined, how
    /// many were woken, the signal sent, the descriptor used.
    pub value: u64,
}
