//! Escapes of quoted names and of names in a suite: what a line could not hold otherwise.

use std::fmt::{self, Write};

/// Writes a character, escaped if it is a backslash, a control character or `special`.
pub fn write_char(f: &mut fmt::Formatter<'_>, c: char, special: bool) -> fmt::Result {
    match c {
        '\\' => f.write_str("\\\\"),
        '"' if special => f.write_str("\\\""),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        // The two separators end a line in some editors.
        c if special || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
            write!(f, "\\u{{{:x}}}", u32::from(c))
        }
        c => f.write_char(c),
    }
}

/// Reads what follows a backslash: the character, and how many bytes stood for it.
pub fn read_escape(after: &str) -> Result<(char, usize), &'static str> {
    match after.chars().next() {
        Some('n') => Ok(('\n', 1)),
        Some('r') => Ok(('\r', 1)),
        Some('t') => Ok(('\t', 1)),
        Some(c @ ('\\' | '"')) => Ok((c, 1)),
        Some('u') => read_numbered(&after[1..])
            .map(|(c, length)| (c, length + 1))
            .ok_or("expected a character's number after `\\u`, such as `\\u{1b}`"),
        _ => Err("a backslash is written `\\\\`"),
    }
}

/// The character of `{1b}`, and how long that is.
fn read_numbered(text: &str) -> Option<(char, usize)> {
    let (number, _) = text.strip_prefix('{')?.split_once('}')?;
    Some((char::from_u32(u32::from_str_radix(number, 16).ok()?)?, number.len() + 2))
}
