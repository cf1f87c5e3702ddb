//! Why a session could not go on.

use std::io;

use thiserror::Error;
use threadbare_executor::{RunError, StartError};

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
    #[error("no run came to its end within {limit} ({flag}); nothing went wrong up to there in {runs} runs")]
    NothingEnded { runs: u64, limit: String, flag: &'static str },
    /// What was found could not be reported.
    #[error("cannot report: {0}")]
    Report(#[source] io::Error),
}
