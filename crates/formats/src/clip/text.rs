//! Strings in a clip: as plain as they can be, and with escapes where a line could not be read back
//! otherwise.

use std::fmt::{self, Write};

/// The rest of a line, with the blank that goes before it; nothing at all for an empty string.
pub struct Text<'a>(pub &'a str);

/// A [`Text`] in a place where a site may stand: an `@` at its start is escaped.
pub struct Object<'a>(pub &'a str);

/// A string without blanks in it, never empty.
pub struct Word<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(f, self.0, |_| false)
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(f, self.0, |c| c == '@')
    }
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("-"),
            "-" => f.write_str("\\-"),
            word => word.chars().try_for_each(|c| write_char(f, c, c.is_whitespace())),
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str, escape_first: impl Fn(char) -> bool) -> fmt::Result {
    if text.is_empty() {
        return Ok(());
    }
    f.write_char(' ')?;
    // Blanks at either end would be lost to whoever trims a line.
    let (start, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    text.char_indices()
        .try_for_each(|(at, c)| write_char(f, c, at < start || at >= end || (at == 0 && escape_first(c))))
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char, escape: bool) -> fmt::Result {
    match c {
        '\\' => f.write_str("\\\\"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        ' ' if escape => f.write_str("\\s"),
        '@' if escape => f.write_str("\\@"),
        // The two separators end a line in some editors.
        c if escape || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
            write!(f, "\\u{{{:x}}}", u32::from(c))
        }
        c => f.write_char(c),
    }
}

/// The string that was written as a text.
pub fn read_text(text: &str) -> Result<String, String> {
    let mut string = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        string.push_str(plain);
        let mut chars = escaped.chars();
        string.push(match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('s') => ' ',
            Some(c @ ('\\' | '@' | '-')) => c,
            Some('u') => {
                let (c, after) = read_numbered(chars.as_str()).ok_or_else(|| {
                    "expected a character's number after `\\u`, such as `\\u{1b}`".to_owned()
                })?;
                chars = after.chars();
                c
            }
            Some(c) => return Err(format!("`\\{c}` is not an escape; a backslash is written `\\\\`")),
            None => return Err("a backslash at the end of a line is written `\\\\`".to_owned()),
        });
        rest = chars.as_str();
    }
    string.push_str(rest);
    Ok(string)
}

/// The character of `{1b}`, and what follows it.
fn read_numbered(text: &str) -> Option<(char, &str)> {
    let (number, after) = text.strip_prefix('{')?.split_once('}')?;
    Some((char::from_u32(u32::from_str_radix(number, 16).ok()?)?, after))
}

/// The string that was written as a word.
pub fn read_word(word: &str) -> Result<String, String> {
    if word == "-" { Ok(String::new()) } else { read_text(word) }
}
