//! The limits of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Limits {
    /// The wall-clock time of one run, and of the start up to the first thread.
    pub time: Duration,
    /// Resident memory of one run with its child processes, in bytes.
    pub memory: u64,
    /// When the time for all runs is up.
    pub deadline: Option<Instant>,
    /// Set from outside to stop at once.
    pub cancelled: Arc<AtomicBool>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(10), memory: 4 << 30, deadline: None, cancelled: Arc::default() }
    }
}

impl Limits {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// No more runs are to be made.
    pub fn is_over(&self) -> bool {
        self.is_cancelled() || self.is_late()
    }

    /// The time that is left for all runs together, if there is a limit.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// How long a run may take that begins now.
    pub fn run_time(&self) -> Duration {
        self.left().map_or(self.time, |left| left.min(self.time))
    }

    /// The limits of a run that is still to be made although all is over: it has so much time after the deadline, or
    /// from now on if it is over for another reason.
    pub fn beyond(&self, time: Duration) -> Limits {
        let end = self.deadline.unwrap_or_else(Instant::now).min(Instant::now());
        Limits { deadline: Some(end + time), cancelled: Arc::default(), ..self.clone() }
    }
}
