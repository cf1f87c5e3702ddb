//! `threadbare trace`: looking at what was recorded.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use threadbare_trace::{Trace, export, format};

use crate::arguments::{ExportFormat, TraceCommand, TraceOptions};
use crate::exit;
use crate::problem::Problem;
use crate::screen;

pub fn run(options: &TraceOptions) -> Result<u8, Problem> {
    match &options.command {
        TraceCommand::Show { file, events } => show(file, *events)?,
        TraceCommand::Export { file, format, out } => export_to(&read(file)?, *format, out.as_deref())?,
    }
    Ok(exit::NOTHING_FOUND)
}

fn read(path: &Path) -> Result<Trace, Problem> {
    let bytes = std::fs::read(path).map_err(|error| Problem::file("read", path, error))?;
    format::read(&bytes)
        .map_err(|error| Problem::file("read", path, error).help("traces are written by `threadbare record`"))
}

fn show(path: &Path, events: bool) -> Result<(), Problem> {
    let trace = read(path)?;
    let written = if events {
        list(&trace, &mut BufWriter::new(io::stdout().lock()))
    } else {
        io::stdout().lock().write_all(screen::view(&trace).as_bytes())
    };
    ignore_closed_pipe(written).map_err(|error| Problem::new(format!("cannot write: {error}")))
}

/// Whoever reads the output may stop at any time.
fn ignore_closed_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn list(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    for (number, event) in trace.events.iter().enumerate() {
        let location = &trace.locations[event.location as usize];
        let function = location.frames.first().map_or("", |frame| frame.function.as_str());
        writeln!(
            out,
            "{number:>8}  {:<8} {:<14} {:<28} {:<22} {function:<20} {:#x}",
            trace.threads[event.thread as usize].to_string(),
            event.kind,
            trace.objects[event.object as usize].display,
            location.to_string(),
            event.value,
        )?;
    }
    out.flush()
}

fn export_to(trace: &Trace, format: ExportFormat, path: Option<&Path>) -> Result<(), Problem> {
    let mut out: Box<dyn Write> = match path {
        None => Box::new(BufWriter::new(io::stdout().lock())),
        Some(path) => {
            let file = File::create(path).map_err(|error| Problem::file("write", path, error))?;
            Box::new(BufWriter::new(file))
        }
    };
    let written = match format {
        ExportFormat::Std => export::std(trace, &mut out),
        ExportFormat::Csv => export::csv(trace, &mut out),
        ExportFormat::Json => export::json(trace, &mut out),
    };
    ignore_closed_pipe(written.and_then(|()| out.flush()))
        .map_err(|error| Problem::file("write", path.unwrap_or(Path::new("standard output")), error))
}
