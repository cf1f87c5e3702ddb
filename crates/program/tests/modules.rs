//! Programs with shared objects, as loaded.

mod support;

use std::process::Command;

use support::Workspace;
use threadbare_program::Program;

const LIBRARY: &str = "int counter; int count(void) { return ++counter; }";
const MAIN: &str = r#"
#include <stdio.h>
int counter_of_main, count(void);
extern int counter;
int *where(void);
int main(void) {
    char line[4096];
    printf("at %lx %lx %lx\n", (long)&count, (long)&counter_of_main, (long)&printf);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        fputs(line, stdout);
    return 0;
}
"#;

/// Protects addresses of shared objects: lines and variables of our own, names in those of others, and which
/// of them are the user's.
#[test]
fn shared_objects_answer_at_their_addresses() {
    let workspace = Workspace::new();
    workspace.write("count.c", LIBRARY);
    workspace.write("main.c", MAIN);
    workspace.compile("gcc", "-g -fsanitize=thread -shared -fPIC count.c", "libcount.so");
    let executable = workspace.compile(
        "gcc",
        "-g -fsanitize=thread -fPIE -pie main.c -L. -lcount -Wl,-rpath,$ORIGIN",
        "program",
    );
    let output = workspace.run(&mut Command::new(&executable));
    let (first, maps) = output.split_once('\n').expect("the first line has the addresses");
    let addresses: Vec<u64> =
        first.split(' ').skip(1).map(|text| u64::from_str_radix(text, 16).expect("hexadecimal")).collect();
    let [count, counter_of_main, printf] = addresses[..] else { panic!("three addresses: {first}") };
    let program = Program::from_maps(&executable, maps).expect("the program that ran can be opened");

    assert_eq!(program.symbol_address("libcount.so!count"), Some(count));
    let frame = program.location(count + 5).frames.into_iter().next().expect("the library has lines");
    assert_eq!((frame.function.as_str(), frame.to_string().as_str()), ("count", "count.c:1"));
    let counter = program.symbol_address("libcount.so!counter").expect("the library has a variable");
    let global = program.global(counter).expect("a variable that is only in memory, not in the file");
    assert_eq!((global.symbol.as_str(), global.display.as_str()), ("libcount.so!counter", "counter"));
    let global = program.global(counter_of_main).expect("the executable's variable");
    assert_eq!(global.symbol, "counter_of_main");
    assert_eq!(
        program.location(printf + 1).frames.first().map(|frame| frame.function.is_empty()),
        Some(false)
    );
    let call = (count..count + 200).find_map(|address| Some((address, program.site(address)?)));
    let (address, site) = call.expect("the library's function calls the runtime");
    assert_eq!(program.find_site(&site), Some(address));
}
