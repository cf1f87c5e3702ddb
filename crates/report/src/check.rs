//! The checks of a self-test, one line each.

use std::fmt;

use console::Style;
use serde::Serialize;

/// A check of a self-test, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    r#type: &'static str,
    /// What was looked at.
    check: String,
    result: CheckResult,
    /// What was seen.
    found: String,
    /// What to do next, if something is not well.
    advice: Option<String>,
}

/// What came of a check. The worst of all is the result of the self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    Ok,
    /// Something will not work, or will not be seen.
    Warning,
    /// Nothing will work.
    Error,
}

impl Check {
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Check {
        let (check, found) = (check.into(), found.into());
        Check { r#type: "check", check, result: CheckResult::Ok, found, advice: None }
    }

    pub fn warning(check: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { result: CheckResult::Warning, advice: Some(advice.into()), ..Check::ok(check, found) }
    }

    pub fn error(check: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { result: CheckResult::Error, ..Check::warning(check, found, advice) }
    }

    pub fn result(&self) -> CheckResult {
        self.result
    }

    /// The line of `--json`.
    pub fn json(&self) -> String {
        // A struct of strings has nothing that JSON could not hold.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `     ok  C compiler: gcc 12.2.0`, and below it what to do next.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, style) = match self.result {
            CheckResult::Ok => ("ok", Style::new().green()),
            CheckResult::Warning => ("warning", Style::new().yellow()),
            CheckResult::Error => ("error", Style::new().red()),
        };
        let found = self.found.trim_end().replace('\n', "\n           ");
        write!(f, "{}  {}: {found}", style.bold().apply_to(format!("{word:>7}")), self.check)?;
        match &self.advice {
            Some(advice) => write!(f, "\n         {}", advice.trim_end().replace('\n', "\n         ")),
            None => Ok(()),
        }
    }
}
