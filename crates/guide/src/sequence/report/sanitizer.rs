//! Reports of ThreadSanitizer, AddressSanitizer and Valgrind.

use super::lines::{SANITIZERS, Stack};
use super::{single, user_code};
use crate::sequence::through::variables;
use crate::sequence::{Sequence, Step, ThreadName, Warning, Waypoint};
use threadbare_trace::ThreadId;

/// What a stack of a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The access or call that was found to be wrong.
    Current,
    /// What another thread did before it.
    Previous,
    /// Where a lock was taken that is held.
    Held,
    /// Where a lock is taken while another is held.
    Wanted,
    /// Where a thread, a lock or memory comes from.
    Origin,
}

/// What lines say about the stack below them. The first that fits decides.
const ROLES: &[(&str, Role)] = &[
    ("acquired here while holding mutex", Role::Wanted),
    ("previously acquired by the same thread here", Role::Held),
    ("order is: acquisition of lock", Role::Held),
    ("Required order was established by acquisition of lock", Role::Held),
    ("followed by a later acquisition of lock", Role::Wanted),
    ("created by ", Role::Origin),
    ("created at:", Role::Origin),
    ("was created", Role::Origin),
    ("allocated by ", Role::Origin),
    ("As if synchronized via sleep", Role::Origin),
    ("was first observed", Role::Origin),
    ("alloc'd", Role::Origin),
    ("free'd", Role::Previous),
    ("Previous ", Role::Previous),
    ("This conflicts with a previous ", Role::Previous),
    ("freed by ", Role::Previous),
    ("and:", Role::Previous),
];

/// A stack with a place in the user's code.
struct Shown {
    role: Role,
    /// `T1` or `main`, as the report has it.
    thread: Option<String>,
    waypoint: Waypoint,
}

/// The sequence that brings about what the report says.
pub fn warning(title: &str, stacks: &[Stack]) -> Option<Warning> {
    let kind = kind(title);
    let shown: Vec<Shown> = stacks.iter().filter_map(|stack| shown(title, stack)).collect();
    let sequence = if kind.contains("lock order") || kind.contains("lock-order") {
        inversion(shown)
    } else if kind.starts_with("data race") || kind.starts_with("race on") {
        single(Step::together(in_any_threads(shown))?)
    } else {
        in_order(shown)
    };
    let is_empty = sequence.steps.is_empty();
    (!is_empty).then(|| Warning::new(kind, title, None, sequence))
}

/// `data race` of `WARNING: ThreadSanitizer: data race (pid=24874)`.
fn kind(title: &str) -> &str {
    if title.starts_with("Possible data race") {
        return "data race";
    }
    if title.contains(": lock order \"") {
        return "lock order";
    }
    let after = SANITIZERS.iter().find_map(|start| title.split_once(start)).map_or(title, |(_, after)| after);
    let end = [" (", " on address", " on unknown", " on 0x"].iter().filter_map(|end| after.find(end)).min();
    let kind = after[..end.unwrap_or(after.len())].trim();
    kind.strip_prefix("attempting ").unwrap_or(kind)
}

fn shown(title: &str, stack: &Stack) -> Option<Shown> {
    let lines = || stack.heading.iter().rev().map(String::as_str);
    let role_of = |line: &str| ROLES.iter().find(|(words, _)| line.contains(words)).map(|(_, role)| *role);
    let role = lines().find_map(role_of).unwrap_or(Role::Current);
    let thread = lines().chain([title]).find_map(thread);
    let waypoint = user_code::waypoint(&stack.frames, None)?;
    (role != Role::Origin).then_some(Shown { role, thread, waypoint })
}

/// The thread that a line names: `by thread T2`, `thread T0`, `by thread #3`, `by main thread`.
fn thread(line: &str) -> Option<String> {
    if line.contains("main thread") {
        return Some("main".to_owned());
    }
    let after = line.split("thread ").skip(1).find(|after| after.starts_with(['T', '#']))?;
    let end = after[1..].find(|c: char| !c.is_ascii_digit()).map_or(after.len(), |end| end + 1);
    let name = &after[..end];
    (end > 1).then(|| if matches!(name, "T0" | "#1") { "main".to_owned() } else { name.to_owned() })
}

/// All at the same time. A group is of different threads anyway, so only the main thread is named.
fn in_any_threads(shown: Vec<Shown>) -> Vec<Waypoint> {
    let waypoint = |shown: Shown| {
        let is_main = shown.thread.as_deref() == Some("main");
        Waypoint { thread: is_main.then(|| ThreadName::Id(ThreadId::main())), ..shown.waypoint }
    };
    let mut waypoints: Vec<Waypoint> = shown.into_iter().map(waypoint).collect();
    waypoints.truncate(2);
    waypoints
}

/// What went before, then what is wrong.
fn in_order(shown: Vec<Shown>) -> Sequence {
    let (previous, current): (Vec<Shown>, Vec<Shown>) =
        shown.into_iter().partition(|shown| shown.role == Role::Previous);
    let mut names = ThreadNames::default();
    let steps = previous.into_iter().chain(current.into_iter().take(1));
    let step = |shown: Shown| {
        let thread = shown.thread.map(|thread| names.of(&thread));
        Step::Pass(Waypoint { thread, ..shown.waypoint })
    };
    Sequence { steps: steps.map(step).collect() }
}

/// Each thread takes its first lock, if it is known where. Then all stand before their second lock: a deadlock.
///
/// Each edge of the cycle has a thread of its own, whichever thread was seen to take the locks.
fn inversion(shown: Vec<Shown>) -> Sequence {
    let (mut held, mut wanted) = (Vec::new(), Vec::new());
    let mut variables = variables();
    let mut thread = variables.next();
    let mut seen = (false, false);
    for Shown { role, waypoint, .. } in shown {
        let repeats = match role {
            Role::Held => std::mem::replace(&mut seen.0, true),
            Role::Wanted => std::mem::replace(&mut seen.1, true),
            _ => continue,
        };
        if repeats {
            thread = variables.next();
            seen = (role == Role::Held, role == Role::Wanted);
        }
        let waypoint = Waypoint { thread: thread.clone(), ..waypoint };
        if role == Role::Held { held.push(Step::Pass(waypoint)) } else { wanted.push(waypoint) }
    }
    held.extend(Step::together(wanted));
    Sequence { steps: held }
}

/// Variables for the threads of a report.
#[derive(Default)]
struct ThreadNames(Vec<String>);

impl ThreadNames {
    fn of(&mut self, thread: &str) -> ThreadName {
        if thread == "main" {
            return ThreadName::Id(ThreadId::main());
        }
        let known = self.0.iter().position(|name| name == thread).unwrap_or_else(|| {
            self.0.push(thread.to_owned());
            self.0.len() - 1
        });
        variables().nth(known).expect("a report has fewer threads than there are variables")
    }
}
