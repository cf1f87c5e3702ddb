//! Three subjects that hide their bug behind many threads, for every strategy.

use threadbare_hunt::methods;

use super::{HUNT, Result, compile, search, strategy, worker};

/// Subjects, and whether it is the second size that makes them large.
const SUBJECTS: [(&str, bool); 3] = [("reorder", false), ("twostage", false), ("wronglock", true)];
const THREADS: [u32; 6] = [3, 5, 10, 20, 50, 100];

pub fn run(budget: u64, seeds: u64, only: &[String]) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    println!("mean schedules to the bug over {seeds} seeds, at most {budget}; in brackets how many found it");
    for (subject, second) in SUBJECTS {
        let program = compile(subject, directory.path(), &[])?;
        let wanted = |name: &&str| only.is_empty() || only.iter().any(|only| only == name);
        for name in [HUNT].into_iter().chain(methods::all().map(|entry| entry.name)).filter(wanted) {
            print!("{subject:<10} {name:<17}");
            for threads in THREADS {
                let many = threads - 1;
                let arguments = if second { format!("1 {many}") } else { format!("{many} 1") };
                let mut worker = worker(&program, &arguments)?;
                // A search that draws nothing is the same for every seed.
                let seeds = if strategy(name, 0, &worker)?.is_random() { seeds } else { 1 };
                let (mut runs, mut found) = (0, 0);
                for seed in 0..seeds {
                    let mut strategy = strategy(name, seed, &worker)?;
                    let search = search(&mut worker, strategy.as_mut(), budget)?;
                    runs += search.runs;
                    found += u64::from(search.found.is_some());
                }
                let mean = runs as f64 / seeds as f64;
                let all = if found == seeds { String::new() } else { format!(" ({found}/{seeds})") };
                print!(" {threads:>4}: {:<14}", format!("{mean:.1}{all}"));
            }
            println!();
        }
    }
    Ok(true)
}
