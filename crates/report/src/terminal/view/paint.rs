//! Text with styles: measured, cut and padded by what a terminal shows of it.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    /// For what the user must not miss.
    Alarm,
}

impl Style {
    fn escape(self) -> Option<&'static str> {
        match self {
            Style::Plain => None,
            Style::Bold => Some("\x1b[1m"),
            Style::Dim => Some("\x1b[2m"),
            Style::Alarm => Some("\x1b[1;31m"),
        }
    }
}

/// One line on the screen, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    spans: Vec<(Style, String)>,
    /// The number of spans at the end that a cut keeps.
    kept: usize,
}

impl Text {
    pub fn new(style: Style, text: &str) -> Text {
        Text::default().then(style, text)
    }

    /// Appends text. Control characters become blanks, because the source code or a message could move the cursor with
    /// them.
    pub fn then(mut self, style: Style, text: &str) -> Text {
        let shown = text.chars().map(|c| if crate::is_invisible(c) { ' ' } else { c }).collect();
        self.spans.push((style, shown));
        self
    }

    /// Appends text that a cut keeps.
    pub fn then_keep(self, style: Style, text: &str) -> Text {
        let mut text = self.then(style, text);
        text.kept += 1;
        text
    }

    pub fn append(mut self, other: &Text) -> Text {
        self.spans.extend(other.spans.iter().cloned());
        self.kept = other.kept;
        self
    }

    /// Terminal columns.
    pub fn width(&self) -> usize {
        self.spans.iter().flat_map(|(_, text)| text.chars()).map(columns).sum()
    }

    /// The text in at most `width` columns, with `…` where it was cut.
    pub fn cut(mut self, width: usize) -> Text {
        if self.width() <= width {
            return self;
        }
        let kept = Text { spans: self.spans.split_off(self.spans.len() - self.kept), kept: 0 };
        match width.checked_sub(kept.width()).filter(|room| *room >= width / 2) {
            Some(room) => self.cut_end(room).append(&kept),
            None => self.append(&kept).cut_end(width),
        }
    }

    fn cut_end(self, width: usize) -> Text {
        let mut room = width.saturating_sub(1);
        let mut kept = Text::default();
        for (style, text) in self.spans {
            let end = fitting(&text, room);
            room -= text[..end].chars().map(columns).sum::<usize>();
            let whole = end == text.len();
            kept.spans.push((style, text[..end].to_string() + if whole { "" } else { "…" }));
            if !whole {
                break;
            }
        }
        kept
    }

    /// Cut or filled with blanks to exactly `width` columns.
    pub fn fit(self, width: usize) -> Text {
        let cut = self.cut(width);
        let missing = width.saturating_sub(cut.width());
        cut.then(Style::Plain, &" ".repeat(missing))
    }

    /// Writes the text without blanks at its end, and a newline.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, colour: bool) -> fmt::Result {
        let inked = |(_, text): &(Style, String)| !text.trim_end().is_empty();
        let last = self.spans.iter().rposition(inked);
        for (i, (style, text)) in self.spans.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let text = if Some(i) == last { text.trim_end() } else { text };
            match style.escape().filter(|_| colour) {
                Some(escape) => write!(f, "{escape}{text}\x1b[0m")?,
                None => f.write_str(text)?,
            }
        }
        f.write_str("\n")
    }
}

/// The length in bytes of the longest beginning of `text` that `room` columns hold.
fn fitting(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (start, c) in text.char_indices() {
        used += columns(c);
        if used > room {
            return start;
        }
    }
    text.len()
}

/// The columns that a terminal gives a character.
fn columns(character: char) -> usize {
    console::measure_text_width(character.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Painted(Text, bool);

    impl fmt::Display for Painted {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(f, self.1)
        }
    }

    fn plain(text: Text) -> String {
        Painted(text, false).to_string()
    }

    #[test]
    fn text_is_cut_by_what_is_seen_of_it() {
        let text = |text| Text::new(Style::Plain, text);
        assert_eq!(plain(text("naïve()").cut(7)), "naïve()\n");
        assert_eq!(plain(text("naïve();").cut(7)), "naïve(…\n");
        assert_eq!(plain(text("漢字漢字").cut(6)), "漢字…\n");
        assert_eq!(text("漢字").fit(6).width(), 6);
        assert_eq!(plain(text("41 ").then(Style::Dim, "if (x)").cut(5)), "41 i…\n");
        assert_eq!(plain(text("ab").then(Style::Dim, "cd").cut(3)), "ab…\n");
        assert_eq!(plain(text("x").cut(0)), "…\n");
    }

    #[test]
    fn the_value_outlives_the_name() {
        let text = Text::new(Style::Plain, "reads accounts[0].amount").then_keep(Style::Plain, ": 1300");
        assert_eq!(plain(text.clone().cut(30)), "reads accounts[0].amount: 1300\n");
        assert_eq!(plain(text.clone().cut(20)), "reads account…: 1300\n");
        assert_eq!(plain(text.cut(10)), "reads acc…\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain(Text::new(Style::Plain, "a\tb\x1b[2Jc\nd")), "a b [2Jc d\n");
    }

    #[test]
    fn escapes_are_written_only_in_colour() {
        let text = Text::new(Style::Alarm, "✗").then(Style::Plain, " x  ").then(Style::Dim, "  ");
        assert_eq!(Painted(text.clone(), true).to_string(), "\x1b[1;31m✗\x1b[0m x\n");
        assert_eq!(plain(text), "✗ x\n");
    }
}
