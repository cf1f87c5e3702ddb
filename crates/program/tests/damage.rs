//! Files that were cut short or overwritten.

mod support;

use support::Workspace;
use threadbare_program::Program;
use threadbare_trace::Site;

const SOURCE: &str = r#"
#include <vector>
struct Account { int id; int history[3]; union { int left; float right; }; };
Account accounts[3];
static void add(int amount) { accounts[1].history[2] += amount; }
int main(int count, char **) {
    std::vector<int> amounts(3, count);
    Account local = accounts[0];
    for (int amount : amounts)
        add(amount + local.id);
    return 0;
}
"#;

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    /// The next one below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// Asks everything there is to ask; what the answers are does not matter.
fn ask_everything(program: &Program, addresses: &[u64]) {
    program.instrumentation();
    program.symbol_address("accounts");
    program.symbol_address("accounts@damage.cpp#2");
    program.find_site(&Site { function: "main".to_string(), ..Site::default() });
    for &address in addresses {
        let location = program.location(address);
        program.global(address);
        program.cfa_from_stack_pointer(address);
        (-128..0).step_by(16).for_each(|offset| drop(program.local(address, offset)));
        if let Some(site) = program.site(address) {
            program.find_site(&site);
        }
        drop(location);
    }
}

/// Damages a program in a hundred ways and asks everything of what is left. Any damage is an error or a missing
/// answer: a panic, a hang or an absurd allocation fails the test.
fn survives(seed: u64, damage: fn(&mut Vec<u8>, &mut Numbers)) {
    let workspace = Workspace::new();
    workspace.write("damage.cpp", SOURCE);
    let executable = workspace.compile("g++", "-g -O1 -fsanitize=thread damage.cpp", "program");
    let intact = std::fs::read(&executable).expect("the program can be read");
    let program = support::open(&executable);
    let start = program.symbol_address("main").expect("a program has a main");
    let data = program.symbol_address("accounts").expect("the program has accounts");
    let sample: Vec<u64> = (start..start + 200).filter(|&address| program.site(address).is_some()).collect();
    let addresses = [&sample[..], &[start + 1, data, data + 24, data + 70]].concat();

    let mut numbers = Numbers(seed);
    let damaged = workspace.path("damaged");
    for _ in 0..100 {
        let mut bytes = intact.clone();
        damage(&mut bytes, &mut numbers);
        std::fs::write(&damaged, &bytes).expect("the temporary directory can be written");
        if let Ok(program) = Program::open(&damaged) {
            ask_everything(&program, &addresses);
        }
    }
}

fn change_one(bytes: &mut [u8], numbers: &mut Numbers) {
    let position = numbers.below(bytes.len());
    bytes[position] = numbers.below(256) as u8;
}

/// Protects against taking the tool down with a file that a build left half-written.
#[test]
fn a_file_that_was_cut_short() {
    survives(2024, |bytes, numbers| bytes.truncate(numbers.below(bytes.len())));
}

/// Protects against believing a damaged header, where most of what is believed stands.
#[test]
fn a_damaged_header() {
    survives(2025, |bytes, numbers| change_one(&mut bytes[..0x400], numbers));
}

/// Protects against a slip in any other part: symbols, lines, frames, code.
#[test]
fn a_byte_changed_anywhere() {
    survives(2026, |bytes, numbers| change_one(bytes, numbers));
}

/// Protects against damage in several parts that refer to each other.
#[test]
fn fifty_bytes_changed_anywhere() {
    survives(2027, |bytes, numbers| (0..50).for_each(|_| change_one(bytes, numbers)));
}
