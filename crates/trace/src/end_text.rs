//! How a run ended, in words for people.

use crate::{End, Failure, FailureKind, Frame, Pending, Role, Trace, TracePlace};

/// Whether a text names source lines, as in ` (account.c:12)`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceLines {
    Shown,
    /// For texts that must stay the same when lines move.
    LeftOut,
}

impl Trace {
    /// How the run ended, in a few words: `use after free: write of 4 bytes; allocated by thread 0 in make (a.c:3)`.
    /// This is the `failure` of `--json`.
    pub fn end_text(&self) -> String {
        match (&self.end, self.failure_message()) {
            (End::Failed(Failure { kind, .. }), Some(message)) => {
                Failure::new(*kind, message, ()).to_string()
            }
            (end, _) => end.to_string(),
        }
    }

    /// What there is to say of the failure beyond its kind: its own words, then who allocated and who freed the
    /// block. Empty if there is nothing to say, `None` if the run did not fail.
    pub fn failure_message(&self) -> Option<String> {
        self.message(SourceLines::Shown)
    }

    /// The same message without the source lines of related places: it is the same after a rebuild that moved them.
    /// The failure's own words stay as they are. This is the `message` of a clip.
    pub fn lasting_failure_message(&self) -> Option<String> {
        self.message(SourceLines::LeftOut)
    }

    fn message(&self, lines: SourceLines) -> Option<String> {
        let failure = self.end.failure()?;
        let own = match failure.kind {
            // A trace from a file of version 1 has these words in its message already.
            FailureKind::DataRace if failure.message.is_empty() => self.race(lines),
            _ => failure.message.clone(),
        };
        let origins = failure.related.iter().filter_map(|related| match related.role {
            Role::Allocated | Role::Freed | Role::Destroyed | Role::Used => {
                Some(self.origin(related.role.name(), related.at, lines))
            }
            Role::OtherAccess => None,
        });
        Some(std::iter::once(own).chain(origins).collect::<Vec<_>>().join("; "))
    }

    /// The two accesses of a data race that ended the run, by their lines and then by their threads: the order is the
    /// same whichever thread came first. Empty if the run did not end so.
    pub fn racing(&self) -> Vec<&Pending> {
        let mut sides = self.racing_last_first();
        let line = |frame: &Frame| (frame.file.clone(), frame.line, frame.column);
        sides.sort_by_key(|side| (self.location(side.location).frames.first().map(line), side.thread));
        sides
    }

    /// The same in the order of clips: the thread that came last is first.
    fn racing_last_first(&self) -> Vec<&Pending> {
        let race = self.end.failure().filter(|failure| failure.kind == FailureKind::DataRace);
        let places = race
            .into_iter()
            .flat_map(|race| std::iter::once(&race.at).chain(race.related(Role::OtherAccess)));
        places.filter_map(|at| self.pending.iter().find(|pending| pending.thread == at.thread)).collect()
    }

    /// The two sides of a race, by what they do, where and to what.
    fn race(&self, lines: SourceLines) -> String {
        let sides = match lines {
            SourceLines::Shown => self.racing(),
            SourceLines::LeftOut => self.racing_last_first(),
        };
        sides.into_iter().map(|side| self.access(side, lines)).collect::<Vec<_>>().join(", ")
    }

    /// The access that a thread was about to make: `write of counter by thread 0.1 in add (a.c:3)`.
    fn access(&self, pending: &Pending, lines: SourceLines) -> String {
        let frame = self.location(pending.location).frames.first();
        let place = frame.map_or(String::new(), |frame| {
            let line = if lines == SourceLines::Shown { line_of(frame) } else { String::new() };
            format!(" in {}{line}", frame.function)
        });
        let (object, thread) = (self.object(pending.object), self.thread(pending.thread));
        format!("{} of {object} by thread {thread}{place}", pending.kind)
    }

    /// Who did something to a heap block and where, by the names of the functions on the stack:
    /// `freed by thread 0.1 in drop (a.c:3), called from main`.
    fn origin(&self, verb: &str, at: TracePlace, lines: SourceLines) -> String {
        // What comes from system headers is nothing the user wrote.
        let users: Vec<&Frame> = self
            .calls(at.location, at.stack)
            .flat_map(|location| &self.location(location).frames)
            .filter(|frame| frame.line != 0 && !frame.file.starts_with("/usr/"))
            .collect();
        let mut names: Vec<String> = users.iter().map(|frame| frame.function.clone()).collect();
        if let ([name, ..], [frame, ..], SourceLines::Shown) = (&mut names[..], &users[..], lines) {
            *name += &line_of(frame);
        }
        let names = names.join(", called from ");
        format!("{verb} by thread {} in {names}", self.thread(at.thread))
    }
}

/// ` (a.c:3)`.
fn line_of(frame: &Frame) -> String {
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    format!(" ({file}:{})", frame.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EventKind, Location, LocationIndex, Object, ObjectIndex, ObjectName, Related, StackIndex, StackNode,
        ThreadId, ThreadIndex,
    };

    fn location(line: u32, function: &str) -> Location {
        let frame = Frame { function: function.into(), file: "/home/me/a b.c".into(), line, column: 1 };
        Location { address: u64::from(line), frames: vec![frame] }
    }

    fn place(thread: u32, location: u32, stack: u32) -> TracePlace {
        TracePlace {
            thread: ThreadIndex::new(thread),
            location: LocationIndex::new(location),
            stack: StackIndex::new(stack),
        }
    }

    /// Two threads, three lines, and a stack that leads from `main` (1) through `drop` (2).
    fn trace(end: End<TracePlace>) -> Trace {
        let library = Location {
            address: 9,
            frames: vec![Frame { file: "/usr/include/new".into(), line: 9, ..Frame::default() }],
        };
        let counter = ObjectName::Global { symbol: "counter".into(), offset: 0 };
        let pending = |thread, kind, location| Pending {
            thread: ThreadIndex::new(thread),
            kind,
            object: ObjectIndex::new(1),
            location: LocationIndex::new(location),
            stack: StackIndex::EMPTY,
            blocked: false,
            holders: Vec::new(),
        };
        Trace {
            program: String::new(),
            arguments: Vec::new(),
            threads: vec![ThreadId::main(), ThreadId::main().child(1)],
            objects: vec![Object::none(), Object { name: counter, display: "counter".into() }],
            locations: vec![Location::default(), location(3, "main"), location(7, "drop(int)"), library],
            stacks: vec![
                StackNode::default(),
                StackNode { parent: StackIndex::EMPTY, location: LocationIndex::new(1) },
                StackNode { parent: StackIndex::new(1), location: LocationIndex::new(2) },
            ],
            events: Vec::new(),
            pending: vec![pending(0, EventKind::Read, 1), pending(1, EventKind::Write, 2)],
            end,
        }
    }

    /// Protects the words of `--json` and of clips: they have always been these, and clips are compared by them.
    #[test]
    fn who_allocated_and_freed_is_said_with_lines_and_without() {
        let mut failure = Failure::new(FailureKind::UseAfterFree, "write of 4 bytes", place(0, 1, 0));
        failure.related = vec![
            Related { role: Role::Allocated, at: place(0, 1, 0) },
            Related { role: Role::Freed, at: place(1, 3, 2) },
        ];
        let trace = trace(End::Failed(failure));
        assert_eq!(
            trace.end_text(),
            "use after free: write of 4 bytes; allocated by thread 0 in main (a b.c:3); \
             freed by thread 0.1 in drop(int) (a b.c:7), called from main"
        );
        assert_eq!(
            trace.lasting_failure_message().as_deref(),
            Some(
                "write of 4 bytes; allocated by thread 0 in main; \
                 freed by thread 0.1 in drop(int), called from main"
            )
        );
    }

    /// Protects the words for a race, which are made of what the two threads were about to do.
    #[test]
    fn both_sides_of_a_race_are_said() {
        let mut failure = Failure::new(FailureKind::DataRace, "", place(1, 2, 0));
        let at = place(0, 1, 0);
        failure.related = vec![Related { role: Role::OtherAccess, at }];
        let text = "read of counter by thread 0 in main (a b.c:3), \
                    write of counter by thread 0.1 in drop(int) (a b.c:7)";
        let mut trace = trace(End::Failed(failure));
        assert_eq!(trace.failure_message().as_deref(), Some(text));
        let lasting = "write of counter by thread 0.1 in drop(int), read of counter by thread 0 in main";
        assert_eq!(trace.lasting_failure_message().as_deref(), Some(lasting));
        trace.pending.clear();
        assert_eq!(trace.end_text(), "data race", "what the threads were about to do is not known");
    }

    /// Protects failures without words from a colon that leads nowhere.
    #[test]
    fn a_failure_without_words_is_its_kind() {
        let end = End::Failed(Failure::new(FailureKind::Deadlock, "", TracePlace::default()));
        assert_eq!(trace(end).end_text(), "deadlock");
        assert_eq!(trace(End::Finished).failure_message(), None);
    }
}
