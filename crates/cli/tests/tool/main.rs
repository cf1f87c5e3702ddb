//! What a user does: the real binary on real programs.

mod cache;
mod clips;
mod input;
mod interrupt;
mod messages;
mod output;
mod subjects;
mod support;
