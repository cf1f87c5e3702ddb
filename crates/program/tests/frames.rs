//! Local variables, by running a program that says where its frames and variables are.

mod support;

use std::process::Command;

use support::Workspace;
use threadbare_program::Program;

/// `probe` prints where it returns to, the stack pointer of its caller before the call (which is what its own
/// canonical frame address is) and an address. It is compiled on its own, without instrumentation.
const PROBE: &str = r#"
#include <stdio.h>
void probe(void *variable) {
    printf("probe %lx %lx %lx\n", (long)__builtin_return_address(0), (long)__builtin_dwarf_cfa(), (long)variable);
}
void print_maps(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        fputs(line, stdout);
}
"#;

const LOCALS: &str = r#"
void probe(void *variable);
void print_maps(void);
void many(int, int, int, int, int, int, int *, int);
struct order { int id; int items[3]; };
static inline __attribute__((always_inline)) void inlined(int start) {
    struct order nested = { start, { 1, 2, 3 } };
    probe(&nested.items[2]);
}
__attribute__((noipa)) int parameters(struct order large, int small) {
    probe(&large.items[1]);
    return large.id + small;
}
__attribute__((noipa)) int early(int value) {
    int first = value;
    if (value > 100) {
        probe(&first);
        return first;
    }
    int second[4] = { value };
    probe(&second[3]);
    return second[0] + first;
}
__attribute__((noipa)) void many(int a, int b, int c, int d, int e, int f, int *on_stack, int last) {
    probe(on_stack);
    probe(&last);
    (void)(a + b + c + d + e + f);
}
int main(int count, char **arguments) {
    (void)arguments;
    struct order orders[2] = { { count, { 0 } } };
    probe(&orders[1].items[0]);
    {
        long block = count;
        probe(&block);
    }
    inlined(count);
    parameters(orders[0], count);
    early(1);
    early(200);
    int passed = count;
    many(1, 2, 3, 4, 5, 6, &passed, 8);
    probe(&passed);
    print_maps();
    return 0;
}
"#;

const RUST_LOCALS: &str = r#"
unsafe extern "C" { safe fn probe(variable: *const i32); safe fn print_maps(); }
#[repr(C)] struct Order { id: i32, items: [i32; 3] }
#[inline(never)] fn work(count: i32) -> i32 {
    let orders = [Order { id: count, items: [0; 3] }, Order { id: 2, items: [count; 3] }];
    probe(&raw const orders[1].items[2]);
    let pair = (count, count + 1);
    probe(&raw const pair.1);
    std::hint::black_box(&pair).0 + std::hint::black_box(&orders)[0].id
}
fn main() { work(std::env::args().count() as i32); print_maps(); }
"#;

/// The names of what a program probed, in order, from its output.
fn probed(compiler: &str, source: &str, flags: &str) -> Vec<Option<String>> {
    let workspace = Workspace::new();
    workspace.write("probe.c", PROBE);
    workspace.write("locals", source);
    workspace.compile("gcc", "-c -g -O1 probe.c", "probe.o");
    let executable = workspace.compile(compiler, &format!("-g {flags}"), "program");
    let output = workspace.run(&mut Command::new(&executable));
    let (probes, maps): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("probe "));
    let program =
        Program::from_maps(&executable, &maps.join("\n")).expect("the program that ran can be opened");
    let names = probes.into_iter().map(|line| {
        let numbers = line.split(' ').skip(1).map(|text| i64::from_str_radix(text, 16).expect("hexadecimal"));
        let numbers: Vec<i64> = numbers.collect();
        let return_address = numbers[0].cast_unsigned();
        let frame = numbers[1] + program.cfa_from_stack_pointer(return_address)?;
        program.local(return_address, numbers[2] - frame)
    });
    names.collect()
}

/// Protects names of locals with frame pointers and without, instrumented or not. Where a parameter was passed
/// by pointer, the byte is in another frame, and has no name in this one.
#[test]
fn locals_are_named_through_the_frame() {
    let expected = [
        Some("orders[1].items[0]"),
        Some("block"),
        Some("nested.items[2]"),
        Some("large.items[1]"),
        Some("second[3]"),
        Some("first"),
        None,
        Some("last"),
        Some("passed"),
    ];
    for flags in
        ["-O0 -fsanitize=thread", "-O2 -fsanitize=thread", "-O0", "-O2", "-O2 -fno-omit-frame-pointer"]
    {
        let names = probed("gcc", LOCALS, &format!("{flags} -x c locals -x none probe.o"));
        let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
        assert_eq!(names, expected, "{flags}");
    }
}

/// Protects LLVM's way of describing frames, relative to the stack pointer or the frame pointer.
#[test]
fn rust_locals_are_named_through_the_frame() {
    for flags in ["-Copt-level=0", "-Copt-level=2", "-Cforce-frame-pointers=yes"] {
        let flags = format!("{flags} --edition=2024 locals -Clink-arg=probe.o");
        let names = probed("rustc", RUST_LOCALS, &flags);
        let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
        assert_eq!(names, [Some("orders[1].items[2]"), Some("pair.1")], "{flags}");
    }
}
