//! `A between B and C`: three locations in order, in two threads.

use std::collections::BTreeSet;
use std::ops::Range;

use super::SequenceError;
use crate::sequence::{Step, ThreadName, Waypoint};

/// What stands between two commas.
pub enum Element {
    Steps(Vec<Step>),
    Between { inner: Waypoint, outer: Box<[Waypoint; 2]>, range: Range<usize> },
}

/// The steps of all elements.
pub fn in_order(text: &str, elements: Vec<Element>) -> Result<Vec<Step>, SequenceError> {
    let pair = unused_variables(&elements);
    let mut steps = Vec::new();
    for element in elements {
        match element {
            Element::Steps(more) => steps.extend(more),
            Element::Between { inner, outer, range } => {
                let between = between(inner, *outer, &pair)
                    .map_err(|message| SequenceError::new(text, range, message))?;
                steps.extend(between.map(Step::Pass));
            }
        }
    }
    Ok(steps)
}

/// The three waypoints of `inner between B and C`, with their threads.
fn between(
    mut inner: Waypoint,
    [mut first, mut last]: [Waypoint; 2],
    pair: &[ThreadName; 2],
) -> Result<[Waypoint; 3], String> {
    let outer_thread = match (&first.thread, &last.thread) {
        (Some(first), Some(last)) if first != last => {
            return Err(format!("the locations around are in one thread, not in `{first}` and `{last}`"));
        }
        (named, other) => named.as_ref().or(other.as_ref()).unwrap_or(&pair[0]).clone(),
    };
    let inner_thread = inner.thread.unwrap_or_else(|| pair[1].clone());
    if inner_thread == outer_thread {
        return Err(format!("what comes between is in another thread than `{outer_thread}`"));
    }
    inner.thread = Some(inner_thread);
    first.thread = Some(outer_thread.clone());
    last.thread = Some(outer_thread);
    Ok([first, inner, last])
}

/// Two variables that the text does not have.
fn unused_variables(elements: &[Element]) -> [ThreadName; 2] {
    let waypoints = elements.iter().flat_map(|element| match element {
        Element::Steps(steps) => steps.iter().flat_map(Step::waypoints).collect::<Vec<_>>(),
        Element::Between { inner, outer, .. } => std::iter::once(inner).chain(outer.iter()).collect(),
    });
    let used: BTreeSet<&ThreadName> = waypoints.filter_map(|waypoint| waypoint.thread.as_ref()).collect();
    let mut unused = variables().filter(|variable| !used.contains(variable));
    let mut next = || unused.next().expect("a text names fewer threads than there are variables");
    [next(), next()]
}

/// `a`, `b`, …, `z`, `t27`, `t28` and so on.
pub fn variables() -> impl Iterator<Item = ThreadName> {
    let letters = (b'a'..=b'z').map(|letter| char::from(letter).to_string());
    letters.chain((27..=u32::MAX).map(|number| format!("t{number}"))).map(ThreadName::Variable)
}
