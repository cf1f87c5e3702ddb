//! Names in the text of a sequence: where they end, and which need quotes.

use std::fmt;

use crate::sequence::quote::write_char;

pub const KEYWORDS: [&str; 3] = ["between", "and", "before"];
/// What ends in one of these is a file that lacks a line.
const SOURCE_ENDINGS: [&str; 10] = [".c", ".h", ".cc", ".hh", ".cpp", ".hpp", ".cxx", ".hxx", ".C", ".rs"];

/// How long the name is that the text begins with, or where a bracket in it is that is not closed.
pub fn plain_name_length(text: &str) -> Result<usize, usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let is_bracket = matches!(c, '<' | '(') || (c == '{' && text[..at].ends_with("::"));
        if is_bracket {
            at += bracketed_length(&text[at..]).ok_or(at)?;
        } else if c.is_whitespace() || is_delimiter(c) || (c == ':' && is_before_line(text, at)) {
            break;
        } else {
            at += c.len_utf8();
        }
    }
    Ok(at)
}

/// Whether the colon at this place begins a line number.
fn is_before_line(text: &str, at: usize) -> bool {
    !text[..at].ends_with(':') && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())
}

/// How long the bracket is that the text begins with. A quote ends it, since it begins another name.
fn bracketed_length(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '<' => open.push('>'),
            '(' => open.push(')'),
            '{' => open.push('}'),
            '"' => return None,
            '>' | ')' | '}' if open.pop() != Some(c) => return None,
            _ => {}
        }
        if open.is_empty() {
            return Some(at + c.len_utf8());
        }
    }
    None
}

pub fn is_delimiter(c: char) -> bool {
    matches!(c, ',' | '{' | '}' | '@' | '>' | '"')
}

pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a name without a line was meant to be a file.
pub fn is_file_name(name: &str) -> bool {
    name.contains(['/', '*', '?']) || SOURCE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Writes a name as it is, or in quotes if it could not be read back.
pub fn write_name(f: &mut fmt::Formatter<'_>, name: &str, is_plain: fn(&str) -> bool) -> fmt::Result {
    if is_plain(name) {
        return f.write_str(name);
    }
    f.write_str("\"")?;
    name.chars().try_for_each(|c| write_char(f, c, c == '"'))?;
    f.write_str("\"")
}

pub fn is_plain_function(name: &str) -> bool {
    is_plain_file(name) && !is_file_name(name) && !KEYWORDS.contains(&name)
}

/// Whether a name can stand before a line without quotes.
pub fn is_plain_file(name: &str) -> bool {
    // A colon at the end would be read as that of the line. A control character would not be seen.
    plain_name_length(name) == Ok(name.len()) && !name.ends_with(':') && !name.chars().any(char::is_control)
}
