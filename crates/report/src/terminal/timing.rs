//! Words for whether a failure depends on timing.
//!
//! What a program does without our scheduling is said only from a `PlainRun`, which somebody has made.

use threadbare_executor::{PlainEnd, PlainRun};
use threadbare_hunt::{Dependence, Timing};

/// `in 12 of 40 schedules`; `None` if they were not counted.
pub fn words(timing: &Timing) -> Option<String> {
    let (failing, schedules) = (timing.failing(), timing.schedules());
    let all = match schedules {
        0 => return None,
        1 => "in the one schedule that was tried".to_owned(),
        _ => format!("in all {schedules} schedules that were tried"),
    };
    Some(match (timing.dependence(), timing.plain()) {
        (Dependence::Depends, _) => format!("in {failing} of {schedules} schedules"),
        (Dependence::Always, plain) => {
            let too = plain.filter(|plain| !plain.passed()).map_or_else(String::new, |plain| {
                format!(", and without Threadbare's scheduling too ({})", plain.end())
            });
            format!("{all}{too}: it does not depend on timing")
        }
        (Dependence::Unknown, Some(plain)) if plain.passed() => format!(
            "{all}, but the program passes without Threadbare's scheduling;\n  if this failure cannot happen, it is \
             our fault: please report it"
        ),
        (Dependence::Unknown, Some(plain)) => {
            format!("{all}; without Threadbare's scheduling: {}", plain.end())
        }
        (Dependence::Unknown, None) => all,
    })
}

/// What a program that comes to no end does without our scheduling.
pub fn endless(plain: &PlainRun) -> String {
    match plain.end() {
        PlainEnd::Exited(0) => {
            format!("without Threadbare's scheduling it ends in {:.1} s", plain.time().as_secs_f64())
        }
        end => format!("without Threadbare's scheduling: {end}"),
    }
}
