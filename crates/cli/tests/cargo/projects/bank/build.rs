//! Runs at build time: with the real `std`, and without instrumentation.

use std::sync::Mutex;

fn main() {
    assert_eq!(size_of::<Mutex<u8>>(), 8, "the build script has a lock of ours");
    // As rustix's build script asks whether to go through libc.
    assert!(std::env::var_os("CARGO_CFG_RUSTIX_USE_LIBC").is_some(), "system calls would not be seen");
    let mutex = Mutex::new(1);
    let _taken = mutex.lock().unwrap();
    println!("cargo::rustc-env=LOCKED_MUTEX={mutex:?}");
    println!("cargo::rerun-if-changed=build.rs");
}
