//! Where cells go: a column for each thread, or a single one where that would be too narrow.

use std::collections::HashMap;

use threadbare_trace::ThreadIndex;

use super::paint::{Style, Text};
use super::rows::{Block, Cell};
use super::setting::Setting;
use threadbare_hunt::user_code::UserCode;

/// A column narrower than this shows too little of a source line.
const NARROWEST: usize = 26;
const SEPARATOR: &str = " │ ";
const CROSSING: &str = "─┼─";
/// How far the last thread of a single column may be indented, and how far each from the one before.
const MAX_INDENT: usize = 24;
const INDENT: usize = 2;

/// A thread that is shown.
struct Lane {
    thread: ThreadIndex,
    /// `0.2`.
    number: String,
    routine: String,
}

/// A block as lines.
enum Band {
    /// Side by side, each with the number of its lane.
    Cells(Vec<(usize, Vec<Text>)>),
    Across(Text),
}

/// The interleaving, with an empty line before it; nothing when there is none.
pub fn lines(places: &UserCode<'_>, blocks: &[Block<'_>], width: usize) -> Vec<Text> {
    let lanes = choose_lanes(places, blocks, width);
    if lanes.is_empty() {
        return Vec::new();
    }
    let mut setting = Setting::of(cells(blocks));
    let mut lines = vec![Text::default(), setting.opening(), Text::default()];
    let columns = share(lanes.len(), width) >= NARROWEST;
    let bands = bands(&mut setting, blocks, &lanes, columns);
    let table =
        if columns { side_by_side(&lanes, &bands, width) } else { single_column(&lanes, &bands, width) };
    lines.extend(table);
    lines
}

/// The threads to show. Those that only begin and end are the first to go when room is short.
fn choose_lanes(places: &UserCode<'_>, blocks: &[Block<'_>], width: usize) -> Vec<Lane> {
    let all = lanes(places, blocks, |_| true);
    if all.is_empty() || share(all.len(), width) >= NARROWEST {
        return all;
    }
    let busy = lanes(places, blocks, |cell| !cell.is_idle());
    if busy.is_empty() { all } else { busy }
}

/// In the order of thread numbers.
fn lanes(places: &UserCode<'_>, blocks: &[Block<'_>], wanted: impl Fn(&Cell<'_>) -> bool) -> Vec<Lane> {
    let mut threads: Vec<ThreadIndex> =
        cells(blocks).filter(|cell| wanted(cell)).map(|cell| cell.thread).collect();
    threads.sort_by_key(|&thread| (places.trace.threads.get(thread.index()), thread));
    threads.dedup();
    let lane = |thread| Lane {
        thread,
        number: places.thread_number(thread),
        routine: places.routine(thread).unwrap_or_default().into(),
    };
    threads.into_iter().map(lane).collect()
}

fn cells<'b, 'a>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b Cell<'a>> {
    blocks.iter().flat_map(|block| match block {
        Block::Cells(cells) => cells.as_slice(),
        Block::LeftOut(_) => &[],
    })
}

/// The width that each of so many columns can have.
fn share(columns: usize, width: usize) -> usize {
    width.saturating_sub(SEPARATOR.chars().count() * (columns - 1)) / columns
}

fn bands(setting: &mut Setting<'_>, blocks: &[Block<'_>], lanes: &[Lane], columns: bool) -> Vec<Band> {
    let lane_of: HashMap<ThreadIndex, usize> =
        lanes.iter().enumerate().map(|(i, lane)| (lane.thread, i)).collect();
    let mut band = |block: &Block<'_>| match block {
        Block::LeftOut(switches) => {
            Band::Across(Text::new(Style::Dim, &format!("⋮ {switches} switches left out")))
        }
        Block::Cells(cells) => {
            let shown = cells.iter().filter_map(|cell| Some((*lane_of.get(&cell.thread)?, cell)));
            Band::Cells(shown.map(|(i, cell)| (i, setting.cell(if columns { i } else { 0 }, cell))).collect())
        }
    };
    blocks.iter().map(&mut band).collect()
}

fn side_by_side(lanes: &[Lane], bands: &[Band], width: usize) -> Vec<Text> {
    let titles: Vec<Text> =
        lanes.iter().map(|lane| Text::new(Style::Bold, &format!("thread {}", lane.number))).collect();
    let routines: Vec<Text> = lanes.iter().map(|lane| Text::new(Style::Dim, &lane.routine)).collect();
    let widths = column_widths(&titles, &routines, bands, width);
    let mut lines = vec![joined(&widths, |i| titles.get(i))];
    if lanes.iter().any(|lane| !lane.routine.is_empty()) {
        lines.push(joined(&widths, |i| routines.get(i)));
    }
    let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
    lines.push(Text::new(Style::Dim, &rules.join(CROSSING)));
    for band in bands {
        match band {
            Band::Across(text) => lines.push(text.clone().cut(width)),
            Band::Cells(cells) => {
                let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
                let line = |i, row| cells.iter().find(|(lane, _)| *lane == i)?.1.get(row);
                lines.extend((0..height).map(|row| joined(&widths, |i| line(i, row))));
            }
        }
    }
    lines
}

/// A line across all columns.
fn joined<'t>(widths: &[usize], text: impl Fn(usize) -> Option<&'t Text>) -> Text {
    widths.iter().enumerate().fold(Text::default(), |line, (i, &width)| {
        let line = if i == 0 { line } else { line.then(Style::Dim, SEPARATOR) };
        line.append(&text(i).cloned().unwrap_or_default().fit(width))
    })
}

/// What each column needs, or where that is too much, an equal share of what the smaller ones leave.
fn column_widths(titles: &[Text], routines: &[Text], bands: &[Band], width: usize) -> Vec<usize> {
    let mut needs: Vec<usize> = titles.iter().zip(routines).map(|(a, b)| a.width().max(b.width())).collect();
    for band in bands {
        let Band::Cells(cells) = band else { continue };
        for (i, lines) in cells {
            needs[*i] = lines.iter().map(Text::width).fold(needs[*i], usize::max);
        }
    }
    let mut smallest_first: Vec<usize> = (0..needs.len()).collect();
    smallest_first.sort_by_key(|&i| needs[i]);
    let mut room = width.saturating_sub(SEPARATOR.chars().count() * (needs.len() - 1));
    for (done, &i) in smallest_first.iter().enumerate() {
        needs[i] = needs[i].min(room / (smallest_first.len() - done));
        room -= needs[i];
    }
    needs
}

/// The stretches one below the other, indented by thread, each with the thread's number where it begins.
fn single_column(lanes: &[Lane], bands: &[Band], width: usize) -> Vec<Text> {
    let step = INDENT.min(MAX_INDENT / lanes.len());
    let digits = lanes.iter().map(|lane| lane.number.len()).max().unwrap_or(0);
    let mut lines = who_is_who(lanes);
    for band in bands {
        let cells = match band {
            Band::Across(text) => {
                lines.push(text.clone().cut(width));
                continue;
            }
            Band::Cells(cells) => cells,
        };
        for (i, cell) in cells {
            let indent = " ".repeat(step * i);
            lines.extend(cell.iter().enumerate().map(|(row, text)| {
                let number = if row == 0 { &lanes[*i].number } else { "" };
                let margin = Text::new(Style::Bold, &format!("{indent}{number:digits$}  "));
                margin.append(text).cut(width)
            }));
        }
    }
    lines
}

/// `threads: 0 main; 0.1, 0.2 transfer`, and an empty line; nothing when no routine is known.
fn who_is_who(lanes: &[Lane]) -> Vec<Text> {
    if lanes.iter().all(|lane| lane.routine.is_empty()) {
        return Vec::new();
    }
    let groups = lanes.chunk_by(|a, b| a.routine == b.routine).map(|group| {
        let numbers: Vec<&str> = group.iter().map(|lane| lane.number.as_str()).collect();
        format!("{} {}", numbers.join(", "), group[0].routine).trim_end().to_string()
    });
    let line = format!("threads: {}", groups.collect::<Vec<_>>().join("; "));
    vec![Text::new(Style::Dim, &line), Text::default()]
}
