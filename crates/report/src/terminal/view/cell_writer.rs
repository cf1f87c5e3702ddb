//! The rows of a cell as lines of text: line number, source, and below it what was seen and done.

use std::collections::HashMap;

use super::paint::{Style, Text};
use super::rows::{Cell, Head, Row};
use super::words::Detail;
use threadbare_hunt::user_code::{UserLine, base_name};

/// Writes the cells of one interleaving, in order.
pub struct CellWriter<'a> {
    /// The file of all lines, if there is only one.
    only_file: Option<&'a str>,
    /// Digits of the longest line number.
    digits: usize,
    /// The file of the last line in each column. A column names its file where it changes.
    file_of_column: HashMap<usize, String>,
}

impl<'a> CellWriter<'a> {
    pub fn of<'c: 'a>(cells: impl Iterator<Item = &'a Cell<'c>>) -> CellWriter<'a> {
        let mut files: Vec<&str> = Vec::new();
        let mut digits = 0;
        for row in cells.flat_map(|cell| &cell.rows) {
            let Head::Line(UserLine { frame, .. }) = &row.head else { continue };
            if !files.contains(&frame.file.as_str()) {
                files.push(&frame.file);
            }
            digits = digits.max(frame.line.to_string().len());
        }
        let only_file = if let [file] = files[..] { Some(file) } else { None };
        CellWriter { only_file, digits, file_of_column: HashMap::new() }
    }

    /// The line above the interleaving: `what happened, in lost.c:`.
    pub fn opening(&self) -> Text {
        let what = Text::new(Style::Plain, "what happened");
        let what = match self.only_file {
            Some(file) => what.then(Style::Plain, ", in ").then(Style::Bold, base_name(file)),
            None => what,
        };
        what.then(Style::Plain, ":")
    }

    /// The lines of a cell that goes into this column.
    pub fn cell(&mut self, column: usize, cell: &Cell<'_>) -> Vec<Text> {
        let mut lines = Vec::new();
        for row in &cell.rows {
            if let Head::Line(place) = &row.head {
                lines.extend(self.new_file(column, &place.frame.file));
            }
            lines.push(self.head(row));
            lines.extend(row.details.iter().map(|(detail, times)| self.detail(detail, *times)));
            lines.extend(row.failure.iter().map(|failure| self.aside(Style::Alarm, &format!("✗ {failure}"))));
        }
        if cell.interrupted {
            lines.push(self.aside(Style::Dim, "⋯ interrupted"));
        }
        lines
    }

    fn new_file(&mut self, column: usize, file: &str) -> Option<Text> {
        if self.only_file.is_some() || self.file_of_column.get(&column).is_some_and(|known| known == file) {
            return None;
        }
        self.file_of_column.insert(column, file.to_string());
        Some(Text::new(Style::Dim, &format!("{}:", base_name(file))))
    }

    fn head(&self, row: &Row<'_>) -> Text {
        let digits = self.digits;
        let place = match &row.head {
            Head::Line(place) => place,
            Head::Note(note) => return self.aside(Style::Dim, note),
            Head::LeftOut(1) => return self.aside(Style::Dim, "⋮ 1 more line"),
            Head::LeftOut(rows) => return self.aside(Style::Dim, &format!("⋮ {rows} more lines")),
        };
        let number = Text::new(Style::Dim, &format!("{:digits$} ", place.frame.line));
        let style = if row.failure.is_some() { Style::Bold } else { Style::Plain };
        match &place.text {
            Some(text) => number.then(style, text),
            None if place.frame.function.is_empty() => number.then(style, "(source not found)"),
            None => number.then(style, &format!("in {}", place.frame.function)),
        }
    }

    fn detail(&self, detail: &Detail, times: usize) -> Text {
        let times = if times > 1 { &format!(" ({times} times)") } else { "" };
        let what = self.aside(Style::Dim, &format!("  {}", detail.what));
        what.then_keep(Style::Dim, &format!("{}{times}", detail.value))
    }

    /// A line without a line number, indented like source.
    fn aside(&self, style: Style, text: &str) -> Text {
        let margin = if self.digits == 0 { 0 } else { self.digits + 1 };
        Text::new(Style::Plain, &" ".repeat(margin)).then(style, text)
    }
}
