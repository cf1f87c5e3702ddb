//! What is said of a data race: both its lines, its variable, and its two threads.

use serde_json::json;

use crate::support::{json as lines_of, path, run, tool, write};

const SOURCE: &str = "#include <pthread.h>
static struct { int before, value; } shared;
static void *add(void *a) {
    shared.value = 1;
    return a;
}
static void *look(void *a) {
    return shared.value ? a : 0;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, add, 0);
    pthread_create(&u, 0, look, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
}
";

/// Protects readers of `--json` from half a race. The order does not depend on which thread came first.
#[test]
fn a_race_has_two_sides() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = write(directory.path(), "race.c", SOURCE);
    let arguments = ["--out", path(directory.path()), "--json", "--jobs", "1"];
    for seed in ["1", "2", "3", "4"] {
        let hunt = ["hunt", path(&source), "--races", "--budget", "40runs", "--seed", seed];
        let (stdout, stderr, code) = run(tool(&hunt).args(arguments));
        assert_eq!(code, 1, "{stdout}{stderr}");
        let race = &lines_of(&stdout)[0];
        let lines: Vec<_> =
            race["locations"].as_array().expect("locations").iter().map(|at| &at["line"]).collect();
        assert_eq!(lines, [4, 8], "{race}");
        assert_eq!(
            (&race["variables"], &race["threads"]),
            (&json!(["shared.value"]), &json!(["0.1", "0.2"]))
        );
        let words = "write of shared.value by thread 0.1 in add (race.c:4), \
                     read of shared.value by thread 0.2 in look (race.c:8)";
        assert_eq!(race["failure"], format!("data race: {words}"));
        let (view, ..) = run(&mut tool(&["replay", "--trust", race["clip"].as_str().expect("a clip")]));
        assert_eq!(view.matches('✗').count(), 2, "both sides are marked: {view}");
    }
    let (stdout, stderr, code) = run(tool(&["predict", path(&source)]).args(arguments));
    assert_eq!(code, 1, "{stdout}{stderr}");
    let race = &lines_of(&stdout)[0];
    let mut lines: Vec<_> = race["locations"]
        .as_array()
        .expect("locations")
        .iter()
        .filter_map(|at| at["line"].as_u64())
        .collect();
    lines.sort_unstable();
    assert_eq!((lines, &race["variables"]), (vec![4, 8], &json!(["shared.value"])), "{race}");
    assert_eq!(race["threads"].as_array().map(Vec::len), Some(2), "{race}");
}
