//! Words for events and waits.

use threadbare_trace::{Event, EventKind, ObjectIndex, ObjectName, Outcome, Pending, ThreadIndex};

use threadbare_hunt::user_code::UserCode;

/// Shown instead of an unknown source line.
pub const NO_LINE: &str = "(no source line)";

/// What an event did, shown below its source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// `reads accounts[0].amount`.
    pub what: String,
    /// `: 1300`, or nothing.
    pub value: String,
}

impl From<&str> for Detail {
    fn from(what: &str) -> Detail {
        Detail { what: what.into(), value: String::new() }
    }
}

/// The detail of an event; `None` if the source line says enough.
pub fn detail(code: &UserCode<'_>, event: &Event) -> Option<Detail> {
    if event.kind.is_access() {
        return Some(access(code, event));
    }
    match event.outcome {
        Outcome::Failed => return Some("busy".into()),
        Outcome::Early if event.kind == EventKind::Sleep => return Some("sleep is outlasted".into()),
        Outcome::TimedOut | Outcome::Early => return Some("timed out".into()),
        Outcome::Error => return Some("returns an error".into()),
        Outcome::Done | Outcome::Unchanged => {}
    }
    let words = match event.kind {
        EventKind::Wait | EventKind::FutexWait => "waits",
        EventKind::Wake | EventKind::FutexResume => "is woken",
        // The runtime records how many were woken.
        EventKind::NotifyOne | EventKind::NotifyAll | EventKind::FutexWake if event.value == 0 => {
            "wakes nobody"
        }
        EventKind::BarrierArrive => "arrives",
        EventKind::BarrierLeave => "goes on",
        EventKind::Failure => "panics",
        EventKind::Read
        | EventKind::Write
        | EventKind::AtomicLoad
        | EventKind::AtomicStore
        | EventKind::AtomicRmw
        | EventKind::Fence
        | EventKind::Lock
        | EventKind::Unlock
        | EventKind::ReadLock
        | EventKind::ReadUnlock
        | EventKind::NotifyOne
        | EventKind::NotifyAll
        | EventKind::Fork
        | EventKind::Begin
        | EventKind::End
        | EventKind::Join
        | EventKind::Detach
        | EventKind::SemWait
        | EventKind::SemPost
        | EventKind::OnceEnter
        | EventKind::OnceLeave
        | EventKind::FutexWake
        | EventKind::Allocate
        | EventKind::Free
        | EventKind::Enter
        | EventKind::Leave
        | EventKind::Reach
        | EventKind::Yield
        | EventKind::Sleep
        | EventKind::Exit
        | EventKind::Cancel
        | EventKind::Io
        | EventKind::Signal => return None,
    };
    Some(words.into())
}

fn access(code: &UserCode<'_>, event: &Event) -> Detail {
    let verb = match (event.kind, event.outcome) {
        (EventKind::Read | EventKind::AtomicLoad, _) => "reads",
        (EventKind::AtomicRmw, Outcome::Failed) => "exchanges nothing, finds",
        _ => "writes",
    };
    let value = value(event.value, event.size);
    match code.object(event.object) {
        Some(object) => Detail { what: format!("{verb} {object}"), value: format!(": {value}") },
        None => Detail { what: verb.into(), value: format!(" {value}") },
    }
}

/// A value as its size suggests: numbers in decimal, what looks like an address in hexadecimal.
pub fn value(value: u64, size: u32) -> String {
    match size {
        4 => (value as u32).cast_signed().to_string(),
        1 | 2 => value.to_string(),
        _ if u32::try_from(value).is_ok() => value.to_string(),
        _ if value.cast_signed() >= i64::from(i32::MIN) && value.cast_signed() < 0 => {
            value.cast_signed().to_string()
        }
        _ => format!("{value:#x}"),
    }
}

/// An event that no source line is known for.
pub fn nameless(code: &UserCode<'_>, event: &Event) -> String {
    let location = code.trace.locations.get(event.location.index());
    let known = location.filter(|location| !location.frames.is_empty());
    match (known, event.kind.is_access()) {
        (Some(location), true) => location.to_string(),
        (None, true) => NO_LINE.into(),
        (Some(location), false) => format!("{} {location}", operation(code, event)),
        (None, false) => operation(code, event),
    }
}

fn operation(code: &UserCode<'_>, event: &Event) -> String {
    match code.object(event.object) {
        Some(object) => format!("{} {object}", event.kind),
        None => event.kind.to_string(),
    }
}

/// `waits to lock accounts[1].lock`.
pub fn waiting(code: &UserCode<'_>, pending: &Pending) -> String {
    let on = |verb: &str, nameless: &str| {
        format!("waits {verb} {}", code.object(pending.object).unwrap_or(nameless))
    };
    match pending.kind {
        EventKind::Lock => on("to lock", "a lock"),
        EventKind::ReadLock => on("to read-lock", "a lock"),
        EventKind::Wait | EventKind::Wake => on("to be woken on", "a condition"),
        EventKind::Join => match joined(code, pending.object) {
            Some(thread) => format!("waits for {} to end", code.thread(thread)),
            None => "waits for a thread to end".into(),
        },
        EventKind::SemWait => on("for a post of", "a semaphore"),
        EventKind::BarrierArrive | EventKind::BarrierLeave => on("for the others at", "a barrier"),
        EventKind::FutexWait | EventKind::FutexResume => on("to be woken on", "a futex"),
        EventKind::OnceEnter => on("for another thread to initialise", "what it needs"),
        EventKind::Sleep => "sleeps".into(),
        kind @ (EventKind::Read
        | EventKind::Write
        | EventKind::AtomicLoad
        | EventKind::AtomicStore
        | EventKind::AtomicRmw
        | EventKind::Fence
        | EventKind::Unlock
        | EventKind::ReadUnlock
        | EventKind::NotifyOne
        | EventKind::NotifyAll
        | EventKind::Fork
        | EventKind::Begin
        | EventKind::End
        | EventKind::Detach
        | EventKind::SemPost
        | EventKind::OnceLeave
        | EventKind::FutexWake
        | EventKind::Allocate
        | EventKind::Free
        | EventKind::Enter
        | EventKind::Leave
        | EventKind::Reach
        | EventKind::Yield
        | EventKind::Exit
        | EventKind::Failure
        | EventKind::Cancel
        | EventKind::Io
        | EventKind::Signal) => on(&format!("to {kind}"), "").trim_end().into(),
    }
}

/// The thread that a join is about.
pub fn joined(code: &UserCode<'_>, object: ObjectIndex) -> Option<ThreadIndex> {
    match code.trace.objects.get(object.index())?.name {
        ObjectName::Thread(thread) => Some(thread),
        _ => None,
    }
}

/// `, held by thread 0.2`; nothing where no holder is known or the words above say it.
pub fn holders(code: &UserCode<'_>, pending: &Pending) -> String {
    if pending.holders.is_empty() || pending.kind == EventKind::Join {
        return String::new();
    }
    let name = |&holder: &ThreadIndex| {
        if holder == pending.thread { "itself".to_string() } else { code.thread(holder) }
    };
    let names: Vec<String> = pending.holders.iter().map(name).collect();
    format!(", held by {}", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn values_are_shown_as_what_they_likely_are() {
        assert_eq!(value(1300, 4), "1300");
        assert_eq!(value(0xffff_ffff, 4), "-1");
        assert_eq!(value(255, 1), "255");
        assert_eq!(value(0, 8), "0");
        assert_eq!(value(0xffff_ffff, 8), "4294967295");
        assert_eq!(value(0x7fff_f7a0_1000, 8), "0x7ffff7a01000");
        assert_eq!(value(u64::MAX, 8), "-1");
    }
}
