//! Places in the code that are found again after a rebuild.
//!
//! A call is known by the function it is in, by what it calls and by the text of its source line; those that
//! agree in all of that, and in the column, are told apart by their order. Line numbers and addresses play no
//! part as long as there is source to read, so that code may be moved about.
//!
//! The first instruction of a statement is known in the same way, as if it called [`STATEMENT`].
//!
//! A column counts from the first character of the line's text: to indent a line changes nothing. Without
//! source it is the compiler's own.

use iced_x86::{Instruction, Mnemonic};
use threadbare_trace::Site;

use crate::calls::{self, Call};
use crate::image::Image;
use crate::source::Sources;
use crate::symbols::{self, Symbol};

/// What a site calls that is no call but the beginning of a statement. No function has such a name.
pub(crate) const STATEMENT: &str = "(statement)";

/// A call, or the first instruction of a statement, with all that can be compared in another build.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Behind the instruction, as linked.
    return_address: u64,
    callee: String,
    file: String,
    line: u32,
    column: u32,
    text: String,
}

/// The calls of a function, in address order.
pub(crate) fn candidates(image: &Image, sources: &Sources, function: &Symbol) -> Vec<Candidate> {
    described(image, sources, calls::calls(image, function))
}

/// The statements of a function that do not begin with a call, in address order.
pub(crate) fn statements(image: &Image, sources: &Sources, function: &Symbol) -> Vec<Candidate> {
    let starts = image.debug_info().row_starts(&function.range());
    let first = calls::instructions(image, function).into_iter().filter(|at| starts.contains(&at.ip()));
    let places = first.filter(|at| at.mnemonic() != Mnemonic::Call);
    let place = |at: Instruction| Call { return_address: at.next_ip(), callee: STATEMENT.to_string() };
    described(image, sources, places.map(place).collect())
}

fn described(image: &Image, sources: &Sources, calls: Vec<Call>) -> Vec<Candidate> {
    let debug_info = image.debug_info();
    calls
        .into_iter()
        .map(|call| {
            let position = debug_info.position_at(call.return_address.wrapping_sub(1));
            let source = sources.indented_line(&position.file, position.line).unwrap_or_default();
            let text = source.trim();
            let indent = source.len() - source.trim_start().len();
            let column = match u32::try_from(indent) {
                Ok(indent) if !text.is_empty() => position.column.saturating_sub(indent),
                _ => position.column,
            };
            Candidate {
                return_address: call.return_address,
                callee: call.callee,
                file: symbols::base_name(&position.file).to_string(),
                line: position.line,
                column,
                text: text.to_string(),
            }
        })
        .collect()
}

/// The site of the call that returns to `return_address`.
pub(crate) fn describe(function: String, candidates: &[Candidate], return_address: u64) -> Option<Site> {
    let position = candidates.iter().position(|call| call.return_address == return_address)?;
    let call = &candidates[position];
    let mut site = Site {
        function,
        file: call.file.clone(),
        line: call.line,
        column: call.column,
        text: call.text.clone(),
        callee: call.callee.clone(),
        nth: 0,
    };
    let before = candidates[..position].iter().filter(|other| Likeness::Exact.holds(&site, other)).count();
    site.nth = u32::try_from(before).ok()?;
    Some(site)
}

/// How much a call has to have in common with a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// Callee, text, file and column.
    Exact,
    /// Callee and text: the compiler may place a column differently, and a file may be renamed.
    Text,
}

impl Likeness {
    fn holds(self, site: &Site, call: &Candidate) -> bool {
        if symbols::stem(&site.callee) != symbols::stem(&call.callee) {
            return false;
        }
        let in_place = site.file == call.file && site.column == call.column;
        match (site.text.is_empty(), call.text.is_empty()) {
            (false, false) => same_text(&site.text, &call.text) && (self == Likeness::Text || in_place),
            (true, true) => site.line == call.line && in_place,
            // Read when the site was made, gone now, or the other way round: columns count from elsewhere.
            _ => self == Likeness::Text && site.line == call.line && site.file == call.file,
        }
    }

    /// The return address, as linked, of the call that the site stands for.
    pub(crate) fn find(self, site: &Site, candidates: &[Candidate]) -> Option<u64> {
        let nth = usize::try_from(site.nth).ok()?;
        candidates.iter().filter(|call| self.holds(site, call)).nth(nth).map(|call| call.return_address)
    }
}

/// Whether two lines differ in blanks at most.
fn same_text(a: &str, b: &str) -> bool {
    a == b || a.split_whitespace().eq(b.split_whitespace())
}
