//! Memory that a program takes away from itself while the runtime still has to read what was written there.

mod support;

use support::Built;

/// Protects programs that replace or unmap memory by other means than `munmap`: the runtime reads the value of the last
/// write before the memory goes, and not after.
#[test]
fn memory_that_goes_away_is_read_before() {
    Built::new("mappings.c").check(&[
        ("mmap_fixed", &["gone"]),
        ("raw_mmap_fixed", &["gone"]),
        ("raw_munmap", &["gone"]),
        ("raw_mprotect", &["gone"]),
    ]);
}
