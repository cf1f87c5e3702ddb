//! How code of a standard library is treated that is compiled into the program.

/// Whether a library function's accesses count as the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CodeClass {
    /// They count as the caller's.
    Passing = 1,
    /// They are the library's own and do not matter to the schedule.
    Quiet = 2,
}

impl CodeClass {
    /// The class with this number.
    pub fn from_number(number: u64) -> Option<CodeClass> {
        use CodeClass::*;
        [Passing, Quiet].into_iter().find(|class| *class as u64 == number)
    }
}
