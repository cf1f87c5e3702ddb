//! Whether two names mean the same function.
//!
//! The same function has different names in different tools. gdb prints `bank::deposit`, ThreadSanitizer
//! `bank::deposit(int)`, a Rust backtrace `bank::deposit::h0123456789abcdef` or, with the newer mangling,
//! `bank[0123456789abcdef]::deposit::<u32>`. What gcc made out of a function is called `deposit.constprop.0`.

/// How deep `<<A as B>::C as D>::e` is followed. Names in programs do not get there.
const MAX_NESTING: usize = 8;

/// Whether the function `name` of the program is the one that `wanted` means: all of its path, or the end of it.
pub fn matches(wanted: &str, name: &str) -> bool {
    if wanted == name {
        return true;
    }
    let (wanted, name) = (parts(wanted), parts(name));
    !wanted.is_empty() && name.ends_with(&wanted)
}

/// The name of a function as it is in the source: `bank::apply` for `void bank::apply<Account>(Account&)`.
pub fn short(name: &str) -> String {
    let parts = parts(name);
    if parts.is_empty() { name.to_owned() } else { parts.join("::") }
}

/// The path of a function without return type, arguments, type parameters and what compilers append.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    collect(name.trim(), 0, &mut parts);
    if parts.last().is_some_and(|last| is_hash(last)) {
        parts.pop();
    }
    parts
}

/// Adds the path of a name. `<bank::Account as Drop>::drop` is `bank::Account::drop`.
fn collect(name: &str, nesting: usize, parts: &mut Vec<String>) {
    if nesting < MAX_NESTING
        && name.starts_with('<')
        && let Some((inside, after)) = bracketed(name)
        && let Some(method) = after.strip_prefix("::")
    {
        let own_type = match inside.strip_prefix("impl ") {
            Some(implementation) => implementation.rsplit(" for ").next().unwrap_or_default(),
            None => inside.split(" as ").next().unwrap_or_default(),
        };
        collect(own_type.trim_start_matches(['&', '*']), nesting + 1, parts);
        collect(method, nesting + 1, parts);
    } else {
        collect_plain(name, parts);
    }
}

fn collect_plain(name: &str, parts: &mut Vec<String>) {
    let known = parts.len();
    let mut part = String::new();
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if part == "operator" && !(c.is_alphanumeric() || c == '_') {
            let symbol_end = rest[1..].find('(').map_or(rest.len(), |at| at + 1);
            part.push_str(rest[..symbol_end].trim_end());
            break;
        }
        if let Some(after) = rest.strip_prefix("::") {
            push_part(parts, std::mem::take(&mut part));
            rest = after;
            continue;
        }
        match c {
            '{' | '<' | '[' | '(' => {
                // What follows a bracket without end is no name.
                let Some((inside, after)) = bracketed(rest) else { break };
                if is_closure(inside) {
                    part = "{closure}".to_owned();
                } else if c == '(' && inside != "anonymous namespace" && !after.starts_with("::") {
                    break;
                }
                rest = after;
            }
            ' ' if rest.starts_with(" [clone") => break,
            // What stood there was the return type.
            ' ' => {
                parts.truncate(known);
                part.clear();
                rest = &rest[1..];
            }
            _ => {
                part.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    push_part(parts, part);
}

fn push_part(parts: &mut Vec<String>, part: String) {
    // clang's name for a closure.
    if part.starts_with("$_") {
        return parts.push("{closure}".to_owned());
    }
    let end = part.find(['.', '@']).filter(|&at| at > 0).unwrap_or(part.len());
    if end > 0 && !part.is_empty() {
        parts.push(part[..end].to_owned());
    }
}

fn is_closure(inside: &str) -> bool {
    ["closure", "{closure", "lambda"].iter().any(|start| inside.starts_with(start))
}

/// `h0123456789abcdef`, which older manglings of Rust append.
fn is_hash(part: &str) -> bool {
    part.strip_prefix('h').is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// What stands in the bracket that the text begins with, and what follows it. `None` if it begins with none, or if the
/// bracket is not closed.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (open, close) = match text.chars().next()? {
        '(' => ('(', ')'),
        '<' => ('<', '>'),
        '[' => ('[', ']'),
        '{' => ('{', '}'),
        _ => return None,
    };
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && !(c == '>' && matches!(before, '-' | '=')) {
            depth -= 1;
        }
        if depth == 0 {
            return Some((&text[1..at], &text[at + 1..]));
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects that a name from one tool finds the function in a program that another compiler has built. The names
    /// are as gdb 13, gcc 12, clang 14 and rustc 1.95 print them.
    #[test]
    fn the_names_of_different_tools_are_the_same_function() {
        for (wanted, name) in [
            ("deposit", "deposit"),
            ("deposit", "deposit.constprop.0"),
            ("deposit", "deposit [clone .cold]"),
            ("add", "bank::Account::add(long)"),
            ("bank::Account::add(long)", "bank::Account::add"),
            ("Account::add", "bank::Account::add(long)"),
            (
                "bank::apply",
                "void bank::apply<bank::Account>(bank::Account&, std::vector<long, std::allocator<long> >)",
            ),
            ("ledger::main::{{closure}}", "ledger::main::{closure#0}"),
            ("ledger::main::{{closure}}", "ledger::main::{{closure}}::h81dd8e127bb7c479"),
            ("Ledger::newest", "ledger[0123456789abcdef]::Ledger::newest"),
            ("Ledger::drop", "<ledger::Ledger as core::ops::drop::Drop>::drop"),
            ("Stack::push", "<queue::Stack<T>>::push::<u32>"),
            ("work", "(anonymous namespace)::work(int)"),
            ("operator()", "main::$_1::operator()() const"),
            ("main::{lambda()#2}::operator()", "main::$_1::operator()() const"),
            ("operator()", "main()::<lambda()>::operator()() const"),
            ("operator new", "operator new(unsigned long)"),
            ("Time::operator<", "bool Time::operator<(Time const&) const"),
        ] {
            assert!(matches(wanted, name), "{wanted} and {name}: {:?}, {:?}", parts(wanted), parts(name));
        }
    }

    #[test]
    fn other_functions_do_not_match() {
        for (wanted, name) in [
            ("deposit", "deposit_all"),
            ("deposit", "undeposit"),
            ("Account::add", "bank::Ledger::add(long)"),
            ("bank::Account::add", "add"),
            ("void", "void add(int)"),
            ("long", "add(long)"),
            ("deposit", ""),
            ("()", "deposit"),
        ] {
            assert!(!matches(wanted, name), "{wanted} and {name}");
        }
    }

    /// Protects against names that nobody would write: no panic, and no deep recursion.
    #[test]
    fn brackets_without_end_are_no_harm() {
        for name in [
            "<".repeat(50_000),
            "<a as b>::".repeat(5000),
            "(".repeat(5000),
            "operator".into(),
            "::::".into(),
        ] {
            let _ = matches("f", &name);
        }
    }
}
