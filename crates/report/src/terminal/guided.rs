//! What came of a sequence of locations, in words.

use threadbare_hunt::{DecidingRead, Guided, Obstacle, Verdict};

use super::view::words;

/// The verdict, and the waypoints with the threads that passed them.
pub fn text(guided: &Guided, replay_command: &str) -> String {
    let mut text = match (guided.verdict, guided.missing()) {
        (Verdict::Real, Some(_)) => "real: a run failed at the last location".to_owned(),
        (Verdict::Real, None) => "real: a run went through the sequence and failed".to_owned(),
        (Verdict::Reached, _) => "reached: a run passed all locations, and nothing failed".to_owned(),
        (Verdict::NotShown, Some(missing)) => {
            format!("not shown within the budget: no run passed {} after those before it", missing.text)
        }
        (Verdict::NotShown, None) if guided.not_tried.is_some() => "not tried".to_owned(),
        (Verdict::NotShown, None) => "not shown within the budget".to_owned(),
    };
    if !guided.name.is_empty() {
        text = format!("{}: {text}", guided.name);
    }
    if let Some(reason) = &guided.not_tried {
        text += &format!(": {reason}");
    }
    if !guided.variant.is_empty() {
        text += &format!(", with {}", guided.variant);
    }
    if guided.verdict != Verdict::Real {
        for (number, waypoint) in guided.waypoints.iter().enumerate() {
            let who = match &waypoint.thread {
                Some(thread) => format!("passed by thread {thread}"),
                None => "not passed".to_owned(),
            };
            text += &format!("\n  {}. {}: {who}", number + 1, waypoint.text);
        }
    }
    for reason in &guided.left_out {
        text += &format!("\n  left out: {reason}");
    }
    if let Some(obstacle) = &guided.obstacle {
        text += &format!("\n{}", in_the_way(obstacle));
    }
    if let Some(clip) = &guided.clip {
        text += &format!("\nreplay it with: {replay_command} {}", clip.display());
    }
    text
}

/// `the branch at a.c:51 was in the way; it depends on: first, 0 when thread 0.2 read it at a.c:49`.
fn in_the_way(obstacle: &Obstacle) -> String {
    let mut text = format!("the branch at {} was in the way", obstacle.branch);
    let read = |DecidingRead { variable, value, size, thread, location }: &DecidingRead| {
        format!("{variable}, {} when thread {thread} read it at {location}", words::value(*value, *size))
    };
    let reads: Vec<String> = obstacle.reads.iter().map(read).collect();
    if !reads.is_empty() {
        text += &format!("; it depends on {}", reads.join("; on "));
    }
    if obstacle.may_depend_on_more && !reads.is_empty() {
        text += "; and perhaps on more";
    }
    text
}
