//! Places in the code that are found again in the next build.

mod support;

use std::collections::HashSet;
use std::process::Command;

use support::{Workspace, call, open, program};
use threadbare_program::Program;
use threadbare_trace::Site;

const BANK: &str = r#"#include <pthread.h>
#include <stdio.h>
int balance, deposits;
pthread_mutex_t lock;
void audit(int);

__attribute__((noinline)) static void note(int amount) {
    deposits += amount;
}

void deposit(int amount) {
    pthread_mutex_lock(&lock);
    balance += amount;
    note(amount);
    balance += amount;
    pthread_mutex_unlock(&lock);
    audit(balance);
    puts("done");
}

void audit(int seen) {
    if (seen < 0)
        puts("done");
}

int main(void) {
    deposit(1);
    return 0;
}
"#;

/// The same program after an hour of editing: lines above the functions, inside one, right above the line in
/// question, and lines indented.
fn edited() -> String {
    BANK.replace("int balance", "\n\n\n/* what the bank has */\nint balance")
        .replace("void deposit", "// moved\n\nvoid deposit")
        .replace("    note(amount);\n    balance", "    note(amount);\n\n    /* twice */\n        balance")
}

/// Every call of the executable's functions, by trying each address of them as a return address.
fn sites(program: &Program, functions: &[&str]) -> Vec<(u64, Site)> {
    let starts = functions.iter().filter_map(|function| program.symbol_address(function));
    let addresses = starts.flat_map(|start| start..start + 400);
    let sites = addresses.filter_map(|address| Some((address, program.site(address)?)));
    let wanted = sites.filter(|(_, site)| functions.contains(&site.function.as_str()));
    let mut seen = HashSet::new();
    wanted.filter(|(address, _)| seen.insert(*address)).collect()
}

const FUNCTIONS: [&str; 4] = ["deposit", "note", "audit", "main"];

/// Protects the whole purpose of sites: each call, in every way of linking, has one of its own and leads back
/// to itself, and its counterpart in the edited program is the call of the same text.
#[test]
fn every_call_is_found_again_after_editing() {
    let flavours = [
        "-O0",
        "-O2",
        "-O0 -fno-plt",
        "-O2 -fno-plt",
        "-O0 -no-pie",
        "-O0 -fcf-protection=full -Wl,-z,ibtplt",
        "-O0 -Wl,-z,now",
        "-O0 -fuse-ld=gold",
    ];
    for flavour in flavours {
        let flags = format!("-g -fsanitize=thread {flavour}");
        let (_before, before) = program("gcc", &flags, "bank.c", BANK);
        let (_after, after) = program("gcc", &flags, "bank.c", &edited());
        let (sites_before, sites_after) = (sites(&before, &FUNCTIONS), sites(&after, &FUNCTIONS));
        assert!(sites_before.len() > 15, "{flavour}: {sites_before:#?}");
        assert_eq!(sites_before.len(), sites_after.len(), "{flavour}");
        for ((address, site), (address_after, site_after)) in sites_before.iter().zip(&sites_after) {
            assert_eq!(before.find_site(site), Some(*address), "{flavour}: {site:?}");
            assert_eq!(after.find_site(site), Some(*address_after), "{flavour}: {site:?}");
            assert_eq!(before.find_site(site_after), Some(*address), "{flavour}: {site_after:?}");
            assert!(!site.callee.is_empty() && !site.text.is_empty(), "{flavour}: {site:?}");
        }
    }
}

/// Protects what a site says, as it is written into clips.
#[test]
fn a_site_is_readable() {
    let (_workspace, program) = program("gcc", "-g -O0 -fsanitize=thread", "bank.c", BANK);
    let second = program.site(call(&program, "deposit", "__tsan_write4", "balance += amount;", 1));
    let expected = Site {
        function: "deposit".to_string(),
        file: "bank.c".to_string(),
        line: 15,
        column: 9,
        text: "balance += amount;".to_string(),
        callee: "__tsan_write4".to_string(),
        nth: 1,
    };
    assert_eq!(second, Some(expected));
    let local = program.site(call(&program, "deposit", "note", "note(amount);", 0));
    assert_eq!(local.map(|site| site.line), Some(14));
    assert_eq!(
        program.site(program.symbol_address("deposit").unwrap_or_default()),
        None,
        "not behind a call"
    );
}

/// Protects the fallbacks: a line whose blanks or column changed is still the line; other text is not.
#[test]
fn a_site_forgives_blanks_and_columns_but_no_other_text() {
    let (_workspace, program) = program("gcc", "-g -O0 -fsanitize=thread", "bank.c", BANK);
    let address = call(&program, "deposit", "__tsan_write4", "balance += amount;", 0);
    let site = program.site(address).expect("a call has a site");
    let found = |change: fn(&mut Site)| {
        let mut changed = site.clone();
        change(&mut changed);
        program.find_site(&changed)
    };
    assert_eq!(found(|site| site.text = "balance  +=\tamount;".to_string()), Some(address));
    assert_eq!(found(|site| site.column = 3), Some(address));
    assert_eq!(found(|site| site.line = 999), Some(address));
    assert_eq!(found(|site| site.text = "balance -= amount;".to_string()), None);
    assert_eq!(found(|site| site.callee = "__tsan_write8".to_string()), None);
    assert_eq!(found(|site| site.function = "withdraw".to_string()), None);
    assert_eq!(found(|site| site.nth = 2), None);
}

/// Protects programs whose source is elsewhere: then lines and columns have to do.
#[test]
fn without_source_the_line_number_decides() {
    let workspace = Workspace::new();
    workspace.write("bank.c", BANK);
    let executable = workspace.compile("gcc", "-g -O0 -fsanitize=thread bank.c", "program");
    let with_source = open(&executable);
    let address = call(&with_source, "deposit", "__tsan_write4", "balance += amount;", 1);
    let site = with_source.site(address).expect("a call has a site");
    std::fs::remove_file(workspace.path("bank.c")).expect("the source can be removed");
    let program = open(&executable);
    let bare = program.site(address).expect("a call has a site without source");
    assert_eq!((bare.text.as_str(), bare.line, bare.column, bare.nth), ("", 15, 13, 0));
    assert_eq!(program.find_site(&bare), Some(address));
    assert_ne!(site.nth, bare.nth, "with source, equal lines count as one");
}

/// Protects static functions of one name in two files from being taken for one another.
#[test]
fn static_functions_of_one_name_are_told_apart() {
    let workspace = Workspace::new();
    let helper = "int NAME; static void step(void) { NAME++; } void run_NAME(void) { step(); }";
    workspace.write("a.c", &helper.replace("NAME", "a"));
    workspace.write("b.c", &helper.replace("NAME", "b"));
    workspace
        .write("main.c", "void run_a(void), run_b(void); int main(void) { run_a(); run_b(); return 0; }");
    let program = open(&workspace.compile("gcc", "-g -O0 -fsanitize=thread main.c a.c b.c", "program"));
    let sites = sites(&program, &["step@a.c", "step@b.c"]);
    assert_eq!(sites.iter().filter(|(_, site)| site.callee == "__tsan_write4").count(), 2);
    for (address, site) in sites {
        assert_eq!(program.find_site(&site), Some(address), "{site:?}");
        assert_eq!(site.function, format!("step@{}", site.file));
    }
}

/// Protects Rust, whose names have a hash that need not be the same in the next build.
#[test]
fn a_rust_function_is_found_under_another_hash() {
    let source = "#[inline(never)] fn shout() { println!(\"hello\"); }\nfn main() { shout(); shout(); }";
    let (workspace, program) = program("rustc", "-g --edition=2024", "hello.rs", source);
    let symbols = workspace.run(Command::new("nm").arg("program"));
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    let main = names.into_iter().find(|name| name.starts_with("_ZN5hello4main17h")).expect("a Rust main");
    let sites = sites(&program, &[main]);
    let calls = sites.iter().filter(|(_, site)| site.callee.contains("shout")).count();
    assert_eq!(calls, 2, "{sites:?}");
    for (address, site) in sites {
        let other_hash = |name: &str| match name.strip_suffix('E') {
            Some(mangled) => format!("{}0123456789abcdefE", &mangled[..mangled.len() - 16]),
            None => name.to_owned(),
        };
        let (function, callee) = (other_hash(&site.function), other_hash(&site.callee));
        assert_eq!(program.find_site(&Site { function, callee, ..site }), Some(address));
    }
}
