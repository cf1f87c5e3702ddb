//! The layout of cells: a column for each thread, or a single column if those would be too narrow.

use std::collections::HashMap;

use threadbare_trace::ThreadIndex;

use super::cell_writer::CellWriter;
use super::paint::{Style, Text};
use super::rows::{Block, Cell};
use threadbare_hunt::user_code::UserCode;

/// A column narrower than this shows too little of a source line.
const MIN_COLUMN_WIDTH: usize = 26;
const SEPARATOR: &str = " │ ";
const CROSSING: &str = "─┼─";
/// In a single column, each thread is indented by `INDENT` more than the one before, up to `MAX_INDENT`.
const MAX_INDENT: usize = 24;
const INDENT: usize = 2;

/// The column of a thread.
struct Column {
    thread: ThreadIndex,
    /// `0.2`.
    number: String,
    routine: String,
}

/// A block as lines.
enum Band {
    /// Cells that stand side by side, each with the index of its column.
    Cells(Vec<(usize, Vec<Text>)>),
    Across(Text),
}

/// The interleaving, with an empty line before it; nothing when there is none.
pub fn lines(code: &UserCode<'_>, blocks: &[Block<'_>], width: usize) -> Vec<Text> {
    let columns = choose_columns(code, blocks, width);
    if columns.is_empty() {
        return Vec::new();
    }
    let mut cell_writer = CellWriter::of(cells(blocks));
    let mut lines = vec![Text::default(), cell_writer.opening(), Text::default()];
    let fits = share(columns.len(), width) >= MIN_COLUMN_WIDTH;
    let bands = bands(&mut cell_writer, blocks, &columns, fits);
    let table =
        if fits { side_by_side(&columns, &bands, width) } else { single_column(&columns, &bands, width) };
    lines.extend(table);
    lines
}

/// The columns to show. If the terminal is too narrow for all, threads that only begin and end are left out.
fn choose_columns(code: &UserCode<'_>, blocks: &[Block<'_>], width: usize) -> Vec<Column> {
    let all = columns(code, blocks, |_| true);
    if all.is_empty() || share(all.len(), width) >= MIN_COLUMN_WIDTH {
        return all;
    }
    let busy = columns(code, blocks, |cell| !cell.is_idle());
    if busy.is_empty() { all } else { busy }
}

/// The columns of the threads that have a wanted cell, by thread number.
fn columns(code: &UserCode<'_>, blocks: &[Block<'_>], wanted: impl Fn(&Cell<'_>) -> bool) -> Vec<Column> {
    let mut threads: Vec<ThreadIndex> =
        cells(blocks).filter(|cell| wanted(cell)).map(|cell| cell.thread).collect();
    threads.sort_by_key(|&thread| (code.trace.threads.get(thread.index()), thread));
    threads.dedup();
    let column = |thread| Column {
        thread,
        number: code.thread_number(thread),
        routine: code.routine(thread).unwrap_or_default().into(),
    };
    threads.into_iter().map(column).collect()
}

fn cells<'b, 'a>(blocks: &'b [Block<'a>]) -> impl Iterator<Item = &'b Cell<'a>> {
    blocks.iter().flat_map(|block| match block {
        Block::Cells(cells) => cells.as_slice(),
        Block::LeftOut(_) => &[],
    })
}

/// The width of each column when `count` columns share the terminal.
fn share(count: usize, width: usize) -> usize {
    width.saturating_sub(SEPARATOR.chars().count() * (count - 1)) / count
}

fn bands(
    cell_writer: &mut CellWriter<'_>,
    blocks: &[Block<'_>],
    columns: &[Column],
    fits: bool,
) -> Vec<Band> {
    let column_of: HashMap<ThreadIndex, usize> =
        columns.iter().enumerate().map(|(i, column)| (column.thread, i)).collect();
    let mut band = |block: &Block<'_>| match block {
        Block::LeftOut(switches) => {
            Band::Across(Text::new(Style::Dim, &format!("⋮ {switches} switches left out")))
        }
        Block::Cells(cells) => {
            let shown = cells.iter().filter_map(|cell| Some((*column_of.get(&cell.thread)?, cell)));
            Band::Cells(
                shown.map(|(i, cell)| (i, cell_writer.cell(if fits { i } else { 0 }, cell))).collect(),
            )
        }
    };
    blocks.iter().map(&mut band).collect()
}

fn side_by_side(columns: &[Column], bands: &[Band], width: usize) -> Vec<Text> {
    let titles: Vec<Text> =
        columns.iter().map(|column| Text::new(Style::Bold, &format!("thread {}", column.number))).collect();
    let routines: Vec<Text> = columns.iter().map(|column| Text::new(Style::Dim, &column.routine)).collect();
    let widths = column_widths(&titles, &routines, bands, width);
    let mut lines = vec![joined(&widths, |i| titles.get(i))];
    if columns.iter().any(|column| !column.routine.is_empty()) {
        lines.push(joined(&widths, |i| routines.get(i)));
    }
    let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
    lines.push(Text::new(Style::Dim, &rules.join(CROSSING)));
    for band in bands {
        match band {
            Band::Across(text) => lines.push(text.clone().cut(width)),
            Band::Cells(cells) => {
                let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
                let line = |i, row| cells.iter().find(|(column, _)| *column == i)?.1.get(row);
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

/// The width of each column: what it needs, or an equal share of what the smaller columns leave.
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
fn single_column(columns: &[Column], bands: &[Band], width: usize) -> Vec<Text> {
    let step = INDENT.min(MAX_INDENT / columns.len());
    let digits = columns.iter().map(|column| column.number.len()).max().unwrap_or(0);
    let mut lines = who_is_who(columns);
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
                let number = if row == 0 { &columns[*i].number } else { "" };
                let margin = Text::new(Style::Bold, &format!("{indent}{number:digits$}  "));
                margin.append(text).cut(width)
            }));
        }
    }
    lines
}

/// `threads: 0 main; 0.1, 0.2 transfer`, and an empty line; nothing when no routine is known.
fn who_is_who(columns: &[Column]) -> Vec<Text> {
    if columns.iter().all(|column| column.routine.is_empty()) {
        return Vec::new();
    }
    let groups = columns.chunk_by(|a, b| a.routine == b.routine).map(|group| {
        let numbers: Vec<&str> = group.iter().map(|column| column.number.as_str()).collect();
        format!("{} {}", numbers.join(", "), group[0].routine).trim_end().to_string()
    });
    let line = format!("threads: {}", groups.collect::<Vec<_>>().join("; "));
    vec![Text::new(Style::Dim, &line), Text::default()]
}
