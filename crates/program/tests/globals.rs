//! Names of variables with static storage.

mod support;

use std::process::Command;

use support::{Workspace, display, open, program};

/// Protects the path through arrays, structures, unions, qualifiers and typedefs of C.
#[test]
fn c_variables_are_named_down_to_the_field() {
    let source = r#"
        #include <pthread.h>
        #include <stdatomic.h>
        struct account { int id; int amount; };
        typedef struct account account_t;
        account_t accounts[3];
        volatile int grid[2][3];
        struct { struct { int head; int items[4]; } ring; pthread_mutex_t lock; } buffer;
        union { struct { short low, high; } half; int whole; } word;
        struct outer { int before; union { int left; float right; }; struct { int inner; }; } anonymous;
        const struct outer *pointer = &anonymous;
        struct { int plain; unsigned first : 4, second : 12; } bits;
        _Atomic int hits;
        struct { int length; char data[]; } flexible = { 4, "abc" };
        int next(void) { static int counter; return ++counter; }
        int other(void) { static int counter; return ++counter; }
        int main(void) { return next() + other(); }
    "#;
    let (_workspace, program) = program("gcc", "-g -O0", "globals.c", source);
    let shown = |symbol, offset| display(&program, symbol, offset);
    assert_eq!(shown("accounts", 0), "accounts[0].id");
    assert_eq!(shown("accounts", 12), "accounts[1].amount");
    assert_eq!(shown("grid", 16), "grid[1][1]");
    assert_eq!(shown("buffer", 12), "buffer.ring.items[2]");
    assert_eq!(shown("buffer", 24), "buffer.lock");
    assert_eq!(shown("buffer", 28), "buffer.lock", "what the C library keeps in a mutex is not shown");
    assert_eq!(shown("word", 2), "word.half.high");
    assert_eq!(shown("anonymous", 4), "anonymous.left");
    assert_eq!(shown("anonymous", 8), "anonymous.inner");
    assert_eq!(shown("pointer", 0), "pointer");
    assert_eq!(shown("bits", 4), "bits.first");
    assert_eq!(shown("bits", 5), "bits.second");
    assert_eq!(shown("hits", 0), "hits");
    assert_eq!(shown("flexible", 6), "flexible.data[2]");
    assert_eq!(shown("counter@globals.c", 0), "counter", "the number of a static local is the compiler's");
    assert_eq!(shown("counter@globals.c#2", 0), "counter");
}

/// Protects scopes, bases and static members of C++, and that the library's insides stay inside.
#[test]
fn cplusplus_variables_have_their_scope() {
    let source = r#"
        #include <array>
        #include <atomic>
        #include <mutex>
        #include <string>
        #include <utility>
        namespace bank { int total; namespace { int hidden; } struct Empty {}; }
        struct Base { int kept; };
        struct Account : bank::Empty, Base { int amount; static int opened; int history[2]; };
        int Account::opened = 1;
        Account savings;
        std::atomic<int> hits;
        std::atomic<Base> snapshot;
        struct Guarded { int before; std::mutex mutex; std::array<Account, 2> accounts; } guarded;
        std::pair<int, int> both;
        std::string text;
        int next() { static int counter; return ++counter; }
        int main() { return next() + bank::hidden++ + bank::total; }
    "#;
    let (_workspace, program) = program("g++", "-g -O0 -std=c++17", "globals.cpp", source);
    let shown = |symbol, offset| display(&program, symbol, offset);
    assert_eq!(shown("_ZN4bank5totalE", 0), "bank::total");
    assert_eq!(shown("_ZN4bank12_GLOBAL__N_16hiddenE", 0), "bank::(anonymous namespace)::hidden");
    assert_eq!(shown("_ZN7Account6openedE", 0), "Account::opened");
    assert_eq!(shown("savings", 0), "savings.kept");
    assert_eq!(shown("savings", 4), "savings.amount");
    assert_eq!(shown("savings", 12), "savings.history[1]");
    assert_eq!(shown("hits", 0), "hits");
    assert_eq!(shown("snapshot", 0), "snapshot.kept", "a type of the program is shown wherever it is");
    assert_eq!(shown("guarded", 8), "guarded.mutex");
    assert_eq!(shown("guarded", 16), "guarded.mutex");
    assert_eq!(shown("guarded", 48 + 16 + 4), "guarded.accounts[1].amount");
    assert_eq!(shown("both", 4), "both.second");
    assert_eq!(shown("_Z4textB5cxx11", 8), "text");
    assert_eq!(shown("_ZZ4nextvE7counter", 0), "next()::counter");
}

/// Protects Rust's statics: paths, tuples, and what stands behind a `Mutex`.
#[test]
fn rust_statics_are_named_through_the_library() {
    let source = r#"
        use std::sync::{Mutex, atomic::AtomicUsize};
        #[repr(C)] pub struct Config { pub level: u32, pub limits: [u32; 4] }
        #[unsafe(no_mangle)] pub static HITS: AtomicUsize = AtomicUsize::new(0);
        #[unsafe(no_mangle)] pub static CONFIG: Mutex<Config> = Mutex::new(Config { level: 1, limits: [0; 4] });
        #[unsafe(no_mangle)] pub static PAIR: (Config, u8) = (Config { level: 1, limits: [0; 4] }, 3);
        #[unsafe(no_mangle)] pub static NAME: &str = "threadbare";
        fn main() { println!("{:?} {:?} {} {NAME}", CONFIG.lock().is_ok(), HITS, PAIR.1); }
    "#;
    let (_workspace, program) = program("rustc", "-g --edition=2024", "statics.rs", source);
    assert_eq!(display(&program, "HITS", 0), "HITS");
    assert_eq!(display(&program, "CONFIG", 0), "CONFIG");
    let fields: Vec<String> = (0..28).step_by(4).map(|offset| display(&program, "CONFIG", offset)).collect();
    assert!(fields.contains(&"CONFIG.level".to_string()), "{fields:?}");
    assert!(fields.contains(&"CONFIG.limits[3]".to_string()), "{fields:?}");
    assert_eq!(display(&program, "PAIR", 4), "PAIR.0.limits[0]");
    assert_eq!(display(&program, "NAME", 8), "NAME");
}

/// Protects clips from taking one file's variable for another's, also after a rebuild that moves both.
#[test]
fn file_local_variables_of_one_name_are_told_apart() {
    let workspace = Workspace::new();
    let other = "static int shared[2]; int *theirs(void) { return shared; }";
    workspace.write(
        "a.c",
        "static int shared; int *theirs(void); int *mine(void) { return &shared; }
        int main(void) { return mine() == theirs(); }",
    );
    workspace.write("b.c", other);
    let first = open(&workspace.compile("gcc", "-g a.c b.c", "first"));
    assert_eq!(first.symbol_address("shared"), None, "to guess would be wrong half of the time");
    assert_eq!(display(&first, "shared@a.c", 0), "shared");
    assert_eq!(display(&first, "shared@b.c", 4), "shared[1]");

    workspace.write("b.c", &format!("int padding[64] = {{1}};\n{other}"));
    let second = open(&workspace.compile("gcc", "-g b.c a.c", "second"));
    assert_eq!(display(&second, "shared@b.c", 4), "shared[1]");
    assert_ne!(first.symbol_address("shared@b.c"), second.symbol_address("shared@b.c"));
}

/// Protects the fallback to symbols where debug information was removed.
#[test]
fn without_debug_information_the_symbol_is_the_name() {
    let workspace = Workspace::new();
    workspace.write("plain.cpp", "namespace bank { long total[4]; } int main() { return bank::total[0]; }");
    let executable = workspace.compile("g++", "-g plain.cpp", "program");
    workspace.run(Command::new("strip").args(["--strip-debug", "program"]));
    let program = open(&executable);
    assert_eq!(display(&program, "_ZN4bank5totalE", 0), "bank::total");
    assert_eq!(display(&program, "_ZN4bank5totalE", 8), "bank::total+8");
}

/// Protects compressed debug sections, and DWARF 4 with types in units of their own not being fatal.
#[test]
fn other_encodings_of_debug_information_are_read() {
    let source = "struct point { int x, y; } points[2]; int main(void) { return points[1].y; }";
    for flags in ["-g -gz=zlib", "-gdwarf-4", "-gdwarf-3 -gstrict-dwarf", "-g -flto"] {
        let (_workspace, program) = program("gcc", flags, "points.c", source);
        assert_eq!(display(&program, "points", 12), "points[1].y", "{flags}");
    }
}
