//! Where a schedule stands in a ranking (section 3.1 of RankChecker): tuples (c, v, t, l).

use std::fmt;
use std::str::FromStr;

/// A part of the space of schedules: at most `c` preemptions, at accesses to at most `v` variables, priority orders
/// for `t` threads, and preemptions in the first `l` passes of a place only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    pub c: u32,
    pub v: Variables,
    pub t: u32,
    pub l: u32,
}

/// How many variables are preempted at, besides synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variables {
    Some(u32),
    /// The paper's v_tot.
    All,
}

impl Tuple {
    pub const fn new(c: u32, v: Variables, t: u32, l: u32) -> Tuple {
        Tuple { c, v, t, l }
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.v {
            Variables::Some(v) => write!(f, "({},{v},{},{})", self.c, self.t, self.l),
            Variables::All => write!(f, "({},all,{},{})", self.c, self.t, self.l),
        }
    }
}

/// The text was not a tuple such as `(1,all,2,1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTuple(pub String);

impl fmt::Display for InvalidTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a tuple such as (1,all,2,1): preemptions, variables, threads, repeats", self.0)
    }
}

impl std::error::Error for InvalidTuple {}

impl FromStr for Tuple {
    type Err = InvalidTuple;

    fn from_str(text: &str) -> Result<Tuple, InvalidTuple> {
        let invalid = || InvalidTuple(text.to_owned());
        let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        let [c, v, t, l] = parts.as_slice() else { return Err(invalid()) };
        let number = |text: &str| text.parse::<u32>().map_err(|_| invalid());
        let v = if *v == "all" { Variables::All } else { Variables::Some(number(v)?) };
        let (c, t, l) = (number(c)?, number(t)?, number(l)?);
        if t < 2 || l < 1 { Err(invalid()) } else { Ok(Tuple { c, v, t, l }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_read_as_they_are_written() {
        for text in ["(1,all,2,1)", "(2,1,3,4)"] {
            assert_eq!(text.parse::<Tuple>().expect("a tuple").to_string(), text);
        }
        for text in ["", "(1,2,3)", "(1,x,2,1)", "(1,0,1,1)", "(1,0,2,0)"] {
            assert!(text.parse::<Tuple>().is_err(), "{text:?} was accepted");
        }
    }
}
