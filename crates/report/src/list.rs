//! One line for each finding, for scripts and for a quick look.

use std::io::{self, Write};

use threadbare_hunt::{Event, Finding};

use crate::{Reporter, printable, write_now};

pub struct List<'a> {
    out: Box<dyn Write + Send + 'a>,
}

impl<'a> List<'a> {
    pub fn new(out: Box<dyn Write + Send + 'a>) -> List<'a> {
        List { out }
    }

    /// `src/bank.rs:12: deadlock in transfer [threadbare-out/bank-deadlock-01234567.clip]`.
    fn line(&mut self, finding: &Finding) -> io::Result<()> {
        let mut text = match finding.locations.first() {
            Some(line) if line.function.is_empty() => {
                format!("{}:{}: {}", line.file, line.line, finding.kind)
            }
            Some(line) => format!("{}:{}: {} in {}", line.file, line.line, finding.kind, line.function),
            None => finding.kind.to_string(),
        };
        if let Some(test) = &finding.test {
            text += &format!(", test {test}");
        }
        if let Some(clip) = &finding.clip {
            text += &format!(" [{}]", clip.display());
        }
        write_now(&mut self.out, &(printable(&text).into_owned() + "\n"))
    }
}

impl Reporter for List<'_> {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Found(finding) => self.line(finding),
            Event::Guided(guided) => write_now(&mut self.out, &format!("{}\n", guided.verdict.name())),
            Event::TestFinished(report) => report.findings.iter().try_for_each(|finding| self.line(finding)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use threadbare_hunt::{FindingKind, SourceLine};
    use threadbare_trace::FailureKind;

    use super::*;

    fn line(locations: Vec<SourceLine>, test: Option<&str>) -> String {
        let finding = Finding {
            kind: FindingKind::Failure(FailureKind::Deadlock),
            failure: String::new(),
            locations,
            variables: Vec::new(),
            threads: Vec::new(),
            needs: Vec::new(),
            clip: Some("out/bank.clip".into()),
            run: 1,
            method: "rank",
            tuple: None,
            test: test.map(str::to_owned),
            anomaly: None,
            harm: None,
            timing: None,
            trace: None,
        };
        let mut text = Vec::new();
        List { out: Box::new(&mut text) }.line(&finding).expect("a vector can be written to");
        String::from_utf8(text).expect("text")
    }

    /// Protects the form that editors and scripts recognise: `file:line: what`.
    #[test]
    fn a_line_begins_with_its_location() {
        let location = SourceLine { file: "src/bank.rs".into(), line: 12, column: 5, function: "pay".into() };
        let nameless = SourceLine { function: String::new(), ..location.clone() };
        assert_eq!(line(vec![location], None), "src/bank.rs:12: deadlock in pay [out/bank.clip]\n");
        assert_eq!(
            line(vec![nameless], Some("tests::pays")),
            "src/bank.rs:12: deadlock, test tests::pays [out/bank.clip]\n"
        );
        assert_eq!(line(Vec::new(), None), "deadlock [out/bank.clip]\n");
    }
}
