//! What a session says, as it happens.

use std::io;
use std::path::Path;

use threadbare_trace::Trace;

use crate::replay::{Divergence, Replay};
use crate::suite::{SuiteSummary, TestReport};
use crate::{Budget, Finding, Guided, Summary};

/// One thing that a session, or a suite of them, has to say.
pub enum Event<'a> {
    /// A session begins.
    Started { budget: Budget },
    /// Where a session is, between two rounds of runs.
    Progress(&'a Summary),
    /// Something was found. Its clip is written.
    Found(&'a Finding),
    /// This came of an attempt to drive the program through a sequence of locations.
    Guided(&'a Guided),
    /// A clip could not be written there.
    ClipNotWritten { directory: &'a Path, error: &'a io::Error },
    /// A session is over.
    Finished(&'a Summary),
    /// A suite begins.
    SuiteStarted { tests: usize, programs: usize },
    /// A test of a suite is over.
    TestFinished(&'a TestReport),
    /// A suite is over.
    SuiteFinished(&'a SuiteSummary),
    /// A run did not go as its clip says.
    Diverged { divergence: &'a Divergence, ended: &'a str, still_fails: bool },
    /// A clip was followed as often as it was to be.
    Replayed(&'a Replay),
    /// The output of the program, in a run that is recorded.
    Output(&'a str),
    /// A run was recorded, and its trace is in this file. `stopped_at` says where the run was at its time limit.
    Recorded { file: &'a Path, trace: &'a Trace, stopped_at: Option<&'a str> },
    /// This program of a project is left out, because it runs inside the compiler.
    Skipped { program: &'a str },
    /// This test program is run once, without a search.
    RunningOnce { program: &'a str },
}

/// Takes events. An error ends the session: there is nobody left to tell.
pub type Emit<'a> = dyn FnMut(Event<'_>) -> io::Result<()> + 'a;
