//! One line for each finding, for scripts and for a quick look.

use std::io::{self, Write};

use threadbare_hunt::{Event, Finding};

use crate::{Reporter, write_now};

pub struct List {
    out: Box<dyn Write>,
}

impl List {
    pub fn new(out: Box<dyn Write>) -> List {
        List { out }
    }

    /// `src/bank.rs:12: deadlock in transfer [threadbare-out/bank-deadlock-01234567.clip]`.
    fn line(&mut self, finding: &Finding) -> io::Result<()> {
        let mut text = match finding.locations.first() {
            Some(line) if line.function.is_empty() => {
                format!("{}:{}: {}", line.file, line.line, finding.kind)
            }
            Some(line) => format!("{}:{}: {} in {}", line.file, line.line, finding.kind, line.function),
            None => finding.kind.to_owned(),
        };
        if let Some(test) = &finding.test {
            text += &format!(", test {test}");
        }
        if let Some(clip) = &finding.clip {
            text += &format!(" [{}]", clip.display());
        }
        write_now(&mut self.out, &(text + "\n"))
    }
}

impl Reporter for List {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Found(finding) => self.line(finding),
            Event::TestFinished(report) => report.findings.iter().try_for_each(|finding| self.line(finding)),
            _ => Ok(()),
        }
    }
}
