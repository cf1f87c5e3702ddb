//! Split DWARF, and programs without debug information.

mod support;

use std::fs;
use std::process::Command;

use support::{Workspace, call, display, open};
use threadbare_program::DebugExtent;

const SOURCE: &str = r#"
    struct account { int id; int amount; };
    static struct account accounts[2];
    __attribute__((noinline)) static void touch(int *p) { *p = 1; }
    static inline __attribute__((always_inline)) void inner(void) {
        touch(&accounts[1].amount);
    }
    int main(void) { inner(); return accounts[0].id; }
"#;

/// What is known of a program: a variable by its field, and the frames of a call, inlined ones first.
fn knows(program: &threadbare_program::Program) -> (String, Vec<(String, u32)>) {
    let at = call(program, "main", "touch", "touch(&accounts[1].amount);", 0);
    let frames = program.location(at).frames;
    let frames = frames.into_iter().map(|frame| (frame.function, frame.line)).collect();
    (display(program, "accounts", 12), frames)
}

/// Protects the names of variables and inlined frames of programs whose debug information is beside them.
#[test]
fn split_debug_information_is_read() {
    let workspace = Workspace::new();
    workspace.write("split.c", SOURCE);
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let whole = open(&workspace.compile("gcc", &format!("{version} -O1 split.c"), "whole"));
        let program = workspace.compile("gcc", &format!("{version} -gsplit-dwarf -O1 split.c"), "split");
        let split = open(&program);
        assert_eq!(knows(&split), knows(&whole), "{version}");
        assert_eq!(knows(&split).1[0], ("inner".to_owned(), 6), "{version}");
        assert_eq!(split.debug_extent(), DebugExtent::Present);

        // Moved together with its file.
        fs::create_dir_all(workspace.path("moved")).expect("a directory");
        let file = fs::read_dir(workspace.path("")).expect("the directory").find_map(|entry| {
            let path = entry.expect("an entry").path();
            path.extension().is_some_and(|extension| extension == "dwo").then_some(path)
        });
        let file = file.expect("gcc has written a .dwo file");
        let moved = workspace.path("moved/split");
        let moved_file = workspace.path("moved").join(file.file_name().expect("a name"));
        fs::rename(&program, &moved)
            .and_then(|()| fs::rename(&file, &moved_file))
            .expect("files can be moved");
        assert_eq!(knows(&open(&moved)), knows(&whole), "{version}, moved");

        // Without it, or with that of another build, there is nothing to read, and that is said.
        fs::remove_file(&moved_file).expect("the file is there");
        fs::copy(&moved, workspace.path("alone")).expect("a program can be copied");
        let alone = open(&workspace.path("alone"));
        assert!(
            matches!(alone.debug_extent(), DebugExtent::SplitMissing(path) if path.ends_with(file.file_name().expect("a name")))
        );
        fs::write(&moved_file, "not an object file").expect("a file can be written");
        fs::copy(&moved, workspace.path("moved/other")).expect("a program can be copied");
        assert!(matches!(open(&workspace.path("moved/other")).debug_extent(), DebugExtent::SplitMissing(_)));
        fs::remove_dir_all(workspace.path("moved")).expect("the directory is there");
    }
}

/// The same for a package of all those files.
#[test]
fn packed_debug_information_is_read() {
    let workspace = Workspace::new();
    workspace.write("split.c", SOURCE);
    let program = workspace.compile("gcc", "-gdwarf-4 -gsplit-dwarf -O1 split.c", "split");
    workspace.run(Command::new("dwp").args(["-e", "split", "-o", "split.dwp"]));
    let known = knows(&open(&program));
    for entry in fs::read_dir(workspace.path("")).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(path).expect("the file is there");
        }
    }
    // Another file, because what was read of the first is kept.
    fs::copy(&program, workspace.path("copy")).expect("a program can be copied");
    fs::rename(workspace.path("split.dwp"), workspace.path("copy.dwp")).expect("a package can be moved");
    let packed = open(&workspace.path("copy"));
    assert_eq!(knows(&packed), known);
    assert_eq!(packed.debug_extent(), DebugExtent::Present);
}

/// Protects the hint at -g: what the compiler's own files bring along does not count.
#[test]
fn a_program_without_debug_information_is_known() {
    let workspace = Workspace::new();
    workspace.write("plain.c", SOURCE);
    for (flags, expected) in [
        ("-fsanitize=thread", DebugExtent::None),
        ("", DebugExtent::None),
        ("-g -fsanitize=thread", DebugExtent::Present),
        ("-g1", DebugExtent::Present),
    ] {
        let program =
            open(&workspace.compile("gcc", &format!("{flags} plain.c"), &format!("p{}", flags.len())));
        assert_eq!(program.debug_extent(), expected, "{flags}");
    }
}
