//! Turns events into rows: the lines that a thread executed, with what it read and wrote there.

use threadbare_trace::{
    End, Event, EventKind, Failure, FailureKind, Outcome, Pending, ThreadIndex, TracePlace,
};

use super::stretch::{Stretch, stretches};
use super::words::{self, Detail};
use threadbare_hunt::user_code::{UserCode, UserLine};

/// A run with more stretches than this is shown without its middle.
const MAX_STRETCHES: usize = 60;
const FIRST_STRETCHES: usize = 5;
const LAST_STRETCHES: usize = 40;
/// Of a livelock fewer stretches are shown, because they repeat.
const LAST_STRETCHES_OF_LIVELOCK: usize = 12;

/// A stretch with more rows than this is shown without its middle.
const MAX_ROWS: usize = 12;
const FIRST_ROWS: usize = 3;
const LAST_ROWS: usize = 4;
/// Of the rows in the middle, this many telling ones are shown too, the last ones.
const TELLING_ROWS: usize = 2;

/// Of the details of a row, this many are shown at each end.
const OUTER_DETAILS: usize = 2;

/// A piece of the interleaving, from top to bottom.
#[derive(Clone, Debug)]
pub enum Block<'a> {
    /// What threads did: one thread for a stretch of the run, several for how they all stand at its end.
    Cells(Vec<Cell<'a>>),
    /// So many switches are not shown.
    LeftOut(usize),
}

/// What one thread did.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    pub thread: ThreadIndex,
    pub rows: Vec<Row<'a>>,
    /// See [`Stretch::interrupted`].
    pub interrupted: bool,
}

#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub head: Head<'a>,
    /// Each with the number of times it happened in a row.
    pub details: Vec<(Detail, usize)>,
    /// A wait timed out here, or the thread panicked and the run went on.
    is_telling: bool,
    /// Why the run failed, if it failed here.
    pub failure: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Head<'a> {
    Line(UserLine<'a>),
    /// Something that has no line.
    Note(String),
    /// So many rows are not shown.
    LeftOut(usize),
}

impl Head<'_> {
    fn is_same(&self, other: &Head<'_>) -> bool {
        match (self, other) {
            (Head::Line(a), Head::Line(b)) => a.is_line_of(b),
            (Head::Note(a), Head::Note(b)) => a == b,
            _ => false,
        }
    }
}

impl<'a> Row<'a> {
    fn new(head: Head<'a>) -> Row<'a> {
        Row { head, details: Vec::new(), is_telling: false, failure: None }
    }

    fn add(&mut self, detail: Detail) {
        match self.details.last_mut().filter(|(last, _)| *last == detail) {
            Some((_, times)) => *times += 1,
            None => self.details.push((detail, 1)),
        }
    }

    fn shorten(&mut self) {
        let max_details = 2 * OUTER_DETAILS + 1;
        if self.details.len() > max_details {
            let middle = OUTER_DETAILS..self.details.len() - OUTER_DETAILS;
            let left_out = format!("⋮ {} more", middle.len());
            self.details.splice(middle, [(left_out.as_str().into(), 1)]);
        }
    }
}

impl Cell<'_> {
    /// The thread is only seen to begin and end.
    pub fn is_idle(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.head, Head::Note(_)) && row.details.is_empty())
    }
}

/// The whole interleaving, short enough to be read.
pub fn blocks<'a>(code: &UserCode<'a>) -> Vec<Block<'a>> {
    let foreign = code.foreign_threads();
    let mut stretches = stretches(code.trace);
    stretches.retain(|stretch| !foreign.contains(&stretch.thread));
    let cells = |stretches: &[Stretch]| -> Vec<Block<'a>> {
        stretches.iter().map(|stretch| Block::Cells(vec![cell(code, stretch)])).collect()
    };
    let mut blocks = if stretches.len() <= MAX_STRETCHES {
        cells(&stretches)
    } else {
        let is_livelock = code.trace.end.failure_kind() == Some(FailureKind::Livelock);
        let last = if is_livelock { LAST_STRETCHES_OF_LIVELOCK } else { LAST_STRETCHES };
        let left_out = stretches.len() - FIRST_STRETCHES - last;
        let mut blocks = cells(&stretches[..FIRST_STRETCHES]);
        blocks.push(Block::LeftOut(left_out));
        blocks.extend(cells(&stretches[FIRST_STRETCHES + left_out..]));
        blocks
    };
    add_end(code, &mut blocks);
    for cell in blocks.iter_mut().filter_map(as_cells).flatten() {
        shorten(cell);
    }
    blocks
}

fn as_cells<'b, 'a>(block: &'b mut Block<'a>) -> Option<&'b mut Vec<Cell<'a>>> {
    match block {
        Block::Cells(cells) => Some(cells),
        Block::LeftOut(_) => None,
    }
}

fn cell<'a>(code: &UserCode<'a>, stretch: &Stretch) -> Cell<'a> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let events = &code.trace.events[stretch.events.clone()];
    let is_noise = |event: &&Event| match event.kind {
        EventKind::Begin | EventKind::End => false,
        EventKind::Failure => ends_with(code, event),
        kind => kind.is_silent() || code.is_foreign(event.location, event.stack),
    };
    for event in events.iter().filter(|event| !is_noise(event)) {
        let head = head(code, event);
        if rows.last().is_none_or(|last| !last.head.is_same(&head)) {
            rows.push(Row::new(head));
        }
        let Some(row) = rows.last_mut() else { continue };
        row.is_telling |=
            matches!(event.outcome, Outcome::TimedOut | Outcome::Early) || event.kind == EventKind::Failure;
        if let Some(detail) = words::detail(code, event) {
            row.add(detail);
        }
    }
    Cell { thread: stretch.thread, rows, interrupted: stretch.interrupted }
}

/// The failure that `event` records is the one that ended the run.
fn ends_with(code: &UserCode<'_>, event: &Event) -> bool {
    let failure = code.trace.end.failure();
    failure.is_some_and(|failure| (failure.at.thread, failure.at.location) == (event.thread, event.location))
}

fn head<'a>(code: &UserCode<'a>, event: &Event) -> Head<'a> {
    match event.kind {
        EventKind::Begin => Head::Note("begins".into()),
        EventKind::End => Head::Note("ends".into()),
        kind => match code.of(event) {
            Some(place) => Head::Line(place),
            None if kind == EventKind::Exit => Head::Note("exits".into()),
            None => Head::Note(words::nameless(code, event)),
        },
    }
}

fn shorten(cell: &mut Cell<'_>) {
    cell.rows.iter_mut().for_each(Row::shorten);
    if cell.rows.len() > MAX_ROWS {
        let last = cell.rows.split_off(cell.rows.len() - LAST_ROWS);
        let middle = cell.rows.split_off(FIRST_ROWS);
        let telling = middle.iter().filter(|row| row.is_telling).count();
        let mut untold = telling.saturating_sub(TELLING_ROWS);
        for row in middle {
            let is_shown = row.is_telling && untold == 0;
            untold -= usize::from(row.is_telling && !is_shown);
            match cell.rows.last_mut() {
                _ if is_shown => cell.rows.push(row),
                Some(Row { head: Head::LeftOut(rows), .. }) => *rows += 1,
                _ => cell.rows.push(Row::new(Head::LeftOut(1))),
            }
        }
        cell.rows.extend(last);
    }
}

/// Marks where the run ended: the line that failed, or where each thread waits.
fn add_end<'a>(code: &UserCode<'a>, blocks: &mut Vec<Block<'a>>) {
    match &code.trace.end {
        End::Failed(Failure { kind: FailureKind::Deadlock, .. }) => {
            let waiting = waiting(code);
            if !waiting.is_empty() {
                blocks.push(Block::Cells(waiting));
            }
        }
        End::Failed(Failure { kind: FailureKind::Livelock, .. }) => {}
        End::Failed(Failure { kind: FailureKind::DataRace, at, .. }) => {
            for &Pending { thread, location, stack, .. } in code.trace.racing() {
                if thread != at.thread {
                    add_failure(code, blocks, &TracePlace { thread, location, stack });
                }
            }
            add_failure(code, blocks, at);
        }
        End::Failed(Failure { at, .. }) | End::Unsupported { at, .. }
            if !at.location.is_none() || code.of_failure(at).is_some() =>
        {
            add_failure(code, blocks, at);
        }
        _ => {}
    }
}

fn waiting<'a>(code: &UserCode<'a>) -> Vec<Cell<'a>> {
    let foreign = code.foreign_threads();
    let blocked = code.trace.pending.iter().filter(|pending| pending.blocked);
    let blocked = blocked.filter(|pending| !foreign.contains(&pending.thread));
    let cell = blocked.map(|pending| {
        let place = code.find(pending.location, pending.stack);
        let mut row = Row::new(place.map_or_else(|| Head::Note(words::NO_LINE.into()), Head::Line));
        row.failure = Some(words::waiting(code, pending));
        Cell { thread: pending.thread, rows: vec![row], interrupted: false }
    });
    cell.collect()
}

fn add_failure<'a>(code: &UserCode<'a>, blocks: &mut Vec<Block<'a>>, at: &TracePlace) {
    let thread = at.thread;
    let place = code.of_failure(at);
    let location = code.trace.locations.get(at.location.index()).filter(|known| !known.frames.is_empty());
    let nameless = || location.map_or_else(|| words::NO_LINE.into(), ToString::to_string);
    let mut row = Row::new(place.map_or_else(|| Head::Note(nameless()), Head::Line));
    row.failure = Some(code.trace.end_text());
    let last_cell = blocks.last_mut().and_then(as_cells).and_then(|cells| cells.last_mut());
    let Some(cell) = last_cell.filter(|cell| cell.thread == thread) else {
        blocks.push(Block::Cells(vec![Cell { thread, rows: vec![row], interrupted: false }]));
        return;
    };
    match cell.rows.last_mut().filter(|last| last.head.is_same(&row.head)) {
        Some(last) => last.failure = row.failure,
        None => cell.rows.push(row),
    }
}
