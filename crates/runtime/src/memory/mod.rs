//! Memory: the program's heap, the runtime's own, which bytes are tracked, and which are shared.
//!
//! Accesses to memory come in through `hooks`.

pub mod arena;
pub mod heap;
pub mod layout;
pub mod learn;
pub mod shadow;
pub mod spans;
