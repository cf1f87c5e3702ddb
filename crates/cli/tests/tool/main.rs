//! What a user does: the real binary on real programs.

mod clips;
mod interrupt;
mod messages;
mod predict;
mod subjects;
mod support;
