//! The options for Rust's test harness, after `--`.
//!
//! Those that choose tests are passed on to the harness, which lists what they leave. The others are about one run of all
//! tests in one process, which a hunt does not make. Each is done in another way, or refused with the way to do it.

use crate::problem::Problem;

/// What the options ask for.
#[derive(Debug, PartialEq, Eq)]
pub struct HarnessOptions {
    /// Choose tests: filters, `--skip`, `--exact`, `--ignored`, `--include-ignored`. Options that we do not know are among
    /// them: a program with a harness of its own may.
    pub choice: Vec<String>,
    /// The harness itself is to say something, such as the list of tests.
    pub asks_harness: bool,
    /// Tests side by side.
    pub test_threads: Option<u32>,
}

/// Options that take the next argument as their value, unless it follows `=`.
const WITH_VALUE: [&str; 6] =
    ["--skip", "--test-threads", "--format", "--color", "--logfile", "--shuffle-seed"];

impl HarnessOptions {
    pub fn parse(arguments: &[String]) -> Result<HarnessOptions, Problem> {
        let mut options = HarnessOptions { choice: Vec::new(), asks_harness: false, test_threads: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, mut value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if value.is_none() && WITH_VALUE.contains(&name) {
                value = Some(rest.next().cloned().ok_or_else(|| needs_value(name))?);
            }
            options.take(argument, name, value)?;
        }
        Ok(options)
    }

    fn take(&mut self, argument: &str, name: &str, value: Option<String>) -> Result<(), Problem> {
        match (name, value) {
            ("--list" | "--help" | "-h", _) => self.asks_harness = true,
            // It is what a test program does.
            ("--test", None) => {}
            ("--test-threads", Some(value)) => {
                let number = value.parse().ok().filter(|&number| number > 0);
                self.test_threads = Some(number.ok_or_else(|| needs_value(name))?);
            }
            ("--skip", Some(value)) => self.choice.push(format!("--skip={value}")),
            _ => match instead(name) {
                Some(instead) => {
                    return Err(Problem::new(format!("`{argument}` has no meaning in a hunt")).help(instead));
                }
                None => self.choice.push(argument.to_owned()),
            },
        }
        Ok(())
    }
}

fn needs_value(option: &str) -> Problem {
    let what = if option == "--test-threads" { "a number of tests at the same time" } else { "a value" };
    Problem::new(format!("`{option}` needs {what}"))
}

/// What to do instead of an option that a hunt cannot honour.
fn instead(option: &str) -> Option<&'static str> {
    Some(match option {
        "--nocapture" | "--no-capture" | "--show-output" => {
            "each test runs under many schedules, and what it prints is kept back;\nto see it once: cargo threadbare test --no-hunt -- --nocapture"
        }
        "--format" | "--color" | "-q" | "--quiet" | "--logfile" | "--report-time" | "--ensure-time" => {
            "how to print is said before `--`: cargo threadbare test --format NAME"
        }
        "--shuffle" | "--shuffle-seed" => {
            "each test runs in a process of its own, so their order does not matter"
        }
        "--bench" => "benchmarks have no threads to schedule; for the tests: cargo threadbare test",
        "-Z" => {
            "options that are not stable are for the harness alone: cargo threadbare test --no-hunt -- -Z …"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<HarnessOptions, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        HarnessOptions::parse(&arguments).map_err(|problem| problem.to_string())
    }

    #[test]
    fn what_chooses_tests_is_passed_on() {
        let chosen = ["--ignored", "--exact", "one", "--include-ignored", "--mine", "--mine=1"];
        assert_eq!(parse(&chosen).map(|options| options.choice), Ok(chosen.map(str::to_owned).to_vec()));
        let skips = parse(&["--skip", "--exact", "--skip=b"]).map(|options| options.choice);
        assert_eq!(skips, Ok(vec!["--skip=--exact".to_owned(), "--skip=b".to_owned()]));
    }

    #[test]
    fn what_is_for_one_run_is_done_otherwise_or_refused() {
        assert_eq!(parse(&["--test-threads", "3"]).map(|options| options.test_threads), Ok(Some(3)));
        assert_eq!(parse(&["--test-threads=1", "--test"]).map(|options| options.test_threads), Ok(Some(1)));
        assert!(parse(&["--list"]).is_ok_and(|options| options.asks_harness));
        for refused in ["--nocapture", "--format=json", "--color=always", "-q", "--bench", "--shuffle", "-Z"]
        {
            assert_eq!(parse(&[refused]), Err(format!("`{refused}` has no meaning in a hunt")));
        }
        assert_eq!(parse(&["--skip"]), Err("`--skip` needs a value".to_owned()));
        assert!(parse(&["--test-threads=0"]).is_err() && parse(&["--test-threads", "many"]).is_err());
    }
}
