//! `threadbare trace`: shows and exports a recorded trace.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use threadbare_formats::{export, trace_file};
use threadbare_hunt::atomic_write;
use threadbare_report::{ReportConfig, plain_view, printable};
use threadbare_trace::Trace;

use crate::arguments::{ExportFormat, TraceCommand, TraceOptions};
use crate::exit;
use crate::files::{self, TRACE_LIMIT};
use crate::output;
use crate::problem::Problem;

pub fn run(options: &TraceOptions) -> Result<u8, Problem> {
    match &options.command {
        TraceCommand::Show { file, events } => show(file, *events)?,
        TraceCommand::Export { file, format, out } => export_to(&read(file)?, *format, out.as_deref())?,
    }
    Ok(exit::NOTHING_FOUND)
}

fn read(path: &Path) -> Result<Trace, Problem> {
    let bytes = files::read(path, TRACE_LIMIT)?;
    trace_file::read(&bytes)
        .map_err(|error| Problem::file("read", path, error).help("traces are written by `threadbare record`"))
}

fn show(path: &Path, events: bool) -> Result<(), Problem> {
    let trace = read(path)?;
    if events {
        return list(&trace, &mut BufWriter::new(io::stdout().lock())).map_err(output::problem);
    }
    output::print(format_args!("{}", plain_view(&trace, &ReportConfig::for_stdout("threadbare replay"))))
}

fn list(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    for (number, event) in trace.events.iter().enumerate() {
        let location = trace.location(event.location);
        let function = location.frames.first().map_or("", |frame| frame.function.as_str());
        let function = printable(function);
        writeln!(
            out,
            "{number:>8}  {:<8} {:<14} {:<28} {:<22} {function:<20} {:#x}",
            trace.thread(event.thread).to_string(),
            event.kind,
            printable(&trace.object(event.object).display),
            printable(&location.to_string()),
            event.value,
        )?;
    }
    out.flush()
}

fn export_to(trace: &Trace, format: ExportFormat, path: Option<&Path>) -> Result<(), Problem> {
    let export = |mut out: &mut dyn Write| match format {
        ExportFormat::Std => export::std(trace, &mut out),
        ExportFormat::Csv => export::csv(trace, &mut out),
        ExportFormat::Json => export::json(trace, &mut out),
    };
    match path {
        Some(path) => atomic_write::write(path, export).map_err(|error| Problem::file("write", path, error)),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            export(&mut out).and_then(|()| out.flush()).map_err(output::problem)
        }
    }
}
