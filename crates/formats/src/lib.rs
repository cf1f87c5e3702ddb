//! Traces and clips as files.
//!
//! A trace and a clip are data of [`threadbare_trace`] or point into it. This crate writes and reads them, and does
//! nothing else: it opens no file and runs no program.
//!
//! | module | holds |
//! |---|---|
//! | [`trace_file`] | the binary trace file |
//! | [`clip`] | [`Clip`], a plan that showed something, and its text form |
//! | [`export`] | STD, CSV and JSON for other tools |
//! | [`import`] | STD and CSV from other tools |

pub mod clip;
pub mod export;
pub mod import;
pub mod trace_file;

pub use clip::Clip;
