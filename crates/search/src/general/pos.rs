//! Partial-order sampling: operations have random scores, and those that conflict draw again.

use threadbare_trace::Policy;

use super::Sampler;
use crate::Settings;

pub fn pos(settings: Settings) -> Sampler {
    Sampler::new("pos", settings, |_, random| Policy::PartialOrder { seed: random.next() })
}
