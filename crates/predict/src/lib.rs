pub mod communication;
pub mod error;
pub mod history;
pub mod lockset;
pub mod order;
pub mod pattern;
pub mod region;
pub mod variable;
