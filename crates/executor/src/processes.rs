//! The memory of a process and of its child processes.

use std::fs::read_to_string;

/// Whether `process` and its descendants together use more than `limit` bytes of memory.
pub fn use_more_than(limit: u64, process: u32) -> bool {
    if process == 0 {
        return false;
    }
    let all = with_descendants(process);
    let resident = all.iter().map(|&process| resident(process)).sum::<u64>();
    // Processes share pages, so the sum may be too much. To know better takes the kernel longer.
    resident > limit
        && (all.len() == 1 || all.iter().map(|&process| proportional(process)).sum::<u64>() > limit)
}

fn with_descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(&process) = all.get(next) {
        let children = read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        next += 1;
    }
    all
}

fn resident(process: u32) -> u64 {
    let pages = read_to_string(format!("/proc/{process}/statm"))
        .ok()
        .and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * 4096
}

/// Resident memory, with each page divided by the number of processes that share it.
fn proportional(process: u32) -> u64 {
    let text = read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or_else(|| resident(process), |kilobytes| kilobytes << 10)
}
