//! Stack traces that somebody took: gdb's `bt` and `thread apply all bt`, or a backtrace without a report.

use std::collections::BTreeMap;

use super::lines::Stack;
use super::{single, user_code};
use crate::sequence::{Step, Warning, Waypoint};

/// All threads at the same time, or one location if there is one stack.
pub fn warning(stacks: &[Stack]) -> Option<Warning> {
    let stacks = one_for_each_thread(stacks);
    let working = stacks.iter().filter(|stack| !user_code::is_joining(&stack.frames));
    let mut waypoints: Vec<Waypoint> = working.filter_map(|stack| waypoint(stack)).collect();
    if waypoints.len() < 2 && !stacks.iter().any(|stack| signal(stack).is_some()) {
        waypoints = stacks.iter().filter_map(|stack| waypoint(stack)).collect();
    }
    let count = waypoints.len();
    let message = match stacks.iter().find_map(|stack| signal(stack)) {
        Some(signal) => signal.to_owned(),
        None if count == 1 => "a stack trace".to_owned(),
        None => format!("stack traces of {count} threads"),
    };
    let step = Step::together(waypoints)?;
    let rule = if count == 1 { "stack trace" } else { "stack traces" };
    Some(Warning::new(rule, &message, None, single(step)))
}

fn waypoint(stack: &Stack) -> Option<Waypoint> {
    // A numbered list in the output of a program is no stack.
    let is_stack = stack.frames.iter().any(|frame| frame.line > 0 || !frame.module.is_empty());
    if is_stack { user_code::waypoint(&stack.frames, None) } else { None }
}

/// What gdb says a thread was stopped by: `Thread 2 "crash" received signal SIGSEGV, Segmentation fault.`
fn signal(stack: &Stack) -> Option<&str> {
    let lines = stack.heading.iter().map(String::as_str);
    lines
        .rev()
        .find(|line| line.contains(" received signal ") || line.starts_with("Program terminated with signal"))
}

/// The last stack of each thread that has a number. Without numbers, all stacks.
fn one_for_each_thread(stacks: &[Stack]) -> Vec<&Stack> {
    let mut by_number: BTreeMap<u32, &Stack> = BTreeMap::new();
    for stack in stacks {
        let mut numbers = stack.heading.iter().filter_map(|line| thread_number(line));
        if let Some(number) = numbers.next_back() {
            by_number.insert(number, stack);
        }
    }
    if by_number.is_empty() { stacks.iter().collect() } else { by_number.into_values().collect() }
}

/// The number in `Thread 2 (Thread 0x7ffff7dd16c0 (LWP 31518) "crash"):` and `[Switching to thread 2 (…)]`.
fn thread_number(line: &str) -> Option<u32> {
    let after = line.strip_prefix("Thread ").or_else(|| line.strip_prefix("[Switching to thread "))?;
    after.split([' ', '"', '(']).next()?.parse().ok()
}
