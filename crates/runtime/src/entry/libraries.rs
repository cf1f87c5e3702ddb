//! The loaded libraries and their symbols, read from the loader's own tables.
//!
//! A symbol that a library imports is looked up in the program first. So a program with a function or a variable named
//! `send` would take the runtime's calls of `send`, and those of `dlsym`, if it has a function of that name. Nothing
//! here calls anything that is imported: strings are compared byte by byte, and the kernel is called directly.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::os::system;

/// What the loader keeps for each library: the public part of glibc's `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: u64,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
}

/// Glibc's `struct r_debug`, up to the list of libraries.
#[repr(C)]
struct LoaderState {
    version: i32,
    libraries: *const LinkMap,
}

#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

#[repr(C)]
struct VersionDefinition {
    version: u16,
    flags: u16,
    index: u16,
    names: u16,
    hash: u32,
    first_name: u32,
    next: u32,
}

#[repr(C)]
struct VersionNeed {
    version: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}

#[repr(C)]
struct NeededVersion {
    hash: u32,
    flags: u16,
    index: u16,
    name: u32,
    next: u32,
}

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_DEBUG: u64 = 21;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERNEED: u64 = 0x6fff_fffe;

/// In a symbol's version: only who asks for that version gets the symbol.
const HIDDEN: u16 = 0x8000;
/// A symbol without a version, in a library that has versions.
const UNVERSIONED: u16 = 1;

unsafe extern "C" {
    /// This library's own dynamic section, which the linker names.
    #[link_name = "_DYNAMIC"]
    static OUR_DYNAMIC: [Dynamic; 0];
}

/// A loaded library. The loader never unloads those that a program starts with.
#[derive(Clone, Copy)]
pub struct Library(&'static LinkMap);

/// Where a library's symbol leads.
#[derive(Clone, Copy)]
pub struct Definition {
    pub address: u64,
    pub is_data: bool,
}

/// All loaded libraries, in the order in which the loader searches them. The program itself is the first.
pub fn all() -> impl Iterator<Item = Library> {
    static FIRST: AtomicPtr<LinkMap> = AtomicPtr::new(std::ptr::null_mut());
    if FIRST.load(Ordering::Relaxed).is_null() {
        let first = first_library().map_or(std::ptr::null(), std::ptr::from_ref);
        FIRST.store(first.cast_mut(), Ordering::Relaxed);
    }
    // SAFETY: the loader's list, of which only the end changes: with libraries that the program loads later.
    let first = unsafe { FIRST.load(Ordering::Relaxed).as_ref() };
    // SAFETY: the same.
    std::iter::successors(first, |library| unsafe { library.next.as_ref() }).map(Library)
}

/// This library, and then those that the loader searches after it.
pub fn ours_and_behind() -> impl Iterator<Item = Library> {
    all().skip_while(|library| !library.is_ours())
}

/// The head of the loader's list. The dynamic section of the program leads there.
fn first_library() -> Option<&'static LinkMap> {
    let headers = program_headers();
    let of_kind = |kind| headers.iter().find(|header| header.p_type == kind);
    let base =
        of_kind(libc::PT_PHDR).map_or(0, |table| (headers.as_ptr() as u64).wrapping_sub(table.p_vaddr));
    let dynamic = base.wrapping_add(of_kind(libc::PT_DYNAMIC)?.p_vaddr) as *const Dynamic;
    // SAFETY: the headers say where the section is. The loader writes to it where its state is, before any code runs.
    unsafe {
        let state = value_of(dynamic, DT_DEBUG)? as *const LoaderState;
        state.as_ref()?.libraries.as_ref()
    }
}

/// The program headers of the program, as the kernel names them.
fn program_headers() -> &'static [libc::Elf64_Phdr] {
    let (mut start, mut count) = (0, 0);
    let file = system::open_to_read(c"/proc/self/auxv");
    let mut entry = [0u64; 2];
    while system::read_words(file, &mut entry) {
        match entry[0] {
            libc::AT_PHDR => start = entry[1],
            libc::AT_PHNUM => count = entry[1],
            _ => {}
        }
    }
    system::close(file);
    match start {
        0 => &[],
        // SAFETY: the kernel has put them there, and they stay as long as the program does.
        _ => unsafe { std::slice::from_raw_parts(start as *const libc::Elf64_Phdr, count as usize) },
    }
}

/// The value of a tag.
///
/// # Safety
/// `section` is a dynamic section.
unsafe fn value_of(section: *const Dynamic, tag: u64) -> Option<u64> {
    let mut entry = section;
    // SAFETY: the caller's promise; the last entry has the tag 0.
    unsafe {
        while (*entry).tag != 0 {
            if (*entry).tag == tag {
                return Some((*entry).value);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// Both strings are the same. Written so that the compiler makes no call of `strcmp` of it.
///
/// # Safety
/// Both are strings.
unsafe fn are_same(one: *const c_char, other: *const c_char) -> bool {
    let mut i = 0;
    loop {
        // SAFETY: the caller's promise; neither has ended before.
        let (a, b) = unsafe { (one.add(i).read_volatile(), other.add(i).read_volatile()) };
        if a != b || a == 0 {
            return a == b;
        }
        i += 1;
    }
}

/// The hash of a name in the table of a library's symbols.
///
/// # Safety
/// It is a string.
unsafe fn hash_of(name: *const c_char) -> u32 {
    let (mut hash, mut at) = (5381u32, name.cast::<u8>());
    // SAFETY: the caller's promise; it has not ended before.
    unsafe {
        while at.read_volatile() != 0 {
            hash = hash.wrapping_mul(33).wrapping_add(u32::from(*at));
            at = at.add(1);
        }
    }
    hash
}

impl Library {
    pub fn is_ours(self) -> bool {
        std::ptr::eq(self.0.dynamic, (&raw const OUR_DYNAMIC).cast())
    }

    /// What is added to an address that the library was linked for.
    pub fn base(self) -> u64 {
        self.0.base
    }

    /// Its path ends in a file name with this beginning.
    pub fn is_named(self, beginning: &[u8]) -> bool {
        let (mut name, mut at) = (self.0.name, self.0.name);
        // SAFETY: the loader's string for the path, which stays; it has not ended before.
        unsafe {
            while at.read_volatile() != 0 {
                if *at == b'/' as c_char {
                    name = at.add(1);
                }
                at = at.add(1);
            }
            beginning.iter().enumerate().all(|(i, &byte)| name.add(i).read_volatile() as u8 == byte)
        }
    }

    fn value(self, tag: u64) -> Option<u64> {
        // SAFETY: the loader's pointer to the section.
        unsafe { value_of(self.0.dynamic, tag) }
    }

    /// A table's place. The loader has added the base to some of these values.
    fn table<T>(self, tag: u64) -> Option<*const T> {
        let value = self.value(tag)?;
        Some(if value < self.0.base { value + self.0.base } else { value } as *const T)
    }

    fn string(self, offset: u32) -> Option<*const c_char> {
        Some(self.table::<c_char>(DT_STRTAB)?.wrapping_add(offset as usize))
    }

    /// The relocations that name symbols, of code and of data.
    pub fn relocations(self) -> impl Iterator<Item = &'static libc::Elf64_Rela> {
        [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)].into_iter().flat_map(move |(table, size)| {
            let (table, bytes) =
                (self.table::<libc::Elf64_Rela>(table), self.value(size).unwrap_or(0) as usize);
            let count = table.map_or(0, |_| bytes / size_of::<libc::Elf64_Rela>());
            // SAFETY: the loader has applied them from there; nothing changes them.
            (0..count).filter_map(move |index| table.map(|table| unsafe { &*table.add(index) }))
        })
    }

    pub fn symbol(self, index: u32) -> Option<&'static libc::Elf64_Sym> {
        // SAFETY: the caller has the index from a table of this library's.
        Some(unsafe { &*self.table::<libc::Elf64_Sym>(DT_SYMTAB)?.add(index as usize) })
    }

    /// The name and the version of a symbol that this library imports, if it asks for a version.
    pub fn import(self, index: u32) -> Option<(&'static CStr, &'static CStr)> {
        let name = self.string(self.symbol(index)?.st_name)?;
        let mut file = self.table::<VersionNeed>(DT_VERNEED)?;
        // SAFETY: the linker's tables. Each entry says how far it is to the next, and the last says 0.
        unsafe {
            let wanted = *self.table::<u16>(DT_VERSYM)?.add(index as usize) & !HIDDEN;
            loop {
                let mut version = file.byte_add((*file).first as usize).cast::<NeededVersion>();
                for _ in 0..(*file).count {
                    if (*version).index & !HIDDEN == wanted {
                        let version = self.string((*version).name)?;
                        return Some((string_at(name), string_at(version)));
                    }
                    version = version.byte_add((*version).next as usize);
                }
                match (*file).next {
                    0 => return None,
                    next => file = file.byte_add(next as usize),
                }
            }
        }
    }

    /// What this library defines under a name. Without a version it is the current one.
    pub fn find(self, name: &CStr, version: Option<&CStr>) -> Option<Definition> {
        let table = self.table::<u32>(DT_GNU_HASH)?;
        // SAFETY: the linker's table: numbers of buckets, of the first symbol, of words in the filter; then the filter,
        // the buckets, and a hash for each symbol, whose lowest bit is set for the last one of a bucket.
        unsafe {
            let (buckets, first, filter) = (*table, *table.add(1), *table.add(2));
            let bucket_table = table.add(4 + 2 * filter as usize);
            let hashes = bucket_table.add(buckets as usize);
            let hash = hash_of(name.as_ptr());
            let mut index = *bucket_table.add(hash.checked_rem(buckets)? as usize);
            if index < first {
                return None;
            }
            loop {
                let other = *hashes.add((index - first) as usize);
                if other | 1 == hash | 1
                    && let Some(found) = self.definition(index, name, version)
                {
                    return Some(found);
                }
                if other & 1 != 0 {
                    return None;
                }
                index += 1;
            }
        }
    }

    /// The symbol at `index`, if it is the one that is looked for.
    fn definition(self, index: u32, name: &CStr, version: Option<&CStr>) -> Option<Definition> {
        const UNDEFINED: u16 = 0;
        const TYPE: u8 = 15;
        const DATA: u8 = 1;
        const THREAD_LOCAL: u8 = 6;
        const CHOOSES: u8 = 10;
        let symbol = self.symbol(index)?;
        let kind = symbol.st_info & TYPE;
        // SAFETY: both are strings.
        let is_name = unsafe { are_same(self.string(symbol.st_name)?, name.as_ptr()) };
        if symbol.st_shndx == UNDEFINED
            || kind == THREAD_LOCAL
            || !is_name
            || !self.has_version(index, version)
        {
            return None;
        }
        let mut address = self.0.base.wrapping_add(symbol.st_value);
        if kind == CHOOSES {
            // SAFETY: such a symbol is a function that chooses the one for this processor. The library is ready for it:
            // the loader has prepared it before this one, which needs it.
            address = unsafe { std::mem::transmute::<u64, extern "C" fn() -> u64>(address)() };
        }
        Some(Definition { address, is_data: kind == DATA })
    }

    /// The symbol at `index` is what somebody gets who asks for this version, or for the current one.
    fn has_version(self, index: u32, version: Option<&CStr>) -> bool {
        let Some(versions) = self.table::<u16>(DT_VERSYM) else { return true };
        // SAFETY: there is one for each symbol.
        let own = unsafe { *versions.add(index as usize) };
        let Some(version) = version else { return own & HIDDEN == 0 };
        // SAFETY: both are strings.
        own == UNVERSIONED
            || self
                .defined_version(own & !HIDDEN)
                .is_some_and(|own| unsafe { are_same(own, version.as_ptr()) })
    }

    /// The name of a version that this library defines.
    fn defined_version(self, index: u16) -> Option<*const c_char> {
        let mut version = self.table::<VersionDefinition>(DT_VERDEF)?;
        // SAFETY: the linker's table. Each entry says how far it is to its name and to the next, and the last says 0.
        unsafe {
            while (*version).index != index {
                if (*version).next == 0 {
                    return None;
                }
                version = version.byte_add((*version).next as usize);
            }
            self.string(*version.byte_add((*version).first_name as usize).cast::<u32>())
        }
    }

    /// The program headers. A library is loaded from its beginning, which says where they are.
    fn headers(self) -> &'static [libc::Elf64_Phdr] {
        let header = self.0.base as *const libc::Elf64_Ehdr;
        // SAFETY: the loader has mapped it, and never takes it away.
        unsafe {
            let start = header.byte_add((*header).e_phoff as usize).cast::<libc::Elf64_Phdr>();
            std::slice::from_raw_parts(start, (*header).e_phnum as usize)
        }
    }

    /// The pages that the loader has made read-only after it filled them in: their start and length.
    pub fn read_only_pages(self) -> Option<(u64, u64)> {
        const PAGE: u64 = 4096;
        let relro = self.headers().iter().find(|header| header.p_type == libc::PT_GNU_RELRO)?;
        let start = self.0.base + relro.p_vaddr;
        let (start, end) = (start & !(PAGE - 1), (start + relro.p_memsz) & !(PAGE - 1));
        Some((start, end - start))
    }

    /// Where its code begins and ends.
    pub fn code(self) -> Option<(u64, u64)> {
        let is_code =
            |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
        let code = self.headers().iter().find(is_code)?;
        let start = self.0.base + code.p_vaddr;
        Some((start, start + code.p_memsz))
    }
}

/// # Safety
/// It is a string, and stays.
unsafe fn string_at(text: *const c_char) -> &'static CStr {
    let mut len = 0;
    // SAFETY: the caller's promise; it has not ended before.
    unsafe {
        while text.add(len).read_volatile() != 0 {
            len += 1;
        }
        CStr::from_bytes_with_nul_unchecked(std::slice::from_raw_parts(text.cast(), len + 1))
    }
}
