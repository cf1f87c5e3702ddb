//! What a user does: the real binary on real programs.

mod alone;
mod bounds;
mod cache;
mod chains;
mod clips;
mod damage;
mod doctor;
mod guide;
mod guided;
mod input;
mod interrupt;
mod killed;
mod messages;
mod output;
mod places;
mod predict;
mod races;
mod rank;
mod rough;
mod sleeps;
mod subjects;
mod support;
mod timing;
mod trust;
mod unseen;
mod upgrade;
