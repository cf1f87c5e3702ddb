//! What a user does with a cargo project: the real command, the real cargo, no network.

mod bank;
mod guide;
mod harness;
mod names;
mod own_names;
mod subjects;
mod support;
mod trouble;
mod trust;
mod unseen;
