use std::process::ExitCode;

fn main() -> ExitCode {
    threadbare::threadbare()
}
