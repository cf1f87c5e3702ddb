//! Gives the library the name that programs built with `gcc -fsanitize=thread` look for.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtsan.so.2");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo::rerun-if-changed=build.rs");
}
