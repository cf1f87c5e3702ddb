//! Everything that finds bugs, as one search.
//!
//! A [`Pipeline`] is a [`Strategy`] made of others, that have a share of the runs each.
//! [`hunt`] is the one that users get who name none: a run is recorded, what its trace predicts is run
//! ([`Forecast`]), and beside that schedules are ranked and drawn.

mod forecast;
mod pipeline;

use threadbare_rank::{Pct, RandomWalk, Rank, Settings, Strategy};

pub use forecast::Forecast;
pub use pipeline::Pipeline;

/// The search of `threadbare hunt`.
pub fn hunt(settings: &Settings) -> Pipeline {
    let strategies: Vec<Box<dyn Strategy>> = vec![
        Box::new(Forecast::new(settings.clone())),
        Box::new(Rank::new(settings.clone())),
        Box::new(RandomWalk::new(settings.clone())),
        Box::new(Pct::new(settings.clone())),
    ];
    // A recording shows what memory is shared; then come the simplest schedules, then what a recording predicts.
    Pipeline::new("hunt", strategies, &[(0, 1), (1, 5), (0, 8)])
}
