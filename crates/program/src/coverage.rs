//! How much of a file's code is instrumented, by compilation unit.
//!
//! One object file that was built without `-fsanitize=thread` is linked without a word, and its accesses are never
//! seen. A unit is judged by its functions that access memory other than their own frame: code that is instrumented
//! calls `__tsan_…` there.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::calls::callee;
use crate::image::Image;
use crate::symbols::Kind;

/// A compilation unit, and how many of its functions are instrumented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCoverage {
    /// The source file as its compiler was given it; empty for code without debug information.
    pub unit: String,
    /// Functions that access memory.
    pub functions: usize,
    /// Those of them that call `__tsan_…`.
    pub instrumented: usize,
}

/// What the linker and the C library put into every program.
const STARTUP: [&str; 7] = [
    "_start",
    "_init",
    "_fini",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
];

/// Every unit of the file with a function that accesses memory, by name. Rust's precompiled standard library is left
/// out.
pub(crate) fn of(image: &Image) -> Vec<UnitCoverage> {
    let mut units: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let described = image.debug_info().index().functions();
    let functions = image.symbols.all(Kind::Function).filter(|symbol| !STARTUP.contains(&&*symbol.name));
    let functions: Vec<(Range<u64>, String)> = if described.is_empty() {
        functions.map(|symbol| (symbol.range(), String::new())).collect()
    } else {
        described
    };
    for (range, unit) in functions.into_iter().filter(|(_, unit)| !is_precompiled(unit)) {
        let (accesses, calls_runtime) = look_at(image, range);
        if accesses || calls_runtime {
            let (functions, instrumented) = units.entry(whole_unit(&unit).to_owned()).or_default();
            *functions += 1;
            *instrumented += usize::from(calls_runtime);
        }
    }
    let unit = |(unit, (functions, instrumented))| UnitCoverage { unit, functions, instrumented };
    units.into_iter().map(unit).collect()
}

/// Part of the standard library that rustup installs.
fn is_precompiled(unit: &str) -> bool {
    ["/rustc/", "/rust/deps/", "library/"].iter().any(|place| unit.starts_with(place))
}

/// rustc splits a crate into many units, `src/lib.rs/@/0123abc`: they are one.
fn whole_unit(unit: &str) -> &str {
    unit.split("/@/").next().unwrap_or_default()
}

/// Whether the code accesses memory other than its frame, and whether it calls the runtime.
fn look_at(image: &Image, range: Range<u64>) -> (bool, bool) {
    let code = image.loaded(range.start, range.end - range.start).unwrap_or_default();
    let (mut accesses, mut calls_runtime) = (false, false);
    for at in &mut Decoder::with_ip(64, code, range.start, DecoderOptions::NONE) {
        accesses |= is_access(&at);
        let is_call = matches!(at.mnemonic(), Mnemonic::Call | Mnemonic::Jmp);
        calls_runtime |= is_call && callee(image, &at).starts_with("__tsan_");
    }
    (accesses, calls_runtime)
}

fn is_access(at: &Instruction) -> bool {
    let is_address_only =
        matches!(at.mnemonic(), Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Call | Mnemonic::Jmp);
    let has_memory = (0..at.op_count()).any(|operand| at.op_kind(operand) == OpKind::Memory);
    let is_frame = matches!(at.memory_base(), Register::RSP | Register::RBP);
    // Memory relative to FS is the thread's own, such as the stack protector's number.
    let is_threads_own = at.segment_prefix() == Register::FS;
    has_memory && !is_address_only && !is_frame && !is_threads_own
}
