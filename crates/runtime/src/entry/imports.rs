//! Binds the runtime's imports to the system's libraries, whatever the program has under the same names.
//!
//! The loader looks for a symbol in the program first. A program may have a function `send` of its own, or a variable.
//! So every import of this library is bound again: to the definition that the loader would find if it began its search
//! with this library, and looked at none but the system's. The same is done for the unwinder, which works for the
//! runtime too. Symbols that this library exports are bound when it is linked (`-Bsymbolic`).

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::libraries::{self, Definition, Library};
use super::modules;
use crate::os::system;

/// Binds them all, once. Functions of ours may be called before [`crate::initialise`]: by constructors of libraries
/// that do not know of this one.
pub fn bind() {
    static BOUND: AtomicBool = AtomicBool::new(false);
    if BOUND.swap(true, Ordering::Relaxed) {
        return;
    }
    libraries::ours_and_behind().take(1).for_each(bind_library);
    libraries::ours_and_behind()
        .filter(|library| library.is_named(modules::UNWINDER_NAME))
        .for_each(bind_library);
}

/// Binds the imports of one library.
fn bind_library(library: Library) {
    let Some((start, len)) = library.read_only_pages() else { return };
    let allow = |access: i32| {
        // SAFETY: the loader's tables of this library, which nobody but the loader and this function writes to.
        unsafe { system::call(libc::SYS_mprotect, [start, len, access as u64, 0, 0, 0]) }
    };
    allow(libc::PROT_READ | libc::PROT_WRITE);
    for relocation in library.relocations() {
        bind_slot(library, relocation);
    }
    allow(libc::PROT_READ);
}

/// Binds the import that a relocation is for, if it is for one. Imports without a version are left alone: all that
/// there are may be missing.
fn bind_slot(library: Library, relocation: &libc::Elf64_Rela) {
    const R_X86_64_64: u32 = 1;
    const R_X86_64_GLOB_DAT: u32 = 6;
    const R_X86_64_JUMP_SLOT: u32 = 7;
    let (kind, index) = (relocation.r_info as u32, (relocation.r_info >> 32) as u32);
    if !matches!(kind, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT)
        || library.symbol(index).is_none_or(|symbol| symbol.st_shndx != 0)
    {
        return;
    }
    let Some((name, version)) = library.import(index) else { return };
    let Some(Definition { address, is_data }) = find(name, Some(version)) else { return };
    let slot = library.base().wrapping_add(relocation.r_offset) as *mut u64;
    // SAFETY: the relocation names a slot of the library's, which `bind_library` has made writable.
    unsafe {
        if !(is_data && is_copy(*slot)) {
            slot.write(address.wrapping_add_signed(relocation.r_addend));
        }
    }
}

/// The program has a copy of a library's variable at this address, and everybody uses the copy.
fn is_copy(address: u64) -> bool {
    const R_X86_64_COPY: u32 = 5;
    libraries::all().take(1).any(|program| {
        let is_at = |place: u64| program.base().wrapping_add(place) == address;
        program.relocations().any(|other| other.r_info as u32 == R_X86_64_COPY && is_at(other.r_offset))
    })
}

/// The system's definition of a name. This library's own comes before those that it hides.
fn find(name: &CStr, version: Option<&CStr>) -> Option<Definition> {
    let mut libraries = libraries::ours_and_behind().filter(|library| is_system(*library));
    libraries.find_map(|library| library.find(name, version))
}

/// The system's definition of a name, behind this library's own.
pub fn find_in_system(name: &CStr, version: Option<&CStr>) -> Option<u64> {
    bind();
    let mut behind = libraries::ours_and_behind().skip(1).filter(|library| is_system(*library));
    behind.find_map(|library| library.find(name, version)).map(|found| found.address)
}

/// The first definition of a name behind this library's own, the system's or the program's.
pub fn find_behind(name: &CStr, version: Option<&CStr>) -> Option<u64> {
    bind();
    let mut behind = libraries::ours_and_behind().skip(1);
    behind.find_map(|library| library.find(name, version)).map(|found| found.address)
}

/// The definition of a name that the program would find.
pub fn find_anywhere(name: &CStr) -> Option<u64> {
    libraries::all().find_map(|library| library.find(name, None)).map(|found| found.address)
}

fn libc() -> Option<Library> {
    libraries::ours_and_behind().find(|library| library.is_named(b"libc.so"))
}

/// Where libc's code begins and ends.
pub fn code_of_libc() -> Option<(u64, u64)> {
    libc()?.code()
}

/// libc has all functions of the system, those for threads as well.
pub fn is_one_libc() -> bool {
    libc().is_some_and(|libc| libc.find(c"pthread_create", Some(c"GLIBC_2.34")).is_some())
}

fn is_system(library: Library) -> bool {
    modules::SYSTEM_NAMES.iter().any(|name| library.is_named(name.as_bytes()))
}
