//! What schedules of the ranked search cost.

use super::{Result, compile, search, strategy, worker};
pub fn run() -> Result<bool> {
    Ok(true)
}
