//! Control flow, read out of the compiled code: blocks, edges, calls, jump tables, landing pads and the call graph.
//!
//! [`ModuleCode`] is where to begin: the code of one file, with a [`Flow`] for each function and a [`CallGraph`]. Both
//! come from ELF and `.eh_frame` alone, so that stripped files and every compiler are served alike, and debug
//! information only adds which imported functions are declared never to return.
//!
//! From the bottom up, `pieces` says where functions are; `descent` follows the jumps of one function to all its
//! instructions, with `symbolic` and `jump_table` for indirect jumps, `landing_pads` for exceptions and `callee` for
//! calls; `blocks` makes a [`Flow`] of them, which `function` defines; `pointer` finds what calls through registers lead to; `no_return` removes the edges behind calls that
//! never return; `dominance` says what depends on which branch; `straight` and `access` find the access that a call of
//! the runtime announces; `stores` finds the places that store to a variable, and `constants` what they store; `call_graph` and `code` put all functions together.
//!
//! Edges are rather too many than too few: a call is taken to return, and an indirect call to lead anywhere, unless the
//! opposite is certain. Two kinds of edges are left out and listed instead: those of [`BlockEnd::UnresolvedJump`], and
//! those of a `longjmp`. Exceptions come from calls only; `-fnon-call-exceptions` is not followed.

mod access;
mod blocks;
mod call_graph;
mod callee;
mod code;
mod constants;
mod descent;
mod dominance;
mod function;
mod jump_table;
mod landing_pads;
mod no_return;
mod pieces;
mod pointer;
mod stores;
mod straight;
mod symbolic;

pub(crate) use call_graph::is_thread_starter;
pub use call_graph::{CallGraph, CallSite};
pub(crate) use code::FlowCache;
pub use code::ModuleCode;
pub use constants::Comparison;
pub use dominance::{ControlDependence, Dominators};
pub use function::{Block, BlockEnd, BlockIndex, Call, Callee, Flow, JumpTable};
