//! Source locations of return addresses.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Workspace, call, open, program};
use threadbare_program::{Program, ProgramError, Sources};

const INLINED: &str = r#"
int balance;
static inline __attribute__((always_inline)) void add(int amount) {
    balance += amount;
}
static inline __attribute__((always_inline)) void twice(int amount) {
    add(amount);
}
__attribute__((noinline)) void deposit(int amount) {
    twice(amount);
}
int main(int count, char **arguments) {
    (void)arguments;
    deposit(count);
    return 0;
}
"#;

/// Protects stacks of inlined calls, innermost first, with absolute files.
#[test]
fn inlined_functions_have_frames_of_their_own() {
    let (workspace, program) = program("gcc", "-g -O2 -fsanitize=thread", "inlined.c", INLINED);
    let address = call(&program, "deposit", "__tsan_write4", "balance += amount;", 0);
    let location = program.location(address);
    let frames: Vec<_> = location.frames.iter().map(|frame| (frame.function.as_str(), frame.line)).collect();
    assert_eq!(frames, [("add", 4), ("twice", 7), ("deposit", 10)]);
    assert_eq!(location.address, address);
    let file = std::fs::canonicalize(workspace.path("inlined.c")).expect("the source is there");
    assert_eq!(Path::new(&location.frames[0].file), file);
    assert_eq!(location.frames[0].column, 13);
    let sources = Sources::default();
    assert_eq!(sources.line(&location.frames[2].file, 10).as_deref(), Some("twice(amount);"));
    assert_eq!(sources.line("/no/such/file.c", 1), None);
    assert_eq!(sources.line(&location.frames[2].file, 0), None);
    assert_eq!(sources.line(&location.frames[2].file, 1000), None);
}

/// Protects readable function names.
#[test]
fn functions_are_demangled() {
    let source = "namespace bank { struct Account { int amount; void add(int more); };
        void Account::add(int more) { amount += more; } }
        int main() { bank::Account account{}; account.add(1); return account.amount; }";
    let (_workspace, program) = program("g++", "-g -O0 -fsanitize=thread", "bank.cpp", source);
    let text = "void Account::add(int more) { amount += more; } }";
    let address = call(&program, "_ZN4bank7Account3addEi", "__tsan_func_entry", text, 0);
    assert_eq!(program.location(address).frames[0].function, "bank::Account::add(int)");
}

/// Protects the last resort: a program without debug information has function names, one without symbols
/// has nothing, and neither is an error.
#[test]
fn stripped_programs_answer_with_what_is_left() {
    let workspace = Workspace::new();
    workspace.write("inlined.c", INLINED);
    let executable = workspace.compile("gcc", "-g -O2 -fsanitize=thread inlined.c", "program");
    let address = call(&open(&executable), "deposit", "__tsan_write4", "balance += amount;", 0);

    workspace.run(Command::new("strip").args(["--strip-debug", "program"]));
    let program = open(&executable);
    let frames = program.location(address).frames;
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].function.as_str(), frames[0].file.as_str(), frames[0].line), ("deposit", "", 0));
    let site = program.site(address).expect("a function with a name has sites");
    assert_eq!((site.callee.as_str(), site.line), ("__tsan_write4", 0));
    assert_eq!(program.find_site(&site), Some(address));

    workspace.run(Command::new("strip").arg("program"));
    let program = open(&executable);
    assert_eq!(program.location(address).frames, []);
    assert_eq!(program.site(address), None);
}

/// Protects addresses outside of the program, which events may well have.
#[test]
fn addresses_of_nothing_have_no_location() {
    let (_workspace, program) = program("gcc", "-g", "inlined.c", INLINED);
    for address in [0, 1, 0x1000, 0x5555_5555_3fff, 0x7fff_f7fe_0000, u64::MAX] {
        assert_eq!(program.location(address).frames, [], "{address:#x}");
        assert_eq!(program.site(address), None);
        assert_eq!(program.global(address), None);
        assert_eq!(program.local(address, -16), None);
        assert_eq!(program.cfa_from_stack_pointer(address), None);
    }
}

/// Protects the addresses that are used with layout randomisation off.
#[test]
fn executables_are_where_linux_loads_them() {
    let (_pie, pie) = program("gcc", "-pie -fPIE", "inlined.c", INLINED);
    let main = pie.symbol_address("main").expect("a program has a main");
    assert!((0x5555_5555_4000..0x5555_5556_4000).contains(&main), "{main:#x}");
    let (_fixed, fixed) = program("gcc", "-no-pie", "inlined.c", INLINED);
    let main = fixed.symbol_address("main").expect("a program has a main");
    assert!((0x40_0000..0x41_0000).contains(&main), "{main:#x}");
}

/// Protects the messages for files that are no programs.
#[test]
fn what_is_no_program_is_refused_with_its_path() {
    let workspace = Workspace::new();
    let failure = |name: &str| Program::open(&workspace.path(name)).err().map(|error| error.to_string());
    let path = |name: &str| workspace.path(name).display().to_string();
    assert_eq!(failure("absent"), Some(format!("no such file: {}", path("absent"))));
    workspace.write("text", "int main");
    let message = failure("text").expect("text is no program");
    assert!(message.starts_with(&format!("{} is not an x86-64 ELF executable: ", path("text"))), "{message}");
    workspace.write("object.c", "int x;");
    workspace.compile("gcc", "-c object.c", "object.o");
    assert!(failure("object.o").is_some_and(|message| message.ends_with("it is not linked")));
    assert!(matches!(Program::open(workspace.path("").as_path()), Err(ProgramError::NotAnExecutable { .. })));
}
