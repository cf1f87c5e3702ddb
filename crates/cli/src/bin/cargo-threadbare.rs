use std::process::ExitCode;

fn main() -> ExitCode {
    threadbare::cargo_threadbare()
}
