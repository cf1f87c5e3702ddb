//! What the operating system gives a program besides threads: descriptors, files, processes, identity, randomness.
//!
//! The kernel does the work. These modules make it the same in every run, and keep runs apart from each other. Input
//! and output that threads wait for are modelled in [`io`]; the functions that a program calls for it are in
//! [`io_calls`], [`socket_calls`], [`splice_calls`] and [`polling`].

pub mod channels;
pub mod children;
pub mod descriptors;
pub mod dispatch;
pub mod exec;
mod file_locks;
pub mod files;
pub mod identity;
pub mod instructions;
pub mod io;
mod io_calls;
pub mod leftovers;
mod opening;
mod parts;
mod polling;
pub mod processors;
pub mod randomness;
mod raw_calls;
mod socket_calls;
mod splice_calls;
pub mod system;
