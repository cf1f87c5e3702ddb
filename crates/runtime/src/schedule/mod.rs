//! Which thread runs, which cannot, and how a plan is followed.
//!
//! The scheduler knows operations and waits, not what they mean: primitives are in `sync` and `os`.

mod asleep;
pub mod bits;
pub mod carrier;
pub mod context;
mod decisions;
pub mod ending;
mod expiry;
pub mod follower;
mod frames;
mod guidance;
mod livelock;
mod policy;
mod races;
mod sampling;
pub mod scheduler;
pub mod snapshots;
pub mod spinning;
pub mod state;
#[cfg(test)]
pub mod test_support;
pub mod thread;
pub mod wait;
