//! The graph of a file's code, kept in a directory from one command to the next.
//!
//! To make the graph, all code of the file is decoded. That takes seconds for a large program. A graph is found again by
//! the file's build id, which the linker makes from its contents, and by the file's length. A file without a build id is
//! decoded every time.
//!
//! What is read is checked: every block and function that is named must be there. A graph that is damaged, or from
//! another version, is made anew.
//!
//! # The format
//!
//! The magic bytes with the version, and then numbers, seven bits to a byte, the lowest first: the number of functions;
//! for each its entry, whether its address is taken, the position of its entry block, and its blocks; for each block its
//! start, its length, whether it leaves the function, its edges, and its call if it has one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::bounded;
use crate::distance::{CallBlock, CallTarget, CodeGraph, Edge, EdgeKind, FunctionBlocks};

const MAGIC: &[u8] = b"threadbare graph 1\n";
/// A graph takes about a tenth of the code.
const MAX_BYTES: u64 = 256 << 20;
/// Files in the directory, at most. The oldest ones go.
const MAX_KEPT: usize = 32;
const ENDING: &str = "graph";

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// From now on this process keeps graphs in this directory, which is the user's own. Only the first call counts.
pub fn keep_graphs_in(directory: &Path) {
    let _ = DIRECTORY.set(directory.to_owned());
}

/// The graph of the file with this build id and length: the one that is kept, or else what `make` gives, which is kept.
pub(crate) fn kept_or_made(
    build_id: Option<&[u8]>,
    length: usize,
    make: impl FnOnce() -> CodeGraph,
) -> CodeGraph {
    let path = DIRECTORY.get().zip(build_id).map(|(directory, id)| path(directory, id, length));
    let Some(path) = path else { return make() };
    if let Some(graph) = bounded::read_regular(&path, MAX_BYTES).ok().and_then(|bytes| decode(&bytes)) {
        return graph;
    }
    let graph = make();
    // Without it, the next command takes longer. That is all.
    let _ = keep(&path, &encode(&graph));
    graph
}

fn path(directory: &Path, build_id: &[u8], length: usize) -> PathBuf {
    let id: String = build_id.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    directory.join(format!("{id}-{length}.{ENDING}"))
}

/// Writes the file, whole or not at all, and removes the oldest ones.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    let unfinished = path.with_extension(format!("{}.part", process::id()));
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written?;
    let mut kept: Vec<(SystemTime, PathBuf)> = fs::read_dir(directory)?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_graph = path.extension().is_some_and(|ending| ending == ENDING);
            is_graph.then(|| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))?
        })
        .collect();
    kept.sort();
    let surplus = kept.len().saturating_sub(MAX_KEPT);
    kept.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
}

/// What kind of a call a block ends with, as numbers.
const NO_CALL: u64 = 0;
const TO_FUNCTION: u64 = 1;
const TO_THREAD: u64 = 2;
const INDIRECT: u64 = 3;
const ELSEWHERE: u64 = 4;

fn encode(graph: &CodeGraph) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let mut push = |mut number: u64| {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    };
    push(graph.functions.len() as u64);
    for (function, &is_address_taken) in graph.functions.iter().zip(&graph.is_address_taken) {
        let first = function.blocks.first().map_or(0, |&(_, block)| block);
        push(function.entry);
        push(is_address_taken.into());
        push((function.entry_block - first).into());
        push(function.blocks.len() as u64);
        for (range, block) in &function.blocks {
            push(range.start);
            push(range.end - range.start);
            push(graph.leaves[*block as usize].into());
            let edges = &graph.successors[*block as usize];
            push(edges.len() as u64);
            for edge in edges {
                push(u64::from(edge.block - first) << 1 | u64::from(edge.kind == EdgeKind::LandingPad));
            }
            let Some(call) = graph.calls.get(block) else {
                push(NO_CALL);
                continue;
            };
            let (kind, function) = match call.target {
                CallTarget::Function(callee) => (TO_FUNCTION, Some(callee)),
                CallTarget::Thread(routine) => (TO_THREAD, Some(routine)),
                CallTarget::Indirect => (INDIRECT, None),
                CallTarget::Elsewhere => (ELSEWHERE, None),
            };
            push(kind);
            function.into_iter().for_each(|function| push(function.into()));
            push(call.return_address);
        }
    }
    bytes
}

/// The graph that was encoded; `None` if this is none.
fn decode(bytes: &[u8]) -> Option<CodeGraph> {
    let mut numbers = Numbers(bytes.strip_prefix(MAGIC)?);
    let functions = numbers.count()?;
    let mut graph = CodeGraph::with_functions(functions);
    for number in 0..functions {
        let (entry, is_address_taken) = (numbers.next()?, numbers.next()? != 0);
        let (entry_block, count) = (numbers.next()?, numbers.count()?);
        let first = u32::try_from(graph.successors.len()).ok()?;
        let in_function = |block: u64| (block < count as u64).then(|| first + block as u32);
        let mut blocks = Vec::with_capacity(count);
        for block in 0..count as u64 {
            let block = in_function(block)?;
            let start = numbers.next()?;
            blocks.push((start..start.checked_add(numbers.next()?)?, block));
            graph.leaves.push(numbers.next()? != 0);
            let edges = (0..numbers.count()?).map(|_| {
                let edge = numbers.next()?;
                let kind = if edge & 1 == 0 { EdgeKind::Next } else { EdgeKind::LandingPad };
                Some(Edge { block: in_function(edge >> 1)?, kind })
            });
            graph.successors.push(edges.collect::<Option<_>>()?);
            let kind = numbers.next()?;
            let mut function = || u32::try_from(numbers.next()?).ok().filter(|&to| (to as usize) < functions);
            let target = match kind {
                NO_CALL => continue,
                TO_FUNCTION => CallTarget::Function(function()?),
                TO_THREAD => CallTarget::Thread(function()?),
                INDIRECT => CallTarget::Indirect,
                ELSEWHERE => CallTarget::Elsewhere,
                _ => return None,
            };
            graph.calls.insert(block, CallBlock { return_address: numbers.next()?, target });
        }
        let entry_block = in_function(entry_block)?;
        graph.functions.push(FunctionBlocks { entry, entry_block, blocks });
        graph.is_address_taken[number] = is_address_taken;
    }
    numbers.0.is_empty().then(|| graph.finished())
}

/// Reads numbers.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// How many of something follow. Each takes a byte at least.
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok().filter(|&count| count <= self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions: the first calls the second, and has a landing pad; a thread is started with it.
    fn graph() -> CodeGraph {
        let mut graph = CodeGraph::with_functions(2);
        let edge = |block, kind| Edge { block, kind };
        graph.functions = vec![
            FunctionBlocks {
                entry: 0x1000,
                entry_block: 1,
                blocks: vec![(0x0f00..0x0f08, 0), (0x1000..0x1234, 1)],
            },
            FunctionBlocks { entry: u64::MAX - 9, entry_block: 2, blocks: vec![(u64::MAX - 9..u64::MAX, 2)] },
        ];
        graph.successors = vec![vec![], vec![edge(1, EdgeKind::Next), edge(0, EdgeKind::LandingPad)], vec![]];
        graph.leaves = vec![true, false, true];
        graph.is_address_taken = vec![false, true];
        let call = |return_address, target| CallBlock { return_address, target };
        graph.calls = [
            (1, call(0x1234, CallTarget::Function(1))),
            (2, call(u64::MAX, CallTarget::Thread(0))),
            (0, call(0x0f08, CallTarget::Indirect)),
        ]
        .into();
        graph.finished()
    }

    #[test]
    fn what_is_kept_comes_back() {
        let bytes = encode(&graph());
        let again = decode(&bytes).expect("it is a graph");
        assert_eq!(encode(&again), bytes);
        assert_eq!(again.distances(&[0x1234], &[]), graph().distances(&[0x1234], &[]));
    }

    /// Protects the tool from files that a crash or a full disk has left, and from bits that have changed.
    #[test]
    fn damage_is_noticed_or_does_no_harm() {
        let bytes = encode(&graph());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_none(), "{length}");
        }
        for (position, bit) in (0..bytes.len()).flat_map(|position| (0..8).map(move |bit| (position, bit))) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            if let Some(graph) = decode(&damaged) {
                graph.distances(&[0x1234], &[0x1000]);
            }
        }
    }

    #[test]
    fn a_graph_is_made_once_and_old_ones_go() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let files = || fs::read_dir(directory.path()).expect("it is there").count();
        for number in 0..MAX_KEPT as u8 + 3 {
            keep(&path(directory.path(), &[number], 7), &encode(&graph())).expect("it can be written");
        }
        assert_eq!(files(), MAX_KEPT);
        let newest = path(directory.path(), &[MAX_KEPT as u8 + 2], 7);
        assert!(decode(&fs::read(newest).expect("the newest one is kept")).is_some());
    }
}
