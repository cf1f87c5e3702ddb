//! Memory: the program's heap, the runtime's own, which bytes are tracked, and which are shared.
//!
//! The functions that a program calls for memory are in [`malloc`] and [`mappings`]. Accesses to memory come in through
//! `hooks`.

pub mod arena;
pub mod gone;
pub mod guard;
pub mod heap;
pub mod layout;
pub mod learn;
mod malloc;
pub mod mappings;
pub mod shadow;
mod sharing;
pub mod spans;
