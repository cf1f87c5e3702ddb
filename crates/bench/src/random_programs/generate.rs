//! Small random programs in C.

use crate::predict::generate::Random;

/// A file with so many programs, of which the first argument chooses one.
pub fn file(random: &mut Random, programs: u64) -> String {
    let mut source = HEAD.to_owned();
    let mut table = String::new();
    for program in 0..programs {
        let threads = 2 + random.below(3);
        let max_statements = if threads == 2 { 4 } else { 2 };
        let mut routines = Vec::new();
        for thread in 0..threads {
            let count = 1 + random.below(max_statements);
            let body: String = (0..count).map(|_| format!("    {}\n", outer_statement(random))).collect();
            let name = format!("p{program}_{thread}");
            source += &format!("static void *{name}(void *unused) {{\n    int r = 0, e = 0;\n{body}");
            source += "    (void)r, (void)e;\n    return unused;\n}\n";
            routines.push(name);
        }
        let joins = u8::from(random.below(6) > 0);
        table += &format!("    {{{threads}, {joins}, {{{}}}}},\n", routines.join(", "));
    }
    format!("{source}static const struct program programs[] = {{\n{table}}};\n{TAIL}")
}

/// A statement, or one that holds others.
fn outer_statement(random: &mut Random) -> String {
    let (place, value) = (random.below(2), random.below(2));
    let inner = statement(random);
    match random.below(12) {
        0 | 1 => {
            format!("pthread_mutex_lock(&mutex[{place}]); {inner} pthread_mutex_unlock(&mutex[{place}]);")
        }
        2 => format!(
            "if (!pthread_mutex_trylock(&mutex[{place}])) {{ {inner} pthread_mutex_unlock(&mutex[{place}]); }}"
        ),
        3 => format!(
            "pthread_mutex_lock(&mutex[0]); if (!plain[0]) pthread_cond_wait(&condition, &mutex[0]); {inner} \
             pthread_mutex_unlock(&mutex[0]);"
        ),
        4 => "sem_wait(&semaphore);".to_owned(),
        5 | 6 => format!("if (r == {value}) {{ {inner} }}"),
        7 => format!("while (atomic_load(&v[{place}]) != {value});"),
        8 => format!("while (atomic_exchange(&v[{place}], 1)); {inner} atomic_store(&v[{place}], 0);"),
        _ => inner,
    }
}

fn statement(random: &mut Random) -> String {
    let (place, value, other) = (random.below(2), random.below(2), random.below(2));
    match random.below(13) {
        0 | 1 => format!("r = atomic_load(&v[{place}]);"),
        2 | 3 => format!("atomic_store(&v[{place}], {value});"),
        4 => format!("r = atomic_fetch_add(&v[{place}], 1);"),
        5 => format!("r = atomic_exchange(&v[{place}], {value});"),
        6 => format!("e = {value}; r = atomic_compare_exchange_strong(&v[{place}], &e, {other});"),
        7 => format!("plain[{place}] = {value};"),
        8 => format!("r = plain[{place}];"),
        9 => "sem_post(&semaphore);".to_owned(),
        10 => "r = sem_trywait(&semaphore);".to_owned(),
        11 => "pthread_cond_signal(&condition);".to_owned(),
        _ => "pthread_cond_broadcast(&condition);".to_owned(),
    }
}

const HEAD: &str = r"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int v[2];
static volatile int plain[2];
static pthread_mutex_t mutex[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
struct program {
    int threads, joins;
    void *(*routines[4])(void *);
};
";

const TAIL: &str = r"
int main(int count, char **arguments) {
    const struct program *program = &programs[count > 1 ? atoi(arguments[1]) : 0];
    pthread_t threads[4];
    for (int i = 0; i < program->threads; i++)
        pthread_create(&threads[i], 0, program->routines[i], 0);
    for (int i = 0; i < program->threads && program->joins; i++)
        pthread_join(threads[i], 0);
    return 0;
}
";
