//! What passes and what does not.

use std::process::Command;

use proptest::prelude::*;

use super::*;

fn nowhere(argument: &str) -> bool {
    compiler_argument(argument, |_| false)
}

#[test]
fn what_changes_the_program_is_harmless() {
    for argument in ["-DFIXED", "-DN=4", "-DN=-0x10UL", "-D_GNU_SOURCE", "-UNDEBUG", "-std=gnu++20", "-O2"] {
        assert!(nowhere(argument), "{argument}");
    }
    for argument in ["-Wall", "-Wno-unused", "-Werror=format", "-Wformat=2", "-march=x86-64-v2", "-lm"] {
        assert!(nowhere(argument), "{argument}");
    }
    for argument in ["-Iinclude", "-I./a", "more.c", "lib/more.cpp"] {
        assert!(compiler_argument(argument, |_| true), "{argument}");
        assert!(!nowhere(argument), "{argument} is outside");
    }
}

#[test]
fn what_names_a_program_or_code_is_not() {
    for argument in
        "-wrapper sh,-c,id -fplugin=x.so -fplugin-arg-x-y -specs=x --specs=x -B. -B -fuse-ld=x -Wl,-- \
        version -Wa,x -Wp,-DX -Wl -Wa -Wp -Xlinker -Xassembler -Xclang -mllvm @args -I@x -I=x -I- -I \
        -isystem -include -imacros -L. -lx -l:x.so -T -Tx -x -o -ox -E -S -c -M -MF -MFx -save-temps \
        -fdump-tree-all=x -aux-info -fprofile-use=x -fprofile-generate=x --coverage --sysroot=x \
        -isysroot --config=x --config -gcc-toolchain --gcc-toolchain=x -resource-dir=x -fmodules \
        -fmodule-map-file=x -fmodule-mapper=|x -ivfsoverlay -load -fpass-plugin=x -dumpdir -dumpbase -D \
        -U -DX(y)=1 -Dputs=system -DX=f() -Dfree= -Dif=0 -DX; -working-directory=x -fdiagnostics-add- \
        output=x -fsanitize=address -fno-sanitize=all -nostdlib -static-libtsan -rdynamic -z -u - -- \
        -fopenmp -flto -flto=x -fcf-protection -foffload=x -march=../x -std=../x -W../x -W- -W= x.o x.a \
        x.so x.s x.ld x"
            .split_whitespace()
            .chain(["-DX=\"id\"", "-D X", ""])
    {
        assert!(!nowhere(argument), "{argument} was accepted");
        // Nor does it help if it is a file of the project.
        let accepted = compiler_argument(argument, |_| true);
        assert!(!accepted, "{argument} was accepted inside");
    }
}

/// Every option that gcc itself lists with a value is refused when the value is a path, and none that gcc's driver
/// handles alone (they name programs, files and directories) is harmless.
#[test]
fn no_option_of_gcc_takes_a_path() {
    let list = |class: &str| {
        let output = Command::new("gcc").arg(format!("--help={class}")).output().expect("gcc starts");
        let text = String::from_utf8(output.stdout).expect("gcc prints text");
        let first = text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        first.filter(|word| word.starts_with('-')).collect::<Vec<_>>()
    };
    let all: Vec<String> = ["common", "c", "c++", "target", "optimizers", "warnings", "params"]
        .iter()
        .flat_map(|c| list(c))
        .collect();
    assert!(all.len() > 1000, "gcc lists only {}", all.len());
    for option in &all {
        let stem = option.split(['<', '[', '=']).next().unwrap_or_default();
        for value in ["=/tmp/x", "/tmp/x", "=../x", "=x.so", " x", ",x", "=|x", "=@x"] {
            assert!(!nowhere(&format!("{stem}{value}")), "{stem}{value} was accepted");
        }
    }
}

#[test]
fn cargo_is_told_what_to_build_and_nothing_else() {
    let all = |arguments: &[&str]| {
        arguments.iter().enumerate().all(|(number, argument)| cargo_argument(number, argument))
    };
    assert!(all(&["test", "--package=bank", "--lib", "--features=a,b/c", "--release"]));
    assert!(all(&[
        "build",
        "--package=bank",
        "--bin=x",
        "--all-features",
        "--no-default-features",
        "--profile=p"
    ]));
    for argument in "run --config=x --config -Zx -Z --manifest-path=x --target-dir=x --target=x -C -Cx -- \
        --package=path+file:///x --bin=../x --features=@x; --lockfile-path=x --artifact-dir=x --out- \
        dir=x --message-format=x --timings=x --jobs=1 +nightly --package="
        .split_whitespace()
        .chain(["", "--profile=a b"])
    {
        assert!(!all(&["build", argument]), "{argument} was accepted");
    }
    assert!(!all(&["run"]) && !all(&["+nightly"]) && !all(&["evil"]) && !all(&["--lib"]));
}

#[test]
fn words_numbers_and_tests_are_harmless_arguments() {
    let harmless = |argument: &str| program_argument(argument, |_| false);
    for argument in ["4", "-1", "words", "a::tests::b", "--exact", "data/in.txt", "n=4", "ünï", ""] {
        assert!(harmless(argument), "{argument}");
    }
    for argument in
        "/etc/passwd ../x a/../b x=/etc -rf --exec=x $(id) `id` a;b @x ~ ~/x %n file:///x |x - -- a//b"
            .split_whitespace()
            .chain(["a b", "a\nb", "a\0"])
    {
        assert!(!harmless(argument), "{argument} was accepted");
    }
    assert!(!program_argument("link", |_| true), "a link out of the project");
}

proptest! {
    /// What is harmless without a project names no path, holds nothing that a shell or the driver splits at, and is no
    /// option that is known to be dangerous.
    #[test]
    fn a_harmless_compiler_argument_names_nothing(argument in "-{0,2}[a-zA-Z]{1,3}[-=,:@/. a-zA-Z0-9_|;$]{0,12}") {
        if nowhere(&argument) {
            prop_assert!(!argument.contains(['/', ',', '@', '|', ';', '$', ' ']), "{}", argument);
            prop_assert!(argument.starts_with('-'), "{}", argument);
            prop_assert!(["-D", "-U", "-W", "-O", "-g", "-f", "-m", "-l", "-s", "-p", "-w", "-a", "-n"].contains(&&argument[..2]));
        }
    }

    #[test]
    fn a_harmless_program_argument_stays_inside(argument in any::<String>()) {
        if program_argument(&argument, |_| false) {
            prop_assert!(!argument.starts_with(['/', '~']) && !argument.contains(".."));
            prop_assert!(!argument.chars().any(|c| c.is_control() || c.is_whitespace() || "$`;|&<>%@\\\"'".contains(c)));
        }
    }
}
