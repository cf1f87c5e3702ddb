//! The C++ standard library's threads, locks and atomics, and the language's own ways of ending things.

mod support;

use support::Built;

#[test]
fn threads_and_locks() {
    let built = Built::new("std_threads.cpp");
    built.check(&[
        ("threads", &["xyz", "xzy", "yxz", "yzx", "zxy", "zyx"]),
        ("racing", &["1", "2"]),
        ("waiting", &["ready"]),
        ("lost", &["deadlock", "woken"]),
        ("waiting_for", &["ready", "timed out"]),
        ("any_condition", &["ready"]),
        ("timed_mutex", &["locked", "timed out"]),
        ("recursive_mutex", &["2"]),
        ("shared_mutex", &["1", "2"]),
        ("sleeping", &["30 60 0"]),
    ]);
    built.sample(&[("jthreads", &["s"]), ("scoped_lock", &["2"])]);
}

#[test]
fn exceptions_and_destructors() {
    Built::new("std_threads.cpp").check(&[
        ("exceptions", &["2 xy", "2 yx"]),
        ("uncaught", &["uncaught exception"]),
        ("not_joined", &["aborted"]),
        ("exit_destroys", &["inner outer joined"]),
        ("main_exit_destroys", &["main"]),
        ("thread_locals", &["other text main"]),
        ("statics", &["1 42"]),
        ("out_of_memory", &["x"]),
        ("static_after_main", &["locked last"]),
        ("abort_in_handler", &["aborted"]),
    ]);
}

#[test]
fn atomics() {
    let sums = &["39 15 15 swapped"];
    let built = Built::with_flags("std_atomics.cpp", &["-mcx16"]);
    built.sample(&[
        ("width8", sums),
        ("width16", sums),
        ("width32", sums),
        ("width64", sums),
        ("width128", sums),
        ("flags", &["2"]),
    ]);
    built.check(&[
        ("lost_update", &["1", "2"]),
        ("store_buffer", &["01", "10", "11"]),
        ("pointers", &["2"]),
        ("doubles", &["0.75"]),
    ]);
}

#[test]
fn waiting_on_atomics() {
    let built = Built::with_flags("std_atomics.cpp", &["-mcx16"]);
    built.sample(&[("semaphores", &["1", "2"])]);
    built.check(&[
        ("atomic_wait", &["woken"]),
        ("atomic_wait_wide", &["woken"]),
        ("handing_over", &["7"]),
        ("timed_semaphore", &["timed out"]),
        ("latches", &["2"]),
        ("barriers", &["1"]),
    ]);
}

#[test]
fn futures() {
    Built::with_flags("std_atomics.cpp", &["-mcx16"]).check(&[
        ("called_once", &["1 0"]),
        ("called_once_again", &["2 1"]),
        ("futures", &["42 1 1"]),
        ("promises", &["7 in time", "7 late"]),
        ("tasks", &["42"]),
    ]);
}
