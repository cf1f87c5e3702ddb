//! Small programs, compiled with the real compiler into a directory that goes away with the test.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod sancov;

use std::path::{Path, PathBuf};
use std::process::Command;

use threadbare_program::Program;
use threadbare_trace::Site;

/// A directory with sources and what was built from them.
pub struct Workspace {
    dir: tempfile::TempDir,
}

impl Workspace {
    pub fn new() -> Workspace {
        Workspace { dir: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("the temporary directory can be written");
    }

    /// Runs a compiler here: `program` is built from the sources named in `arguments`.
    pub fn compile(&self, compiler: &str, arguments: &str, program: &str) -> PathBuf {
        let arguments = arguments.split_whitespace().chain(["-o", program]);
        self.run(Command::new(compiler).args(arguments));
        self.path(program)
    }

    /// Runs a command here that must succeed; gives what it printed.
    pub fn run(&self, command: &mut Command) -> String {
        let output = command.current_dir(self.dir.path()).output().expect("the command can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} failed: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// One source file, compiled and opened.
pub fn program(compiler: &str, flags: &str, name: &str, text: &str) -> (Workspace, Program) {
    let workspace = Workspace::new();
    workspace.write(name, text);
    let executable = workspace.compile(compiler, &format!("{flags} {name}"), "program");
    let program = open(&executable);
    (workspace, program)
}

pub fn open(executable: &Path) -> Program {
    Program::open(executable).expect("a freshly compiled program can be opened")
}

/// The return address of the `nth` call of `callee` that `function` makes from a line with this text.
pub fn call(program: &Program, function: &str, callee: &str, text: &str, nth: u32) -> u64 {
    let wanted = Site {
        function: function.to_string(),
        callee: callee.to_string(),
        text: text.to_string(),
        nth,
        ..Site::default()
    };
    program.find_site(&wanted).unwrap_or_else(|| panic!("no such call: {wanted:?}"))
}

/// What the byte `offset` into a global is called.
pub fn display(program: &Program, symbol: &str, offset: u64) -> String {
    let address = program.symbol_address(symbol).unwrap_or_else(|| panic!("no symbol {symbol}"));
    let global = program.global(address + offset).unwrap_or_else(|| panic!("nothing at {symbol}+{offset}"));
    assert_eq!((global.symbol.as_str(), global.offset), (symbol, offset), "the name leads back");
    global.display
}
