//! Gives the library the name that programs built with `gcc -fsanitize=thread` look for, and binds its calls of its own
//! functions to itself. Otherwise a program with a function of the same name would get them.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtsan.so.2");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo::rerun-if-changed=build.rs");
}
