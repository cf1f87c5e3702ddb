//! Which functions never return.
//!
//! Some are known by name. Others have no path to a return: every path ends in an endless loop, a trap, or a call of a
//! function that never returns itself. That is the least solution over the call graph. It is computed on demand: only
//! functions are decoded that the question depends on, and the first path to a return that is found answers it.

use std::collections::HashMap;

use super::FlowCache;
use super::function::{BlockEnd, BlockIndex, Callee, Flow};
use crate::image::Image;
use crate::symbols::{self, Kind};
use crate::unpoisoned;

/// Functions of C and C++ libraries that never return.
const NAMES: &[&str] = &[
    "_Exit",
    "_Unwind_Resume",
    "_ZSt10unexpectedv",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__longjmp_chk",
    "__rust_start_panic_abort",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "exit_group",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "rust_panic",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Names of functions of Rust's and C++'s standard libraries that never return begin so, demangled.
const PREFIXES: [&str; 9] = [
    "core::panicking::panic",
    "core::panicking::assert_failed",
    "core::panicking::unreachable",
    "core::slice::index::slice_",
    "core::str::slice_error_fail",
    "std::process::abort",
    "std::process::exit",
    "alloc::alloc::handle_alloc_error",
    "std::__throw_",
];

/// The callee is one of those that everyone knows not to return, or is declared so.
pub(super) fn is_known_by_name(image: &Image, callee: &Callee) -> bool {
    match callee {
        Callee::Import(name) => is_name(name) || image.debug_info().index().never_returns(name),
        Callee::Function(address) => image.symbols.names_at(*address, Kind::Function).any(is_name),
        Callee::Indirect => false,
    }
}

fn is_name(name: &str) -> bool {
    if NAMES.binary_search(&name).is_ok() {
        return true;
    }
    // To demangle every name would cost more than to decode the code.
    let marks = ["panic", "slice", "process", "handle_alloc_error", "__throw_"];
    let may_be = name.starts_with('_') && marks.iter().any(|mark| name.contains(mark));
    may_be && {
        let plain = symbols::demangle(name);
        PREFIXES.iter().any(|prefix| plain.starts_with(prefix)) && !plain.ends_with("::fmt")
    }
}

/// Whether a function can return to its caller.
pub(super) fn may_return(image: &Image, function: u64) -> bool {
    if let Some(&known) = unpoisoned(&image.flows.returns).get(&function) {
        return known;
    }
    if is_known_by_name(image, &Callee::Function(function)) {
        return false;
    }
    let mut analysis = Analysis { image, provisional: HashMap::new(), stack: Vec::new() };
    analysis.run(function)
}

/// A depth-first search over calls.
struct Analysis<'image> {
    image: &'image Image,
    /// Functions without a path to a return, if those that the search has not left yet have none: the function, and the
    /// depth of the outermost function that was assumed not to return.
    provisional: HashMap<u64, usize>,
    stack: Vec<Visit>,
}

/// A function that is being looked at.
struct Visit {
    function: u64,
    flow: Option<Flow>,
    reached: Vec<bool>,
    /// Blocks whose call has not been decided.
    waiting: Vec<BlockIndex>,
    /// The depth of the outermost function that was assumed not to return.
    assumes: usize,
}

enum Verdict {
    Returns,
    Never,
    /// Depends on this function, which has not been looked at.
    Ask(u64),
}

impl Analysis<'_> {
    fn run(&mut self, function: u64) -> bool {
        self.enter(function);
        loop {
            let depth = self.stack.len() - 1;
            let verdict = self.advance(depth);
            if let Verdict::Ask(callee) = verdict {
                self.enter(callee);
                continue;
            }
            let returns = matches!(verdict, Verdict::Returns);
            let Some(visit) = self.stack.pop() else { return true };
            self.leave(&visit, depth, returns);
            if self.stack.is_empty() {
                return returns;
            }
        }
    }

    fn enter(&mut self, function: u64) {
        let flow = FlowCache::decode(self.image, function);
        let (blocks, entry) =
            flow.as_ref().map_or((0, None), |flow| (flow.blocks.len(), Some(flow.entry_block)));
        let mut visit =
            Visit { function, flow, reached: vec![false; blocks], waiting: Vec::new(), assumes: usize::MAX };
        if let Some(entry) = entry {
            visit.reached[entry.index()] = true;
            visit.waiting.push(entry);
        }
        self.stack.push(visit);
    }

    fn leave(&mut self, visit: &Visit, depth: usize, returns: bool) {
        if !returns && visit.assumes < depth {
            self.provisional.insert(visit.function, visit.assumes);
            let caller = &mut self.stack[depth - 1];
            caller.assumes = caller.assumes.min(visit.assumes);
            return;
        }
        let mut known = unpoisoned(&self.image.flows.returns);
        known.insert(visit.function, returns);
        // What was assumed about this function is now certain, or was wrong.
        self.provisional.retain(|function, assumes| {
            let is_decided = *assumes >= depth;
            if is_decided && !returns {
                known.insert(*function, false);
            }
            !is_decided
        });
    }

    /// Follows the innermost function as far as is known.
    fn advance(&mut self, depth: usize) -> Verdict {
        let mut asked = Vec::new();
        loop {
            let visit = &mut self.stack[depth];
            let Some(flow) = &visit.flow else { return Verdict::Returns };
            let Some(block) = visit.waiting.pop() else { break };
            let end = &flow[block].end;
            let callee = flow[block].call.as_ref().map(|call| call.callee.clone());
            let is_way_out = match (end, callee) {
                (BlockEnd::Return | BlockEnd::UnresolvedJump, _) => return Verdict::Returns,
                (BlockEnd::TailCall | BlockEnd::ConditionalTailCall, Some(callee)) => Some(callee),
                (BlockEnd::Call, Some(callee)) => Some(callee),
                _ => None,
            };
            let is_tail = matches!(end, BlockEnd::TailCall | BlockEnd::ConditionalTailCall);
            let is_call = *end == BlockEnd::Call;
            let answer = is_way_out.map(|callee| self.answer(depth, &callee));
            match answer {
                Some(Answer::Returns) if is_tail => return Verdict::Returns,
                Some(Answer::Unknown(callee)) => asked.push((block, callee)),
                _ => {}
            }
            let never = matches!(answer, Some(Answer::Never | Answer::Unknown(_)));
            self.go_on(depth, block, is_call && never);
        }
        match asked.last() {
            Some(&(_, callee)) => {
                self.stack[depth].waiting.extend(asked.iter().map(|&(block, _)| block));
                Verdict::Ask(callee)
            }
            None => Verdict::Never,
        }
    }

    /// Marks what follows a block; behind a call that does not return, only its landing pad.
    fn go_on(&mut self, depth: usize, block: BlockIndex, only_landing_pad: bool) {
        let visit = &mut self.stack[depth];
        let Some(flow) = &visit.flow else { return };
        let landing_pad = flow[block].call.as_ref().and_then(|call| call.landing_pad);
        for &successor in &flow[block].successors {
            let is_open = !only_landing_pad || Some(successor) == landing_pad;
            if is_open && !std::mem::replace(&mut visit.reached[successor.index()], true) {
                visit.waiting.push(successor);
            }
        }
    }

    fn answer(&mut self, depth: usize, callee: &Callee) -> Answer {
        let Callee::Function(function) = *callee else {
            return if is_known_by_name(self.image, callee) { Answer::Never } else { Answer::Returns };
        };
        if let Some(&returns) = unpoisoned(&self.image.flows.returns).get(&function) {
            return if returns { Answer::Returns } else { Answer::Never };
        }
        if is_known_by_name(self.image, callee) {
            return Answer::Never;
        }
        let assumed = self.stack.iter().position(|visit| visit.function == function);
        let assumed = assumed.or_else(|| self.provisional.get(&function).copied());
        match assumed {
            Some(outermost) => {
                let visit = &mut self.stack[depth];
                visit.assumes = visit.assumes.min(outermost);
                Answer::Never
            }
            None => Answer::Unknown(function),
        }
    }
}

/// What is known of a callee.
enum Answer {
    Returns,
    Never,
    Unknown(u64),
}
