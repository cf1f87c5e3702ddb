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

    /// A part of it, as a fraction. It has at least one run.
    pub fn share(self, (part, whole): (u32, u32)) -> Budget {
        let whole = whole.max(1);
        Budget {
            runs: self.runs.map(|runs| (runs.saturating_mul(part.into()) / u64::from(whole)).max(1)),
            time: self.time.map(|time| time.saturating_mul(part) / whole),
        }
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
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if matches!(unit, "runs" | "run") {
            let runs = number.parse().ok().filter(|&runs: &u64| runs > 0)?;
            return self.runs.replace(runs).is_none().then_some(());
        }
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        /// More would be beyond what clocks can say.
        const MAX_SECONDS: f64 = 365.0 * 24.0 * 3600.0;
        let number: f64 = number.parse().ok()?;
        let seconds = Some(number * seconds).filter(|seconds| (0.001..=MAX_SECONDS).contains(seconds))?;
        self.time.replace(Duration::from_secs_f64(seconds)).is_none().then_some(())
    }
}

fn wrong_budget(text: &str) -> String {
    format!(
        "`{text}` is neither a time such as 500ms, 30s, 1.5m or 1h (up to a year) nor a number of runs such as 1000runs, \
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
        assert_eq!("2min".parse(), Ok(time(120)));
        assert_eq!("1.5m".parse(), Ok(time(90)));
        assert_eq!("8760h".parse(), Ok(time(365 * 24 * 3600)));
        let milliseconds = |number| Budget { runs: None, time: Some(Duration::from_millis(number)) };
        assert_eq!("1.5s".parse(), Ok(milliseconds(1500)));
        assert_eq!("0.5s".parse(), "500ms".parse::<Budget>());
        assert_eq!("500ms".parse(), Ok(milliseconds(500)));
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
            "1.5runs",
            "1.2.3s",
            ".s",
            "0.0s",
            "0.0001ms",
            "infs",
            "1e9s",
            "1,5s",
            "1runs,2runs",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text:?} was accepted");
        }
    }
}
