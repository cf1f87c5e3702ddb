//! `std`, with the parts that a scheduler must see in place of the originals.
//!
//! `cargo threadbare` compiles this crate with the user's own compiler and passes it to every crate of the
//! project as `--extern std=…`, so that each `std::…` path leads here. Everything is `std`'s own but for:
//!
//! | path | why |
//! |---|---|
//! | `sync::{Mutex, RwLock, Condvar, Barrier}` | `std` compiles their slow paths beforehand, without instrumentation: nobody would see who holds what. Here they are pthread objects, which the runtime knows. |
//! | `hint::spin_loop` | a spinning thread waits for another one, so it gives way |
//! | `panic::set_hook` | what a panic says is told to the runtime before any hook prints it |
//!
//! The rest needs nothing: atomics, `mpsc`, `OnceLock` and `Arc` are compiled into the crates that use them and
//! so are instrumented there; threads, time, parking and thread-local destructors go through libc, where the
//! runtime stands.
//!
//! Two habits keep events where a person looks for them. What calls into the runtime is `#[inline(always)]`: the
//! call then lies in the user's function. What only keeps books is in functions of this crate that are neither
//! generic nor inlined: the crate itself is compiled without instrumentation, so its books are no events.

pub use std::*;

pub mod hint;
pub mod panic;
mod raw;
pub mod sync;
