//! The primitives that threads synchronise with: locks, condition variables, semaphores, futexes, threads themselves.
//!
//! A primitive is its state and its rules. What a thread can wait for is listed once, in `schedule::wait`. Pipes,
//! sockets and polling are in `os`, sleeping is in `time`.

mod c11;
pub mod cancellation;
pub mod conditions;
mod futex;
pub mod locks;
pub mod semaphores;
mod stream_lock;
pub mod threads;
