//! Figure 5 of the paper: states against the number of locations, as SVG.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::subjects::{ROWS, Subject};
use super::trials::{Bounds, Trials};
use super::{Result, Search};

/// The two subjects of the figure: subject, arguments, and the figure's name.
const PARTS: [(&str, &str, &str); 2] =
    [("arylist", "1 10", "arylist(1,10)"), ("twostage", "5 1", "twostage(5,1)")];

pub fn run(scratch: &Path, directory: &Path, trials: u64) -> Result<bool> {
    fs::create_dir_all(directory)?;
    let bounds = Bounds { time: Duration::from_secs(60), states: 1_000_000 };
    for (name, arguments, title) in PARTS {
        let row = ROWS.iter().find(|row| row.subject == name).ok_or("there is no such row")?;
        let subject = Subject::prepare(row, scratch)?;
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        let subject = Subject { arguments, ..subject };
        let mut means = Vec::new();
        for locations in 1..=subject.locations.len() {
            let trials = Trials::with_locations(&subject, Search::Nearest, trials, bounds, locations)?;
            println!(
                "{title}: {locations} locations, found in {:.2} of the trials, {:.0} states",
                trials.found_share(),
                trials.states().mean
            );
            means.push(trials.states().mean);
        }
        let path = directory.join(format!("states-{name}.svg"));
        fs::write(&path, svg(title, &means))?;
        println!("{}", path.display());
    }
    Ok(true)
}

/// A line through the means, with both axes labelled.
fn svg(title: &str, means: &[f64]) -> String {
    const WIDTH: f64 = 480.0;
    const HEIGHT: f64 = 320.0;
    const MARGIN: f64 = 60.0;
    let most = means.iter().copied().fold(1.0, f64::max);
    let x = |index: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * index as f64 / (means.len().max(2) - 1) as f64;
    let y = |mean: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * mean / most;
    let points: Vec<String> =
        means.iter().enumerate().map(|(i, &mean)| format!("{:.1},{:.1}", x(i), y(mean))).collect();
    let mut body = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1f6feb\" stroke-width=\"2\"/>\n",
        points.join(" ")
    );
    for (i, &mean) in means.iter().enumerate() {
        body += &format!(
            "<circle cx=\"{0:.1}\" cy=\"{1:.1}\" r=\"3\" fill=\"#1f6feb\"/>\n\
             <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">{3}</text>\n\
             <text x=\"{0:.1}\" y=\"{4:.1}\" text-anchor=\"middle\">{mean:.0}</text>\n",
            x(i),
            y(mean),
            HEIGHT - MARGIN + 18.0,
            i + 1,
            y(mean) - 8.0,
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{0}\" y=\"24\" text-anchor=\"middle\" font-size=\"14\">{title}: states to the error</text>\n\
         <line x1=\"{MARGIN}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"black\"/>\n\
         <line x1=\"{MARGIN}\" y1=\"{MARGIN}\" x2=\"{MARGIN}\" y2=\"{1}\" stroke=\"black\"/>\n\
         <text x=\"{0}\" y=\"{3}\" text-anchor=\"middle\">locations in the sequence</text>\n{body}</svg>\n",
        WIDTH / 2.0,
        HEIGHT - MARGIN,
        WIDTH - MARGIN,
        HEIGHT - 16.0,
    )
}
