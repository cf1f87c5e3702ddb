//! Locations behind branches that several threads decide one after another.

use crate::guided::Subject;

/// Flags that each thread sets only if it finds those of others as it wants them; some are up for a moment only.
const FLAGS: &str = "#include <pthread.h>
#include <stdatomic.h>
static atomic_int a, b, c, d, e;
static int hit;
static void *first(void *u) {
    atomic_store(&a, 1); /* raised */
    atomic_store(&a, 0);
    return u;
}
static void *second(void *u) {
    if (atomic_load(&a)) {
        atomic_store(&b, 1); /* second */
        if (atomic_load(&c) == 2)
            atomic_store(&e, 1); /* while open */
    }
    atomic_store(&b, 0);
    return u;
}
static void *third(void *u) {
    if (atomic_load(&b) && !atomic_load(&a))
        atomic_store(&c, 2); /* third */
    return u;
}
static void *fourth(void *u) {
    if (atomic_load(&c) == 2 && atomic_load(&b) == 0)
        atomic_store(&d, 3); /* fourth */
    return u;
}
static void *fifth(void *u) {
    if (atomic_load(&d) == 3)
        if (atomic_load(&e))
            hit = 1; /* last */
    return u;
}
int main(void) {
    void *(*routines[])(void *) = {fifth, fourth, third, second, first};
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
    return hit < 0;
}
";

/// An upload in parts: the network, the disk and the user take turns with semaphores and a lock. Nobody stores to
/// `flushed` in most runs.
const UPLOAD: &str = "#include <pthread.h>
#include <semaphore.h>
static sem_t slots, ready;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int sent, acknowledged, failed, cancelled, flushed, resumed, progress;
static void *network(void *u) {
    for (int part = 0; part < 3; part++) {
        sem_wait(&slots);
        pthread_mutex_lock(&m);
        if (cancelled && !resumed)
            failed++; /* fails */
        else
            sent++;
        pthread_mutex_unlock(&m);
        sem_post(&ready);
    }
    return u;
}
static void *disk(void *u) {
    for (int part = 0; part < 3; part++) {
        sem_wait(&ready);
        pthread_mutex_lock(&m);
        if (failed <= acknowledged) {
            acknowledged++;
            if (acknowledged == 2 && resumed)
                flushed = 1; /* flushes */
        }
        pthread_mutex_unlock(&m);
        sem_post(&slots);
    }
    return u;
}
static void *user(void *u) {
    pthread_mutex_lock(&m);
    if (acknowledged == 1)
        cancelled = 1; /* cancels */
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    if (failed == 1)
        resumed = 1; /* resumes */
    if (resumed && acknowledged == 7)
        progress = 7; /* never */
    pthread_mutex_unlock(&m);
    return u;
}
static void *bar(void *u) {
    pthread_mutex_lock(&m);
    if (flushed && sent == 2)
        progress = 100; /* full */
    pthread_mutex_unlock(&m);
    return u;
}
int main(void) {
    sem_init(&slots, 0, 2);
    sem_init(&ready, 0, 0);
    void *(*routines[])(void *) = {bar, user, disk, network};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, routines[i], 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// Protects what an attempt has learnt from the one before: the stores and reads that decided stay in the sequence.
#[test]
fn a_chain_of_flags_is_driven() {
    let subject = Subject::new(FLAGS);
    let all =
        ["raised", "second", "third", "while open", "fourth", "last"].map(|comment| subject.at(comment));
    for sequence in [all.join(", "), subject.at("last")] {
        let said = subject.guide(&["--through", &sequence]);
        assert_eq!(said.guided()["verdict"], "reached", "{}", said.guided());
        let replayed = subject.replay(&said.guided()["clip"]);
        assert_eq!((&replayed["runs"], &replayed["diverged_at"]), (&1.into(), &serde_json::Value::Null));
    }
}

/// Protects stores that no run came to at first: what they store to is not known to be shared.
#[test]
fn a_chain_under_locks_and_semaphores_is_driven() {
    let subject = Subject::new(UPLOAD);
    let all = ["cancels", "fails", "resumes", "flushes", "full"].map(|comment| subject.at(comment));
    let said = subject.guide(&["--through", &all.join(", ")]);
    assert_eq!(said.guided()["verdict"], "reached", "{}", said.guided());
}

#[test]
fn a_chain_without_an_end_is_not_shown() {
    let subject = Subject::new(UPLOAD);
    let said = subject.guide(&["--through", &subject.at("never"), "--budget", "400runs"]);
    let guided = said.guided();
    assert_eq!((&guided["verdict"], said.code), (&"not shown".into(), 0), "{guided}");
    assert!(
        guided["obstacle"]["branch"].as_str().is_some_and(|branch| branch.starts_with("program.c:")),
        "{guided}"
    );
}
