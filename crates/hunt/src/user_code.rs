//! Which line of the user's own code an event belongs to.
//!
//! An event may happen deep inside a library. [`UserCode`] goes up the calls that led there to the innermost line that the
//! user wrote.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use threadbare_trace::{
    Event, EventKind, Failure, FailureKind, Frame, LocationIndex, ObjectIndex, Pending, StackIndex,
    ThreadIndex, Trace, TracePlace,
};

/// The text of a line of a file, without surrounding blanks; `None` when it cannot be read.
pub type SourceLines<'a> = dyn Fn(&str, u32) -> Option<String> + 'a;

/// A line that can be named, and its text where the source could be read.
#[derive(Clone, Debug)]
pub struct UserLine<'a> {
    pub frame: &'a Frame,
    pub text: Option<Rc<str>>,
}

impl UserLine<'_> {
    pub fn is_line_of(&self, other: &UserLine<'_>) -> bool {
        (&self.frame.file, self.frame.line) == (&other.frame.file, other.frame.line)
    }

    /// The user wrote it, as far as can be told.
    fn is_own(&self) -> bool {
        self.text.is_some() && !self.frame.is_in_library()
    }
}

/// The name of a file without its folders.
pub fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Finds the user's lines of one trace, each only once.
pub struct UserCode<'a> {
    pub trace: &'a Trace,
    source: &'a dyn Fn(&str, u32) -> Option<String>,
    known: RefCell<HashMap<(LocationIndex, StackIndex), Option<UserLine<'a>>>>,
}

impl<'a> UserCode<'a> {
    pub fn new(trace: &'a Trace, source: &'a SourceLines<'a>) -> UserCode<'a> {
        UserCode { trace, source, known: RefCell::default() }
    }

    /// The innermost line of the user's own code at `location`, called from `stack`. Failing that, one whose
    /// source can be read, and failing that, any.
    pub fn find(&self, location: LocationIndex, stack: StackIndex) -> Option<UserLine<'a>> {
        let key = (location, stack);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let found = self.search(location, stack);
        self.known.borrow_mut().insert(key, found.clone());
        found
    }

    /// It happens in a library and nobody of the user's called it, as in the thread of a test harness that waits
    /// for the test.
    pub fn is_foreign(&self, location: LocationIndex, stack: StackIndex) -> bool {
        self.find(location, stack).is_some_and(|place| !place.is_own() && place.frame.is_in_library())
    }

    /// Threads that are seen in libraries alone. (None at all where no thread is seen anywhere else.)
    pub fn foreign_threads(&self) -> HashSet<ThreadIndex> {
        let (mut foreign, mut own) = (HashSet::new(), HashSet::new());
        for event in &self.trace.events {
            match self.of(event) {
                Some(place) if place.is_own() => own.insert(event.thread),
                Some(place) if place.frame.is_in_library() => foreign.insert(event.thread),
                _ => false,
            };
        }
        if own.is_empty() { own } else { &foreign - &own }
    }

    pub fn of(&self, event: &Event) -> Option<UserLine<'a>> {
        self.find(event.location, event.stack)
    }

    fn search(&self, location: LocationIndex, stack: StackIndex) -> Option<UserLine<'a>> {
        let mut second_best: Option<UserLine<'a>> = None;
        for place in self.outwards(location, stack) {
            if place.is_own() {
                return Some(place);
            }
            if second_best.as_ref().is_none_or(|best| best.text.is_none() && place.text.is_some()) {
                second_best = Some(place);
            }
        }
        second_best
    }

    /// The lines of all calls that led here, innermost first.
    fn outwards(&self, location: LocationIndex, stack: StackIndex) -> impl Iterator<Item = UserLine<'a>> {
        let stacks = &self.trace.stacks;
        let node = move |stack: StackIndex| stacks.get(stack.index()).filter(|_| !stack.is_empty());
        let callers = std::iter::successors(node(stack), move |inner| node(inner.parent));
        // No stack is deeper than the table is long; a trace that says otherwise must not hang the view.
        let calls = callers.take(stacks.len()).map(|caller| caller.location);
        std::iter::once(location)
            .chain(calls)
            .filter_map(|location| self.trace.locations.get(location.index()))
            .flat_map(|location| &location.frames)
            .filter(|frame| !frame.file.is_empty() && frame.line != 0)
            .map(|frame| UserLine { frame, text: (self.source)(&frame.file, frame.line).map(Rc::from) })
    }

    /// The function a thread was started with, as the user knows it: the outermost of theirs that the thread
    /// is seen in. Only a thread that is seen nowhere goes by the routine it begins with, which may be a
    /// library's.
    pub fn routine(&self, thread: ThreadIndex) -> Option<&'a str> {
        if thread == ThreadIndex::MAIN {
            return Some("main");
        }
        let events = || self.trace.events.iter().filter(|event| event.thread == thread);
        let outermost = |event: &Event| {
            let place = self.outwards(event.location, event.stack).filter(UserLine::is_own).last()?;
            Some(place.frame)
        };
        let at_begin = || {
            let begin = events().find(|event| event.kind == EventKind::Begin)?;
            self.trace.locations.get(begin.location.index())?.frames.first()
        };
        let seen = events().filter(|event| event.kind != EventKind::Begin).find_map(outermost);
        seen.or_else(at_begin).map(|frame| frame.function.as_str()).filter(|name| !name.is_empty())
    }

    /// `thread 0.2`.
    pub fn thread(&self, thread: ThreadIndex) -> String {
        format!("thread {}", self.thread_number(thread))
    }

    /// `0.2`.
    pub fn thread_number(&self, thread: ThreadIndex) -> String {
        self.trace.threads.get(thread.index()).map_or_else(|| format!("#{thread}"), ToString::to_string)
    }

    /// What a person calls the object, where it has a name.
    pub fn object(&self, object: ObjectIndex) -> Option<&'a str> {
        let object = self.trace.objects.get(object.index())?;
        Some(object.display.as_str()).filter(|display| !display.is_empty())
    }

    /// The user's line of a failure. Where its own stack is not known, the event that recorded it, or the operation the
    /// thread stood before, may have one.
    pub fn of_failure(&self, at: &TracePlace) -> Option<UserLine<'a>> {
        let is_failure = |event: &&Event| (event.thread, event.kind) == (at.thread, EventKind::Failure);
        let recorded = || self.trace.events.iter().rev().find(is_failure).map(|event| event.stack);
        let is_it = |pending: &&Pending| (pending.thread, pending.location) == (at.thread, at.location);
        let pending = || self.trace.pending.iter().find(is_it).map(|pending| pending.stack);
        let own = Some(at.stack).filter(|stack| !stack.is_empty());
        self.find(at.location, own.or_else(recorded).or_else(pending).unwrap_or_default())
    }

    /// The user's own lines where the run failed: the failing one, or for a deadlock and a livelock where each thread
    /// stands.
    pub fn failure_lines(&self) -> Vec<&'a Frame> {
        let Some(Failure { kind, at, .. }) = self.trace.end.failure() else { return Vec::new() };
        if !matches!(kind, FailureKind::Deadlock | FailureKind::Livelock) {
            return self.of_failure(at).map(|line| line.frame).into_iter().collect();
        }
        let foreign = self.foreign_threads();
        let stands = self.trace.pending.iter().filter(|pending| !foreign.contains(&pending.thread));
        stands.filter_map(|pending| Some(self.find(pending.location, pending.stack)?.frame)).collect()
    }
}
