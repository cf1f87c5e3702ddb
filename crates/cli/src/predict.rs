//! `threadbare predict`: predicts failures from one run and confirms each with another run. With `--trace` it only
//! predicts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use threadbare_formats::import::{ImportError, Wrong};
use threadbare_formats::{import, trace_file};
use threadbare_hunt::from_trace::{self, PredictError};
use threadbare_hunt::{Budget, Event, StrategyChoice};
use threadbare_predict::{ConfirmConfig, Pattern, pattern};
use threadbare_trace::Trace;

use crate::arguments::PredictOptions;
use crate::files::{self, PATTERNS_LIMIT, TRACE_LIMIT};
use crate::interrupt::{self, Due};
use crate::problem::Problem;
use crate::trust::Builder;
use crate::{record, session, target};

pub fn run(options: &PredictOptions, cancelled: &Arc<AtomicBool>) -> Result<u8, Problem> {
    interrupt::begin(options.output.reporter("threadbare replay"), Due::session());
    let patterns = patterns(options)?;
    match (&options.trace, &options.target) {
        (Some(path), _) => predict_from(path, &patterns),
        (None, Some(target)) => {
            let subject = target::prepare(target, &options.launch, &options.out)?;
            let strategy = StrategyChoice::Predict(ConfirmConfig {
                patterns,
                recordings: options.runs,
                policy: record::policy(options.schedule, options.launch.run.seed),
            });
            let (search, run) = (options.search(), &options.launch.run);
            let config = session::config(strategy, &search, Budget::UNLIMITED, run, cancelled);
            session::search_and_report(&subject, &config, &options.output, Builder::Compiler)
        }
        (None, None) => Err(Problem::new("neither a program nor a trace to predict from")),
    }
}

/// The built-in patterns, and the user's.
fn patterns(options: &PredictOptions) -> Result<Vec<Pattern>, Problem> {
    let mut patterns = pattern::built_in();
    for path in &options.patterns {
        let bytes = files::read(path, PATTERNS_LIMIT)?;
        let text =
            String::from_utf8(bytes).map_err(|error| Problem::file("read", path, error.utf8_error()))?;
        let further = pattern::parse(&text).map_err(|error| Problem::file("read", path, error))?;
        patterns.extend(further);
    }
    Ok(patterns)
}

/// Predictions from a trace, with no program to confirm them.
fn predict_from(path: &Path, patterns: &[Pattern]) -> Result<u8, Problem> {
    let trace = read_trace(path)?;
    let mut emit = |event: Event<'_>| interrupt::report(&event);
    let summary = from_trace::predict(trace, patterns, &mut emit).map_err(|error| match error {
        PredictError::Trace(error) => Problem::file("predict from", path, error),
        PredictError::Hunt(error) => error.into(),
    })?;
    Ok(session::exit_code(&summary))
}

/// Reads a trace in any format. The first bytes and the file name tell which.
fn read_trace(path: &Path) -> Result<Trace, Problem> {
    let bytes = files::read(path, TRACE_LIMIT)?;
    if bytes.starts_with(trace_file::MAGIC) {
        return trace_file::read(&bytes).map_err(|error| Problem::file("read", path, error));
    }
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let trace = if is_csv { import::csv(&bytes) } else { import::std(&bytes) };
    if trace.as_ref().is_ok_and(|trace| trace.events.is_empty()) {
        return Err(Problem::file("predict from", path, "there is no event in it")
            .help("traces are written by `threadbare record`"));
    }
    trace.map_err(|error| {
        let problem = Problem::file("read", path, &error);
        match help(&error, if is_csv { "CSV" } else { "STD" }) {
            Some(help) => problem.help(help),
            None => problem,
        }
    })
}

/// Advice for a file that is not a trace in `format`, if the error alone does not help.
fn help(error: &ImportError, format: &str) -> Option<String> {
    match error.wrong {
        Wrong::UnknownOperation(_) => Some(format!("the operations are {}", import::OPERATIONS)),
        // Not even the first line is one of a trace.
        Wrong::NotUtf8 | Wrong::Form { .. } | Wrong::Truncated { .. } | Wrong::Cells(_)
            if error.line == 1 =>
        {
            Some(format!(
                "a trace is a file that `threadbare record` wrote, or one in RAPID's STD or (by the ending .csv) CSV \
                 format; this was read as {format}"
            ))
        }
        _ => None,
    }
}
