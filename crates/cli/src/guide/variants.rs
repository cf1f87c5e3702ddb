//! What a program reads from outside, as a further choice: other arguments, other input, other randomness.

use threadbare_hunt::Subject;

use super::driver::Variant;
use crate::arguments::{GuideOptions, LaunchOptions, SequenceOptions};
use crate::problem::Problem;
use crate::target;

/// The program with other arguments or another input.
pub struct Other {
    subject: Subject,
    /// What is special about it.
    name: String,
}

/// The program with each of the other inputs and arguments that the user names.
pub fn others(subject: &Subject, options: &GuideOptions) -> Result<Vec<Other>, Problem> {
    let (launch, clips) = (&options.program.launch, &options.search.out);
    let mut others = Vec::new();
    for file in &options.or_stdin {
        let launch = LaunchOptions { stdin: Some(file.clone()), ..launch.clone() };
        let subject = target::launched_otherwise(subject, &launch, clips)?;
        others.push(Other { subject, name: format!("--stdin {}", file.display()) });
    }
    for line in &options.or_arguments {
        let arguments = line.split_whitespace().map(str::to_owned).collect();
        let launch = LaunchOptions { arguments, ..launch.clone() };
        let subject = target::launched_otherwise(subject, &launch, clips)?;
        others.push(Other { subject, name: format!("the arguments `{line}`") });
    }
    Ok(others)
}

/// The variants that are to be tried, in order: each way to start the program, with each seed.
pub fn all<'a>(subject: &'a Subject, others: &'a [Other], options: &SequenceOptions) -> Vec<Variant<'a>> {
    let as_given = if others.is_empty() { "" } else { "what was given first" };
    let mut variants = seeds(subject, as_given, options);
    variants.extend(others.iter().flat_map(|other| seeds(&other.subject, &other.name, options)));
    variants
}

/// A program with each seed that is to be tried.
pub fn seeds<'a>(subject: &'a Subject, name: &str, options: &SequenceOptions) -> Vec<Variant<'a>> {
    let variant = |seed: u64| {
        let randomness = match seed {
            _ if options.vary == 1 => String::new(),
            0 => "the usual randomness".to_owned(),
            _ => format!("randomness {} of {}", seed + 1, options.vary),
        };
        let parts = [name, &randomness].into_iter().filter(|part| !part.is_empty());
        Variant { subject, name: parts.collect::<Vec<_>>().join(", "), seed }
    };
    (0..options.vary).map(variant).collect()
}
