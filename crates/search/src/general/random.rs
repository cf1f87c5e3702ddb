//! Any thread that can run, at every step.

use threadbare_trace::Policy;

use super::Sampler;
use crate::Settings;

pub fn random(settings: Settings) -> Sampler {
    Sampler::new("random", settings, |_, random| Policy::Random { seed: random.next() })
}
