//! The compiled program as data.
//!
//! A [`Program`] is the executable and shared objects of one tested program, at the addresses they are loaded
//! at. It translates between the addresses of a run and what people and clips use: source
//! positions, names of variables, and [`Site`](threadbare_trace::Site)s, which are places that are found again
//! in the next build. It reads ELF and DWARF only, so that it works alike for gcc, clang and rustc, and needs
//! neither the compiler nor a running process.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use threadbare_program::Program;
//!
//! let program = Program::open(&std::env::current_exe()?)?;
//! let main = program.symbol_address("main").ok_or("every program has a main")?;
//! assert_eq!(program.location(main + 1).address, main + 1);
//! # Ok(())
//! # }
//! ```
//!
//! It answers as far as the files go and never fails in the middle: without debug information a location is
//! the name of its function, and what is not known at all is `None`. Damaged files are refused by
//! [`Program::open`] or count as files without debug information.
//!
//! [`flow`] is the control flow of the code: blocks, edges, calls and the call graph, computed on demand for
//! one function at a time.
//!
//! Not here: where objects of the heap come from (that is known to a trace), and anything that needs the
//! program to run.
//!
//! From the bottom up, `image` is one ELF file, with `symbols` and `debug_info` (lines and an index of DWARF
//! entries, also from the files of `split` DWARF); `types`, `locals` and `frame_info` name memory; `library_code` finds
//! the code of Rust's standard library; `calls` decodes functions, `coverage` finds those that are not instrumented, and
//! `site` finds places again by them; `places` finds the code of a line or a function. On top of [`flow`],
//! [`dependence`] says which loads feed branches, stores and addresses, `distance` how far one place is from another (its graph is kept by
//! `kept_graph`), and `watching` how a run is made to stop at a place.
//! `bounded` reads files up to a limit, and `source` source files; `maps` and `module` say
//! what is loaded where; `program` puts these together.

pub mod bounded;
mod calls;
mod coverage;
mod debug_info;
pub mod dependence;
mod distance;
mod error;
pub mod flow;
mod frame_info;
mod image;
mod kept_graph;
mod library_code;
mod locals;
mod maps;
mod module;
mod places;
mod program;
mod site;
mod source;
mod split;
mod symbols;
mod types;
mod watching;

pub use coverage::UnitCoverage;
pub use debug_info::DebugExtent;
pub use error::ProgramError;
pub use kept_graph::keep_graphs_in;
pub use library_code::is_library_function;
pub use places::{FilePlaces, FunctionPlaces};
pub use program::{Global, Instrumentation, Program};
pub use source::Sources;
pub use symbols::without_hashes;
pub use watching::Stop;

/// Locks a cache. A poisoned one is still valid, because every entry is inserted whole.
fn unpoisoned<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
