//! Thread identity: the path of creation.

use std::fmt;
use std::str::FromStr;

/// Names a thread by how it came to be: `0` is the main thread, `0.2` its second child, `0.2.1` the first
/// child of that one.
///
/// The name is the same in every run of a program, whatever the schedule, because it counts only what the
/// thread's own ancestors did.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Vec<u32>);

impl ThreadId {
    /// The thread that runs `main`.
    pub fn main() -> ThreadId {
        ThreadId(vec![0])
    }

    /// The `ordinal`-th thread (counted from 1) that this one creates.
    pub fn child(&self, ordinal: u32) -> ThreadId {
        let mut path = self.0.clone();
        path.push(ordinal);
        ThreadId(path)
    }

    /// The creator, or `None` for the main thread.
    pub fn parent(&self) -> Option<ThreadId> {
        (self.0.len() > 1).then(|| ThreadId(self.0[..self.0.len() - 1].to_vec()))
    }

    /// The numbers of the path, the main thread's 0 first.
    pub fn path(&self) -> &[u32] {
        &self.0
    }

    /// The thread with this path, or `None` when it does not begin with the main thread.
    pub fn from_path(path: &[u32]) -> Option<ThreadId> {
        match path {
            [0, children @ ..] if !children.contains(&0) => Some(ThreadId(path.to_vec())),
            _ => None,
        }
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

/// The text was not a thread id such as `0.2.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidThreadId(pub String);

impl fmt::Display for InvalidThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a thread id (such as 0 or 0.2.1)", self.0)
    }
}

impl std::error::Error for InvalidThreadId {}

impl FromStr for ThreadId {
    type Err = InvalidThreadId;

    fn from_str(text: &str) -> Result<ThreadId, InvalidThreadId> {
        let invalid = || InvalidThreadId(text.to_owned());
        let path: Vec<u32> =
            text.split('.').map(|part| part.parse().map_err(|_| invalid())).collect::<Result<_, _>>()?;
        ThreadId::from_path(&path).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_back_as_it_is_written() {
        let id = ThreadId::main().child(2).child(1);
        assert_eq!(id.to_string(), "0.2.1");
        assert_eq!("0.2.1".parse(), Ok(id.clone()));
        assert_eq!(id.parent(), Some(ThreadId::main().child(2)));
        assert_eq!(ThreadId::main().parent(), None);
    }

    #[test]
    fn what_is_not_a_path_is_refused() {
        for text in ["", "1", "0.", "0.0", "0.x", ".", "0.-1", "0.99999999999"] {
            assert!(text.parse::<ThreadId>().is_err(), "{text:?} was accepted");
        }
    }
}
