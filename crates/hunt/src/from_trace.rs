//! Predictions from a trace, with no program to confirm them.

use std::sync::Arc;
use std::time::Instant;

use threadbare_predict::{History, Pattern, Predictor, TraceError, Verdict, anomaly};
use threadbare_trace::Trace;

use crate::{Emit, Event, Finding, HuntError, Summary};

/// Predicts from `trace`. Each prediction is a finding labelled `witnessed` or `possible`.
pub fn predict(trace: Trace, patterns: &[Pattern], emit: &mut Emit<'_>) -> Result<Summary, PredictError> {
    let mut summary = Summary::new(Instant::now());
    let events = trace.events.len() as u64;
    let predictor = Predictor::new(History::new(Arc::new(trace))?);
    let predictions = predictor.predict(patterns);
    let is_witnessed = |verdict: Verdict| verdict == Verdict::Witnessed;
    let witnessed = predictions.list.iter().filter(|prediction| is_witnessed(prediction.verdict)).count();
    let figures = summary.predictions();
    figures.analysed(events, predictions.infeasible.len() as u64);
    figures.witnessed = Some(witnessed as u64);
    for prediction in &predictions.list {
        figures.predicted(prediction.kind);
    }
    summary.findings = predictions.list.len() as u64;
    let say = |event: Event<'_>, emit: &mut Emit<'_>| {
        emit(event).map_err(|error| PredictError::Hunt(HuntError::Report(error)))
    };
    for prediction in &predictions.list {
        let finding = Finding::anomaly(anomaly(predictor.history(), prediction), "predict");
        say(Event::Found(&finding), emit)?;
    }
    summary.finish();
    say(Event::Finished(&summary), emit)?;
    Ok(summary)
}

/// Why there are no predictions.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Hunt(#[from] HuntError),
}
