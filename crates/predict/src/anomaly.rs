//! A prediction in terms that mean something without its trace.

use threadbare_search::{Anomaly, Participant};
use threadbare_trace::EventIndex;

use crate::{History, Prediction};

/// The anomaly that `prediction` speaks of.
pub fn anomaly(history: &History, prediction: &Prediction) -> Anomaly {
    let trace = history.trace();
    let participant = |&event: &EventIndex| {
        let event = history.event(event);
        Participant {
            thread: trace.thread(event.thread).clone(),
            kind: event.kind,
            variable: trace.object(event.object).display.clone(),
            location: trace.location(event.location).clone(),
        }
    };
    Anomaly {
        kind: prediction.kind,
        verdict: prediction.verdict,
        pattern: prediction.pattern.clone(),
        tier: prediction.tier,
        count: prediction.count,
        participants: prediction.events.iter().map(participant).collect(),
        identity: prediction.identity(history),
    }
}
