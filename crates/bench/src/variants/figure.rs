//! Figure 16 of the paper: test cases against the number of accesses to shared variables, as SVG.

use std::fs;
use std::path::Path;

use super::{Criterion, Result, explore};
use crate::rank::{compile, worker};

/// The receiver's characters, with two repaints: each is more accesses to the same variables.
const SIZES: [&str; 4] = ["1", "2", "3", "4"];

const CRITERIA: [(&str, &str, Criterion); 3] = [
    ("reachability", "#8b949e", Criterion::Reachability),
    ("tpair", "#1f6feb", Criterion::ThreadPairs),
    ("race-equivalent", "#d1242f", Criterion::RaceEquivalence { branches_only: true }),
];

/// The accesses of a run, and the test cases.
type Point = (usize, u64);

pub fn run(max_runs: u64, directory: &Path) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let program = compile("telnet", scratch.path(), &[])?;
    let mut lines: Vec<Vec<Point>> = vec![Vec::new(); CRITERIA.len()];
    println!("\nFigure 16, on telnet");
    for size in SIZES {
        let mut worker = worker(&program, size)?;
        let explored = CRITERIA.map(|(_, _, criterion)| explore(&mut worker, criterion, max_runs));
        let explored = explored.into_iter().collect::<Result<Vec<_>>>()?;
        let accesses = explored.iter().map(|explored| explored.accesses).max().unwrap_or_default();
        for (((name, ..), line), explored) in CRITERIA.iter().zip(&mut lines).zip(explored) {
            println!("{accesses:>4} accesses {name:<16} {:>8}", explored.text());
            if explored.ended {
                line.push((accesses, explored.test_cases()));
            }
        }
    }
    fs::create_dir_all(directory)?;
    let path = directory.join("test-cases.svg");
    fs::write(&path, svg(&lines))?;
    println!("{}", path.display());
    Ok(())
}

/// A line for each criterion. Test cases are on a logarithmic scale.
fn svg(lines: &[Vec<Point>]) -> String {
    const WIDTH: f64 = 480.0;
    const HEIGHT: f64 = 320.0;
    const MARGIN: f64 = 60.0;
    let points = || lines.iter().flatten();
    let max_accesses = points().map(|point| point.0).max().unwrap_or(1) as f64;
    let max_cases = (points().map(|point| point.1).max().unwrap_or(1) as f64 + 1.0).ln();
    let x = |accesses: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * accesses as f64 / max_accesses;
    let y = |cases: u64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (cases as f64 + 1.0).ln() / max_cases;
    let mut body = String::new();
    for (number, ((name, colour, _), line)) in CRITERIA.iter().zip(lines).enumerate() {
        let path: Vec<String> =
            line.iter().map(|&(accesses, cases)| format!("{:.1},{:.1}", x(accesses), y(cases))).collect();
        let legend = MARGIN + 16.0 * number as f64;
        body += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{MARGIN}\" dx=\"8\" y=\"{legend}\" fill=\"{colour}\">{name}</text>\n",
            path.join(" ")
        );
        for &(accesses, cases) in line {
            body += &format!(
                "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"{colour}\"/>\n\
                 <text x=\"{0:.1}\" y=\"{1:.1}\" dy=\"-6\" text-anchor=\"middle\">{cases}</text>\n",
                x(accesses),
                y(cases),
            );
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{0}\" y=\"24\" text-anchor=\"middle\" font-size=\"14\">telnet: test cases</text>\n\
         <line x1=\"{MARGIN}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"black\"/>\n\
         <line x1=\"{MARGIN}\" y1=\"{MARGIN}\" x2=\"{MARGIN}\" y2=\"{1}\" stroke=\"black\"/>\n\
         <text x=\"{0}\" y=\"{3}\" text-anchor=\"middle\">accesses to shared variables</text>\n{body}</svg>\n",
        WIDTH / 2.0,
        HEIGHT - MARGIN,
        WIDTH - MARGIN,
        HEIGHT - 16.0,
    )
}
