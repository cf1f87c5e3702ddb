//! Indices into the tables of a trace, each with a type of its own.
//!
//! A thread, an object, a location, a stack and an event are all small numbers. With a type for each, a number for one
//! table cannot be used with another. An index is as cheap as the `u32` inside it. It is made from a number only by
//! name ([`ThreadIndex::new`], [`ThreadIndex::at`]), never by a conversion that happens unseen.

/// Defines types for indices into tables.
///
/// Each has the same few functions, so this is a macro that other crates use for tables of their own.
#[macro_export]
macro_rules! index_types {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The index with this number.
            #[inline]
            pub const fn new(number: u32) -> $name {
                $name(number)
            }

            /// The index of the entry at this position. No table has 2^32 entries.
            #[inline]
            pub const fn at(position: usize) -> $name {
                debug_assert!(position <= u32::MAX as usize);
                $name(position as u32)
            }

            /// The indices of the first `count` entries.
            #[inline]
            pub fn first(count: usize) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (0..count).map($name::at)
            }

            #[inline]
            pub const fn number(self) -> u32 {
                self.0
            }

            /// For indexing.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The index of the entry that follows.
            #[inline]
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    )+};
}

index_types! {
    /// A thread, in the order of creation. The main thread is 0.
    ThreadIndex;
    /// An entry of a trace's table of objects.
    ObjectIndex;
    /// An entry of a trace's table of locations.
    LocationIndex;
    /// An entry of a trace's table of call stacks.
    StackIndex;
    /// An event of a trace.
    EventIndex;
}

impl ThreadIndex {
    pub const MAIN: ThreadIndex = ThreadIndex::new(0);
}

impl ObjectIndex {
    /// The entry for "no object".
    pub const NONE: ObjectIndex = ObjectIndex::new(0);
}

impl LocationIndex {
    /// The entry for "unknown".
    pub const NONE: LocationIndex = LocationIndex::new(0);

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl StackIndex {
    /// The stack without any call.
    pub const EMPTY: StackIndex = StackIndex::new(0);

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    /// Protects memory and speed: traces have many millions of events, and analyses sort and compare their indices.
    #[test]
    fn an_index_is_no_larger_than_its_number() {
        assert_eq!(size_of::<EventIndex>(), size_of::<u32>());
        assert_eq!(size_of::<Event>(), 32);
    }

    /// Protects errors and reports: an index reads as its number, and in a debugger as what it is.
    #[test]
    fn an_index_reads_as_its_number() {
        let thread = ThreadIndex::at(7);
        assert_eq!((format!("{thread}"), format!("{thread:?}")), ("7".into(), "ThreadIndex(7)".into()));
        assert!(ThreadIndex::first(3).eq([0, 1, 2].map(ThreadIndex::new)));
    }
}
