//! How long a hunt goes on.

use std::str::FromStr;
use std::time::Duration;

/// How long to hunt: until any of these limits is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub runs: Option<u64>,
    pub time: Option<Duration>,
}

impl Budget {
    /// No limit at all.
    pub const UNLIMITED: Budget = Budget { runs: None, time: None };

    pub const fn runs(runs: u64) -> Budget {
        Budget { runs: Some(runs), time: None }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let mut budget = Budget::UNLIMITED;
        for part in text.split(',') {
            budget.limit(part).ok_or_else(|| wrong_budget(text))?;
        }
        Ok(budget)
    }
}

impl Budget {
    /// Takes over a limit; `None` if it is none, or one of its kind is there already.
    fn limit(&mut self, text: &str) -> Option<()> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok().filter(|&number| number > 0)?;
        let unit = match unit {
            "runs" | "run" => return self.runs.replace(number).is_none().then_some(()),
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        /// More would be beyond what clocks can say.
        const MAX_SECONDS: u64 = 365 * 24 * 3600;
        let seconds = number.checked_mul(unit).filter(|&seconds| seconds <= MAX_SECONDS)?;
        self.time.replace(Duration::from_secs(seconds)).is_none().then_some(())
    }
}

fn wrong_budget(text: &str) -> String {
    format!(
        "`{text}` is neither a time such as 30s, 5m or 1h (up to a year) nor a number of runs such as 1000runs, \
         nor both with a comma"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_times_or_runs() {
        let time = |seconds| Budget { runs: None, time: Some(Duration::from_secs(seconds)) };
        assert_eq!("30s".parse(), Ok(time(30)));
        assert_eq!("2m".parse(), Ok(time(120)));
        assert_eq!("1000runs".parse(), Ok(Budget::runs(1000)));
        assert_eq!("1000runs,30s".parse(), Ok(Budget { runs: Some(1000), ..time(30) }));
        assert_eq!("30s,1000runs".parse(), "1000runs,30s".parse::<Budget>());
        for text in [
            "",
            "30",
            "0runs",
            "0s",
            "9000h",
            "s",
            "-1s",
            "10 runs",
            "99999999999999999999s",
            "18446744073709551615h",
            "30s,",
            "30s,1m",
            "1runs,2runs",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text:?} was accepted");
        }
    }
}
