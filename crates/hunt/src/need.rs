//! What must happen by time for a run to fail as it did: that a sleep is outlasted, that a wait times out.
//!
//! Such a failure takes a thread that is held up for so long. Whoever reads of it wants to know for how long.

use std::fmt;

use threadbare_trace::{EventKind, Outcome, Span};

use crate::SourceLine;
use crate::user_code::{UserCode, base_name};

/// A wait or a sleep whose time was up while other threads could still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub what: NeedKind,
    /// How long it was to last.
    pub span: Span,
    /// Where; `None` if that is not known.
    pub at: Option<SourceLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedKind {
    OutlastedSleep,
    Timeout,
}

impl NeedKind {
    /// The word for it in `--json` output.
    pub const fn name(self) -> &'static str {
        match self {
            NeedKind::OutlastedSleep => "outlasted-sleep",
            NeedKind::Timeout => "timeout",
        }
    }
}

impl fmt::Display for Need {
    /// `the 500 µs sleep at x.c:12 is outlasted`, `the 5 s wait at x.c:12 times out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, happens) = match self.what {
            NeedKind::OutlastedSleep => ("sleep", "is outlasted"),
            NeedKind::Timeout => ("wait", "times out"),
        };
        write!(f, "the {} {what} ", self.span)?;
        if let Some(at) = &self.at {
            write!(f, "at {}:{} ", base_name(&at.file), at.line)?;
        }
        write!(f, "{happens}")
    }
}

/// Everything that the run of this trace needed, each once. What a library does for itself is left out, such as the wait
/// of a test harness.
pub fn needs(code: &UserCode<'_>) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for event in code.trace.events.iter().filter(|event| event.outcome == Outcome::Early) {
        if code.is_foreign(event.location, event.stack) {
            continue;
        }
        let what = if event.kind == EventKind::Sleep { NeedKind::OutlastedSleep } else { NeedKind::Timeout };
        let span = Span::from_bits(event.size as u16);
        let need = Need { what, span, at: code.of(event).map(|line| SourceLine::of(line.frame)) };
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    needs
}

/// `if the 5 s wait at x.c:12 times out and the 1 ms sleep at x.c:20 is outlasted`; `None` if there are none.
pub fn condition(needs: &[Need]) -> Option<String> {
    /// More of them say no more.
    const MAX_SHOWN: usize = 3;
    let mut parts: Vec<String> = needs.iter().take(MAX_SHOWN).map(Need::to_string).collect();
    if needs.len() > MAX_SHOWN {
        parts.push(format!("{} more waits end early", needs.len() - MAX_SHOWN));
    }
    (!parts.is_empty()).then(|| format!("if {}", parts.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_what_must_happen_and_where() {
        let at = |line| SourceLine { file: "/src/x.c".into(), line, column: 1, function: "f".into() };
        let sleep =
            Need { what: NeedKind::OutlastedSleep, span: Span::of_nanoseconds(500_000), at: Some(at(12)) };
        let wait = Need { what: NeedKind::Timeout, span: Span::of_nanoseconds(5_000_000_000), at: None };
        assert_eq!(condition(&[]), None);
        assert_eq!(
            condition(&[sleep.clone(), wait]).as_deref(),
            Some("if the 500 µs sleep at x.c:12 is outlasted and the 5 s wait times out")
        );
        let many: Vec<Need> = (1..6).map(|line| Need { at: Some(at(line)), ..sleep.clone() }).collect();
        assert!(condition(&many).is_some_and(|text| text.ends_with("and 2 more waits end early")));
    }
}
