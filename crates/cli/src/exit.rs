//! Exit codes.

/// The work was done and nothing was found.
pub const NOTHING_FOUND: u8 = 0;
/// Something was found, or a replay showed what its clip promises.
pub const FOUND: u8 = 1;
/// The work could not be done, what it found could not be printed, or a clip no longer fits.
pub const COULD_NOT_RUN: u8 = 2;
/// `doctor`: all is well.
pub const WELL: u8 = 0;
/// `doctor`: something will not work, or will not be seen.
pub const WARNINGS: u8 = 1;
/// Stopped by an interrupt before anything was found.
pub const INTERRUPTED: u8 = 130;
