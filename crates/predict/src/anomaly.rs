//! A prediction in terms that mean something without its trace.

use threadbare_search::{Anomaly, Participant};

use crate::{History, Prediction, Tier};

/// The anomaly that `prediction` speaks of.
pub fn anomaly(history: &History, prediction: &Prediction) -> Anomaly {
    let trace = history.trace();
    let participant = |&event: &u32| {
        let event = history.event(event);
        Participant {
            thread: trace.threads[event.thread as usize].clone(),
            kind: event.kind,
            variable: trace.objects[event.object as usize].display.clone(),
            location: trace.locations[event.location as usize].clone(),
        }
    };
    Anomaly {
        kind: prediction.kind.name(),
        label: prediction.verdict.name(),
        pattern: prediction.pattern.clone(),
        unit: prediction.tier.map(|tier| match tier {
            Tier::CriticalSection => "critical-section",
            Tier::Function => "function",
        }),
        count: prediction.count,
        participants: prediction.events.iter().map(participant).collect(),
        identity: prediction.identity(history),
    }
}
