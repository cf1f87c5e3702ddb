//! The boundary of the runtime: calls that come in from the program, and data that goes to the tool.
//!
//! Here are the interposed names, libc's real functions, the fork server, the shared file, and the start and the end
//! of the process. Nothing here chooses a schedule or models a primitive.

pub mod imports;
pub mod intercept;
mod libraries;
pub mod library_code;
pub mod log;
pub mod modules;
pub mod panics;
pub mod process;
pub mod real;
pub mod server;
mod versions;
