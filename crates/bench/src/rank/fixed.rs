//! Every fixed subject: the search is over, or its budget is, and it has found nothing.

use super::{Result, compile, search, strategy, worker};
use crate::subjects;

pub fn run(budget: u64) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!("{:<18} {:>7} {:>9}   ended", "subject", "threads", "schedules");
    let mut good = true;
    for source in subjects::all()?.into_keys() {
        let subject = source.file_stem().unwrap_or_default().to_string_lossy();
        let mut worker = worker(&compile(&subject, directory.path(), &["-DFIXED"])?, "")?;
        let mut strategy = strategy("rank", 0, &worker)?;
        let search = search(&mut worker, strategy.as_mut(), budget)?;
        good &= search.found.is_none();
        let ended = match (search.found.is_some(), search.runs < budget, search.dropped) {
            (true, ..) => "FOUND SOMETHING".to_owned(),
            (_, true, 0) => "exhausted".to_owned(),
            (_, _, 0) => "budget".to_owned(),
            (.., dropped) => format!("{dropped} schedules given up"),
        };
        println!("{subject:<18} {:>7} {:>9}   {ended}", search.threads, search.runs);
    }
    Ok(good)
}
