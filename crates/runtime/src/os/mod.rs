//! What the operating system gives a program besides threads: descriptors, files, processes, identity, randomness.
//!
//! The kernel does the work. These modules make it the same in every run, and keep runs apart from each other.

pub mod channels;
pub mod children;
pub mod descriptors;
pub mod files;
pub mod identity;
pub mod io;
pub mod leftovers;
pub mod processors;
pub mod randomness;
pub mod system;
