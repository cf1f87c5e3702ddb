//! Why a session could not go on.

use std::io;
use std::time::Duration;

use thiserror::Error;
use threadbare_executor::{RunError, StartError};

use crate::Obstacle;

#[derive(Debug, Error)]
pub enum HuntError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Run(#[from] RunError),
    /// The program does something that is not modelled.
    #[error("{message} (thread {thread}, {location})")]
    Unsupported { message: String, thread: String, location: String },
    #[error("cannot predict: {0}")]
    NotAnalysed(String),
    /// Every run was stopped, at the limit that is named.
    #[error("no run came to its end within {limit} ({flag}), so nothing is known of the program")]
    NothingKnown { limit: String, flag: &'static str },
    /// What was found could not be reported.
    #[error("cannot report: {0}")]
    Report(#[source] io::Error),
}

impl HuntError {
    /// Every run was stopped. `budget` is the time of the whole session, `time` and `memory` are the limits of a run.
    pub(crate) fn nothing_known(
        obstacle: Obstacle,
        max_events: u64,
        budget: Option<Duration>,
        time: Duration,
        memory: u64,
    ) -> HuntError {
        let (limit, flag) = match obstacle {
            Obstacle::Events => (format!("{max_events} events"), "--max-events"),
            // No run may go on when the time of the whole hunt is over.
            Obstacle::Time => match budget.filter(|&budget| budget < time) {
                Some(budget) => (format!("{} s", budget.as_secs()), "--budget"),
                None => (format!("{} s", time.as_secs()), "--time-limit"),
            },
            Obstacle::Memory => (format!("{} MiB", memory >> 20), "--memory-limit"),
        };
        HuntError::NothingKnown { limit, flag }
    }
}
