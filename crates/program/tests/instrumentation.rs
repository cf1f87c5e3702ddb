//! How an executable was built.

mod support;

use support::program;
use threadbare_program::Instrumentation;

/// Protects the choice of how our runtime is put in place.
#[test]
fn the_kinds_of_builds_are_told_apart() {
    let source = "int x; int main(void) { return x++; }";
    let kind = |flags: &str| program("gcc", flags, "kinds.c", source).1.instrumentation();
    assert_eq!(kind("-O0"), Instrumentation::None);
    assert_eq!(
        kind("-fsanitize=thread"),
        Instrumentation::Dynamic { soname: Some("libtsan.so.2".to_string()) }
    );
    assert_eq!(
        kind("-fsanitize=thread -s"),
        Instrumentation::Dynamic { soname: Some("libtsan.so.2".to_string()) }
    );
    assert_eq!(kind("-fsanitize=thread -static-libtsan"), Instrumentation::Static);
}
