//! Stable names for memory and for what threads synchronise on.

use std::fmt;

use crate::{StackIndex, ThreadIndex};

/// What an event was about, under a name that does not depend on addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectName {
    /// The event has no object.
    None,
    /// A variable with static storage: linkage name of its symbol, and bytes into it.
    Global { symbol: String, offset: u64 },
    /// Bytes into the `ordinal`-th (from 1) block that `thread` allocated at the stack `site`.
    Heap { site: StackIndex, thread: ThreadIndex, ordinal: u32, offset: u64 },
    /// Bytes from the base of a thread's stack (negative: the stack grows down), which is where the first
    /// instrumented function of the thread was entered.
    Stack { thread: ThreadIndex, offset: i64 },
    /// A thread.
    Thread(ThreadIndex),
    /// Memory that is none of these, such as a file mapping.
    Memory { address: u64 },
}

/// An object of a trace: its stable name, and what a person calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    pub name: ObjectName,
    /// In source terms: `accounts[1].amount`.
    pub display: String,
}

impl Object {
    /// The entry for "no object".
    pub fn none() -> Object {
        Object { name: ObjectName::None, display: String::new() }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display)
    }
}
