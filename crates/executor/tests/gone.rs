//! What is used though it is gone: freed and destroyed primitives, frames that have returned.

mod support;

use std::collections::BTreeSet;

use support::{Built, Subject};
use threadbare_trace::{FailureKind, Plan};

/// A scenario of `gone.c`, the failure, the function it is in, and words of its message.
type Row = (&'static str, FailureKind, &'static str, &'static [&'static str]);

const FREED: FailureKind = FailureKind::UseAfterFree;
const DESTROYED: FailureKind = FailureKind::UseAfterDestroy;
const RETURNED: FailureKind = FailureKind::UseAfterReturn;

const ROWS: [Row; 30] = [
    (
        "freed_mutex",
        FREED,
        "use_freed_mutex",
        &["lock, 8 bytes into a freed block", "freed by thread 0 in freed_mutex"],
    ),
    ("freed_trylock", FREED, "use_freed_trylock", &["lock, 8 bytes"]),
    ("freed_timedlock", FREED, "use_freed_timedlock", &["lock, 8 bytes"]),
    ("freed_locked", FREED, "use_freed_locked", &["lock, 8 bytes"]),
    ("freed_signal", FREED, "use_freed_signal", &["notify-one, 8 bytes"]),
    ("freed_broadcast", FREED, "use_freed_broadcast", &["notify-all, 8 bytes"]),
    ("freed_wait", FREED, "use_freed_wait", &["wait, 8 bytes"]),
    ("freed_rdlock", FREED, "use_freed_rdlock", &["read-lock, 8 bytes"]),
    ("freed_wrlock", FREED, "use_freed_wrlock", &["lock, 8 bytes"]),
    ("freed_spin", FREED, "use_freed_spin", &["lock, 8 bytes"]),
    ("freed_post", FREED, "use_freed_post", &["sem-post, 8 bytes"]),
    ("freed_sem_wait", FREED, "use_freed_sem_wait", &["sem-wait, 8 bytes"]),
    ("freed_barrier", FREED, "use_freed_barrier", &["barrier-arrive, 8 bytes"]),
    ("freed_once", FREED, "use_freed_once", &["once-"]),
    ("freed_mtx", FREED, "use_freed_mtx", &["lock, 8 bytes"]),
    ("freed_cnd", FREED, "use_freed_cnd", &["notify-one, 8 bytes"]),
    ("freed_futex", FREED, "use_freed_futex", &["futex-wait, 8 bytes"]),
    (
        "destroyed_mutex",
        DESTROYED,
        "use_destroyed_mutex",
        &["lock of a mutex; destroyed by thread 0 in destroyed_mutex (gone.c:"],
    ),
    (
        "destroyed_condition",
        DESTROYED,
        "use_destroyed_condition",
        &["notify-one of a condition variable; destroyed by"],
    ),
    ("destroyed_rwlock", DESTROYED, "use_destroyed_rwlock", &["lock of a read-write lock; destroyed by"]),
    ("destroyed_spin", DESTROYED, "use_destroyed_spin", &["lock of a spin lock; destroyed by"]),
    ("destroyed_semaphore", DESTROYED, "use_destroyed_semaphore", &["sem-post of a semaphore; destroyed by"]),
    ("destroyed_barrier", DESTROYED, "use_destroyed_barrier", &["barrier-arrive of a barrier; destroyed by"]),
    ("destroyed_mtx", DESTROYED, "use_destroyed_mtx", &["lock of a mutex; destroyed by"]),
    ("destroyed_cnd", DESTROYED, "use_destroyed_cnd", &["notify-all of a condition variable; destroyed by"]),
    (
        "held",
        FailureKind::DestroyedInUse,
        "held",
        &["a mutex, while thread 0.1 holds it; used by thread 0.1 in hold"],
    ),
    (
        "waited_for",
        FailureKind::DestroyedInUse,
        "waited_for",
        &["thread 0.1 waits for it; used by thread 0.1 in await"],
    ),
    ("returned", RETURNED, "set", &["write of 4 bytes, in a function of thread 0 that has returned"]),
    ("returned_mutex", RETURNED, "lock_it", &["in a function of thread 0 that has returned"]),
    ("ended", RETURNED, "write_through", &["on the stack of thread 0.1, which has ended"]),
];

/// The plans under which a scenario fails in the way that `is_it` knows, and how it ends under the others.
fn split(subject: &mut Subject, guarded: bool) -> (Vec<Plan>, BTreeSet<String>) {
    subject.plan.max_events = 2000;
    subject.learn();
    subject.plan.guarded = guarded;
    let plans = subject.plans();
    let (failing, fine): (Vec<Plan>, Vec<Plan>) =
        plans.into_iter().partition(|plan| subject.run(plan).failure().is_some());
    let endings = fine.iter().map(|plan| support::outcome(&subject.run(plan))).collect();
    (failing, endings)
}

/// What is wrong with how `row` fails.
fn objections(built: &Built, row: &Row, guarded: bool) -> Vec<String> {
    let (scenario, kind, function, words) = row;
    let mut subject = built.scenario(scenario);
    let (failing, _) = split(&mut subject, guarded);
    let mut seen = BTreeSet::new();
    for plan in &failing {
        let trace = subject.run(plan).trace();
        let failure = trace.end.failure().expect("the plan fails");
        let message = trace.failure_message().unwrap_or_default();
        let place = trace.location(failure.at.location).frames.first();
        let place = place.map_or("", |frame| frame.function.as_str());
        if failure.kind == *kind && place == *function && words.iter().all(|word| message.contains(word)) {
            return subject.repeats_and_replays();
        }
        seen.insert(format!("{} in {place}: {message}", failure.kind));
    }
    vec![format!("{scenario}, guarded {guarded}: no schedule shows it, but {seen:?}")]
}

/// Protects every object that a primitive is given, in all the functions that take one. In a guarded run the runtime
/// itself comes to memory that is inaccessible, and says the same.
#[test]
fn what_is_gone_is_not_used() {
    let built = Built::new("gone.c");
    let objections = |row| [false, true].map(|guarded| objections(&built, row, guarded));
    let wrong: Vec<String> = ROWS.iter().flat_map(objections).flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Protects from false alarms: the same without the bug, and what looks like one.
#[test]
fn what_is_there_may_be_used() {
    const FINE: [&str; 6] =
        ["notified", "last_of_barrier", "initialised_again", "woken_late", "below_the_frame", "main_leaves"];
    let mut wrong = Vec::new();
    for (flags, guarded) in [(&["-DFIXED"][..], false), (&["-DFIXED", "-O2"], false), (&["-DFIXED"], true)] {
        let built = Built::with_flags("gone.c", flags);
        for scenario in ROWS.iter().map(|row| row.0).chain(FINE) {
            let mut subject = built.scenario(scenario);
            let (failing, endings) = split(&mut subject, guarded);
            wrong.extend(
                failing.first().map(|plan| format!("{scenario}: {:?}", subject.run(plan).trace().end)),
            );
            wrong.extend((endings.len() > 1).then(|| format!("{scenario}: {endings:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
