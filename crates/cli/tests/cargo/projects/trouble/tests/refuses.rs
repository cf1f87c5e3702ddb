//! A program with a harness of its own, which fails before it starts a thread.

fn main() {
    std::process::exit(3);
}
