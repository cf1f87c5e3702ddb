//! The control flow of small functions, compiled by the real compilers at all levels of optimisation.

mod support;

use std::sync::Arc;

use support::{Workspace, open, program};
use threadbare_program::Program;
use threadbare_program::flow::{BlockEnd, Callee, Flow, ModuleCode};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

fn code(program: &Program) -> ModuleCode<'_> {
    program.code().expect("an executable has code")
}

fn flow(program: &Program, name: &str) -> Arc<Flow> {
    let code = code(program);
    let entry = code.linked(program.symbol_address(name).unwrap_or_else(|| panic!("no function {name}")));
    code.flow(entry).unwrap_or_else(|| panic!("{name} has no code"))
}

/// The tables of a function: for each the number of different targets, and whether its length was guessed.
fn tables(flow: &Flow) -> Vec<(usize, bool)> {
    let table = |end: &BlockEnd| match end {
        BlockEnd::Switch(table) => Some((table.targets.len(), table.is_guessed)),
        _ => None,
    };
    flow.blocks.iter().filter_map(|block| table(&block.end)).collect()
}

fn unresolved(flow: &Flow) -> usize {
    flow.blocks.iter().filter(|block| block.end == BlockEnd::UnresolvedJump).count()
}

fn calls<'flow>(code: &ModuleCode<'flow>, flow: &'flow Flow) -> Vec<&'flow str> {
    flow.calls().filter_map(|call| code.callee_name(&call.callee)).collect()
}

const SWITCH: &str = "
    extern int printf(const char *, ...);
    volatile int sink;
    int a(void), b(void);
    int choose(int x) {
        switch (x) {
        case 10: return a();
        case 11: return sink + 3;
        case 12: sink = 4; break;
        case 13: return b() * 3;
        case 14: return printf(\"14\");
        case 15: sink = 9; return a() + b();
        case 16: return 77 - sink;
        default: return -1;
        }
        return a() - 1;
    }
    int computed(int x) {
        static void *const labels[] = {&&one, &&two, &&three};
        goto *labels[x];
        one: return a();
        two: return b() + 1;
        three: return a() + sink;
    }
    int a(void) { return sink++; }
    int b(void) { return sink--; }
    int main(int argc, char **argv) { return choose(argc) + computed(argc); }";

/// Protects the forms that jump tables have, with and without position independence.
#[test]
fn switches_are_resolved() {
    for compiler in ["gcc", "clang"] {
        if !has(compiler) {
            continue;
        }
        for flags in ["", "-fsanitize=thread", "-no-pie -fno-pie", "-fcf-protection=full"] {
            for level in LEVELS {
                let flags = format!("{level} {flags} -fno-inline");
                let (_workspace, program) = program(compiler, &flags, "switch.c", SWITCH);
                let choose = flow(&program, "choose");
                assert_eq!(tables(&choose), [(7, false)], "{compiler} {flags}");
                assert_eq!(unresolved(&choose), 0, "{compiler} {flags}");
                let reached = choose.reachable().iter().filter(|&&reached| reached).count();
                assert_eq!(reached, choose.blocks.len(), "{compiler} {flags}: everything is reached");
                let computed = flow(&program, "computed");
                assert!(tables(&computed).iter().all(|&(targets, _)| targets == 3), "{compiler} {flags}");
                assert_eq!(unresolved(&computed), 0, "{compiler} {flags}: {:?}", computed.blocks);
            }
        }
    }
}

fn has(compiler: &str) -> bool {
    std::process::Command::new(compiler).arg("--version").output().is_ok()
}

const EXCEPTIONS: &str = "
    #include <cstdio>
    #include <cstdlib>
    #include <stdexcept>
    struct Guard { ~Guard() { std::puts(\"left\"); } };
    struct Base { virtual int run(int) = 0; virtual ~Base() {} };
    struct One : Base { int run(int x) override { return x + 1; } };
    struct Two : Base { int run(int x) override { if (x > 7) throw std::runtime_error(\"x\"); return x; } };
    int guarded(Base &base, int x) {
        Guard guard;
        try { return base.run(x); } catch (const std::runtime_error &) { return 3; }
    }
    [[noreturn]] void fail(int x) { std::printf(\"%d\", x); std::abort(); }
    void fails(int x) { fail(x + 1); }
    int checked(int x) { if (x < 0) fails(x); return x * 2; }
    int main(int argc, char **) { One one; Two two; return guarded(argc > 1 ? (Base &)one : two, checked(argc)); }";

/// Protects landing pads, virtual calls, and functions that never return because what they call does not.
#[test]
fn exceptions_are_edges_and_failures_end_paths() {
    for level in LEVELS {
        for more in ["", "-fsanitize=thread"] {
            let flags = format!("{level} {more} -fno-inline -fno-optimize-sibling-calls -fno-ipa-pure-const");
            let (_workspace, program) = program("g++", &flags, "exceptions.cc", EXCEPTIONS);
            let code = code(&program);
            let guarded = flow(&program, "_Z7guardedR4Basei");
            let virtual_call = guarded.indices().find(|&block| {
                let call = guarded[block].call.as_ref();
                call.is_some_and(|call| call.callee == Callee::Indirect && call.landing_pad.is_some())
            });
            let virtual_call =
                virtual_call.unwrap_or_else(|| panic!("{flags}: the virtual call has a landing pad"));
            assert_eq!(guarded[virtual_call].successors.len(), 2, "{flags}");
            let reached = guarded.reachable();
            let catches = guarded.blocks.iter().zip(&reached).any(|(block, reached)| {
                let callee = block.call.as_ref().and_then(|call| code.callee_name(&call.callee));
                *reached && callee == Some("__cxa_begin_catch")
            });
            assert!(catches, "{flags}: the handler is reached through the landing pad");
            for (name, returns) in [("_Z4faili", false), ("_Z5failsi", false), ("_Z7checkedi", true)] {
                assert_eq!(code.may_return(flow(&program, name).entry), returns, "{flags} {name}");
            }
            let runs = code.call_graph().indirect_targets();
            for name in ["_ZN3One3runEi", "_ZN3Two3runEi"] {
                let run = flow(&program, name).entry;
                assert!(runs.contains(&run), "{flags}: {name} is in a virtual table");
            }
        }
    }
}

/// Protects parts that gcc splits off, also in a stripped program, where nothing has a name.
#[test]
fn cold_parts_belong_to_their_functions() {
    let source = "
        extern int puts(const char *); extern void abort(void);
        __attribute__((cold, noinline)) void rare(int x) { puts(\"rare\"); if (x > 5) abort(); }
        __attribute__((noinline)) int often(int x) {
            for (int i = 0; i < x; i++) if (__builtin_expect(i == 1000, 0)) { rare(i); rare(i + 1); x += 3; }
            return x + 1;
        }
        int main(int argc, char **argv) { return often(argc); }";
    let workspace = Workspace::new();
    workspace.write("cold.c", source);
    let named = open(&workspace.compile("gcc", "-O2 cold.c", "named"));
    let whole = flow(&named, "often");
    assert_eq!(whole.ranges.len(), 2, "gcc moved a part elsewhere: {whole:?}");
    let cold = whole.ranges.iter().find(|range| !range.contains(&whole.entry)).expect("two ranges").start;
    assert_eq!(code(&named).function_at(cold), Some(whole.entry));
    assert!(!code(&named).functions().contains(&cold));
    let stripped = open(&workspace.compile("gcc", "-O2 -s cold.c", "stripped"));
    let same = code(&stripped).flow(whole.entry).expect("the code is the same");
    assert_eq!((&same.ranges, &same.blocks), (&whole.ranges, &whole.blocks));
    assert_eq!(code(&stripped).function_at(cold), Some(whole.entry));
}

const THREADS: &str = "
    #include <pthread.h>
    struct item { int count; struct item *next; };
    int table[64]; struct item *head; char flags;
    void *worker(void *argument) {
        long i = (long)argument;
        table[i] += 1;
        for (struct item *item = head; item; item = item->next) if (item->count > 3) item->count--;
        if (flags) flags = 0;
        return 0;
    }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, worker, 0);
        return pthread_join(thread, 0);
    }";

/// Protects the access behind each hook, and where threads begin.
#[test]
fn hooks_announce_accesses_and_threads_have_a_first_function() {
    for compiler in ["gcc", "clang"] {
        if !has(compiler) {
            continue;
        }
        for level in LEVELS {
            let flags = format!("{level} -fsanitize=thread -pthread");
            let (_workspace, program) = program(compiler, &flags, "threads.c", THREADS);
            let code = code(&program);
            let worker = flow(&program, "worker");
            let is_hook = |name: &str| name.starts_with("__tsan_read") || name.starts_with("__tsan_write");
            let mut hooks = 0;
            for block in worker.indices() {
                let name = worker[block].call.as_ref().and_then(|call| code.callee_name(&call.callee));
                if name.is_some_and(is_hook) {
                    hooks += 1;
                    let access = code.announced_access(&worker, block);
                    let access =
                        access.unwrap_or_else(|| panic!("{compiler} {flags}: no access for {name:?}"));
                    assert!(
                        access >= worker[block].range.end || level != "-O0",
                        "the access follows its hook"
                    );
                }
            }
            assert!(hooks >= 6, "{compiler} {flags}: {:?}", calls(&code, &worker));
            let main = flow(&program, "main").entry;
            let started: Vec<u64> =
                code.call_graph().calls(main).iter().filter_map(|site| site.starts_thread_at).collect();
            assert_eq!(started, [worker.entry], "{compiler} {flags}");
            assert_eq!(code.call_graph().callers(worker.entry), [main], "{compiler} {flags}");
        }
    }
}

const LOOPS: &str = "
    volatile int sink;
    void nested(int x) {
        sink = 1;
        if (x > 3) { sink = 2; if (sink > 4) sink = 5; }
        sink = 6;
    }
    void endless(int x) { if (x > 3) for (;;) sink = 7; sink = 8; }
    int main(int argc, char **argv) { nested(argc); endless(argc); return 0; }";

/// Protects control dependence: what is behind a branch depends on it, what follows the join does not, and an endless
/// loop depends on the branch that leads to it.
#[test]
fn blocks_depend_on_the_branches_that_decide_them() {
    let (_workspace, program) = program("gcc", "-O0", "loops.c", LOOPS);
    let storing = |flow: &Flow, number: u64| {
        let stores = |at: iced_x86::Instruction| {
            at.try_immediate(1).is_ok_and(|value| value == number) && at.is_ip_rel_memory_operand()
        };
        flow.indices()
            .find(|&block| flow.instructions(block).any(stores))
            .expect("every number is stored once")
    };
    let nested = flow(&program, "nested");
    let depends = nested.control_dependences();
    let depends_on = |number: u64| -> Vec<_> {
        depends[storing(&nested, number).index()].iter().map(|on| on.branch).collect()
    };
    assert_eq!(depends_on(1), []);
    assert_eq!(depends_on(6), []);
    assert_eq!(depends_on(2), [nested.entry_block]);
    assert_eq!(depends_on(5), [storing(&nested, 2)]);
    let (dominators, after) = (nested.dominators(), nested.post_dominators());
    assert!(dominators.dominates(storing(&nested, 1), storing(&nested, 5)));
    assert!(!dominators.dominates(storing(&nested, 5), storing(&nested, 6)));
    assert!(after.dominates(storing(&nested, 6), storing(&nested, 5)));
    let endless = flow(&program, "endless");
    let depends = endless.control_dependences();
    for number in [7, 8] {
        let on: Vec<_> = depends[storing(&endless, number).index()].iter().map(|on| on.branch).collect();
        assert_eq!(on, [endless.entry_block], "{number}");
    }
}
