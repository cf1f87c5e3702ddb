//! The paper's Table 1.

use std::path::Path;

use threadbare_rank::Rank;
use threadbare_search::{Settings, Tuple};
use threadbare_trace::Plan;

use super::{Result, compile, search, strategy, worker};

/// A row: subject, arguments that give it the paper's threads, and the paper's threads, schedules and tuple.
type Row = (&'static str, &'static str, usize, u64, &'static str);

const ROWS: [Row; 15] = [
    ("mergesort", "165 4", 100, 651, "(1,all,2,1)"),
    ("producer_consumer", "3 8 3 5", 7, 1, "(0,0,2,1)"),
    ("linkedlist", "5 2", 3, 23, "(1,all,2,1)"),
    ("bubblesort", "9", 9, 1, "(0,0,2,1)"),
    ("bubblesort2", "101", 101, 2, "(0,0,2,1)"),
    ("piper", "3 1 1 2", 5, 425, "(2,1,2,1)"),
    ("allocation_vector", "1 1 2", 3, 113, "(2,1,2,1)"),
    ("bufwriter", "3 10 10", 5, 12, "(0,0,2,1)"),
    ("pingpong", "17", 18, 234, "(1,all,2,1)"),
    ("manager", "1 4", 6, 33, "(1,all,2,1)"),
    ("mergesort_bug", "29 29", 29, 89, "(1,all,2,1)"),
    ("account_ring", "2", 3, 19, "(1,all,2,1)"),
    ("airline", "10", 11, 2, "(0,0,2,1)"),
    ("hashset", "1 198", 200, 813, "(1,all,2,1)"),
    ("treeset", "1 198", 200, 813, "(1,all,2,1)"),
];

pub fn run(budget: u64) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!(
        "{:<18} {:>7} {:>7}   {:>9} {:<12}   {:>9} {:<12}",
        "subject", "threads", "events", "schedules", "tuple", "paper", ""
    );
    let mut good = true;
    for (subject, arguments, threads, schedules, tuple) in ROWS {
        let program = compile(subject, directory.path(), &[])?;
        let mut worker = worker(&program, arguments)?;
        let mut strategy = strategy("rank", 0, &worker)?;
        let search = search(&mut worker, strategy.as_mut(), budget)?;
        let found = search.found.flatten();
        let is_more = found.is_none() || search.runs > schedules;
        good &= !is_more;
        println!(
            "{subject:<18} {:>7} {:>7}   {:>9} {:<12}   {schedules:>9} {tuple:<12} {threads:>4} threads{}",
            search.threads,
            search.events,
            search.runs,
            found.map_or_else(|| "never".into(), |tuple| tuple.to_string()),
            if is_more { "   MORE" } else { "" },
        );
        if is_more && found.is_some_and(|found| found.to_string() != tuple) {
            print_tuple_alone(&program, arguments, tuple, budget)?;
        }
    }
    Ok(good)
}

/// Searches all of the paper's tuple, which says whether ours could have been that low.
fn print_tuple_alone(program: &Path, arguments: &str, tuple: &str, budget: u64) -> Result<()> {
    let tuples = Some(vec![tuple.parse::<Tuple>()?]);
    let settings = Settings { tuples, ..Settings::new(Plan::default()) };
    let mut rank = Rank::new(settings);
    let search = search(&mut worker(program, arguments)?, &mut rank, budget)?;
    println!(
        "  all of {tuple}: {} schedules, {}",
        search.runs,
        if search.found.is_some() { "one of them fails" } else { "none of them fails" }
    );
    Ok(())
}
