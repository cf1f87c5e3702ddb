//! One ELF file, read into memory: what is loaded where, its symbols, and the slots that calls go through.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};

use gimli::LittleEndian;
use object::elf::{ET_DYN, ET_EXEC, PT_LOAD, R_X86_64_IRELATIVE};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use threadbare_trace::CodeClass;

use crate::ProgramError;
use crate::bounded::{self, ReadError};
use crate::debug_info::DebugInfo;
use crate::dependence::DependenceCache;
use crate::flow::FlowCache;
use crate::library_code;
use crate::split::SplitFiles;
use crate::symbols::{Kind, Symbols};
use crate::unpoisoned;

/// A view into a file's bytes that keeps them alive.
pub(crate) type Reader = gimli::EndianArcSlice<LittleEndian>;
/// The ELF structures over borrowed bytes; cheap to make again.
pub(crate) type Elf<'data> = ElfFile64<'data, object::LittleEndian>;

const PAGE: u64 = 0x1000;
/// The largest programs with debug information, such as browsers, are below this.
pub(crate) const MAX_BYTES: u64 = 8 << 30;

/// The files that were opened last, with what was computed from them. The workers of a hunt open the same files at the
/// same time, and so do the tests of a suite one after another.
static LAST: Mutex<VecDeque<(Identity, Arc<Image>)>> = Mutex::new(VecDeque::new());
/// A program and the libraries that matter.
const MAX_KEPT: usize = 4;

/// An executable or shared object.
pub(crate) struct Image {
    path: PathBuf,
    /// The whole file. It is read and not mapped, because the user may rebuild the program during a session.
    bytes: Arc<[u8]>,
    /// It can be loaded at any address.
    pub(crate) position_independent: bool,
    segments: Vec<Segment>,
    pub(crate) symbols: Symbols,
    /// The contents of the global offset table after loading, by address.
    slots: HashMap<u64, Slot>,
    pub(crate) runtime: RuntimeUse,
    debug_info: OnceLock<DebugInfo>,
    library_code: OnceLock<Vec<(Range<u64>, CodeClass)>>,
    /// Control flow, as far as it was asked for.
    pub(crate) flows: FlowCache,
    /// What depends on which loads, as far as it was asked for.
    pub(crate) dependences: DependenceCache,
}

/// Identifies the contents of a file. It changes when the file does.
#[derive(PartialEq, Eq)]
struct Identity {
    device_and_number: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

/// A part of the file that is loaded.
struct Segment {
    address: u64,
    memory_size: u64,
    file_offset: u64,
    file_size: u64,
}

/// The target of a call through memory.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// A symbol of another module, or one that another module may replace.
    Symbol(String),
    /// An address of this file.
    Address(u64),
    /// A function of this file that the loader calls, to be told the address.
    Resolver(u64),
}

/// How a file uses ThreadSanitizer's runtime.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuntimeUse {
    /// It needs symbols named `__tsan_…` from elsewhere: its code is instrumented.
    pub(crate) imports: bool,
    /// It holds the runtime itself.
    pub(crate) defines: bool,
    /// It has symbols to tell by.
    pub(crate) is_known: bool,
    /// The library it asks the loader for.
    pub(crate) soname: Option<String>,
}

impl Image {
    pub(crate) fn open(path: &Path) -> Result<Arc<Image>, ProgramError> {
        let problem = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ProgramError::Missing { path: path.into() },
            _ => ProgramError::Unreadable { path: path.into(), source },
        };
        let identity = Identity::of(&fs::metadata(path).map_err(problem)?);
        let mut last = unpoisoned(&LAST);
        if let Some(place) = last.iter().position(|(known, _)| *known == identity)
            && let Some((_, image)) = last.remove(place)
        {
            last.push_front((identity, Arc::clone(&image)));
            return Ok(image);
        }
        let bytes = bounded::read_regular(path, MAX_BYTES).map_err(|error| match error {
            ReadError::Io(source) => problem(source),
            other => ProgramError::NotAnExecutable { path: path.into(), reason: other.to_string() },
        })?;
        let image = Image::parse(path, bytes.into())
            .map_err(|reason| ProgramError::NotAnExecutable { path: path.into(), reason })?;
        let image = Arc::new(image);
        last.truncate(MAX_KEPT - 1);
        last.push_front((identity, Arc::clone(&image)));
        Ok(image)
    }

    fn parse(path: &Path, bytes: Arc<[u8]>) -> Result<Image, String> {
        let elf = Elf::parse(&*bytes).map_err(|error| error.to_string().to_lowercase())?;
        let endian = elf.endian();
        if elf.architecture() != object::Architecture::X86_64 {
            return Err("it is built for another machine".to_string());
        }
        let position_independent = match elf.elf_header().e_type(endian) {
            ET_DYN => true,
            ET_EXEC => false,
            _ => return Err("it is not linked".to_string()),
        };
        let loaded = elf.elf_program_headers().iter().filter(|header| header.p_type(endian) == PT_LOAD);
        let segments: Vec<Segment> = loaded
            .map(|header| Segment {
                address: header.p_vaddr(endian),
                memory_size: header.p_memsz(endian),
                file_offset: header.p_offset(endian),
                file_size: header.p_filesz(endian),
            })
            .collect();
        if segments.is_empty() {
            return Err("nothing of it is loaded".to_string());
        }
        let (symbols, slots, runtime) = (Symbols::read(&elf), slots(&elf), runtime_use(&elf));
        let (debug_info, library_code) = (OnceLock::new(), OnceLock::new());
        let path = path.to_owned();
        Ok(Image {
            path,
            bytes,
            position_independent,
            segments,
            symbols,
            slots,
            runtime,
            debug_info,
            library_code,
            flows: FlowCache::default(),
            dependences: DependenceCache::default(),
        })
    }

    /// The addresses from the first loaded byte to the last, as linked, from the start of a page.
    pub(crate) fn span(&self) -> Range<u64> {
        let start = self.segments.iter().map(|segment| segment.address).min().unwrap_or_default();
        let ends = self.segments.iter().map(|segment| segment.address.saturating_add(segment.memory_size));
        start & !(PAGE - 1)..ends.max().unwrap_or_default()
    }

    /// What is added to addresses as linked, when `offset` of the file was mapped at `address`.
    pub(crate) fn bias(&self, address: u64, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.file_offset & !(PAGE - 1) == offset)?;
        Some(address.wrapping_sub(segment.address & !(PAGE - 1)))
    }

    /// Up to `len` bytes at an address as linked.
    pub(crate) fn loaded(&self, address: u64, len: u64) -> Option<&[u8]> {
        let inside = |segment: &&Segment| address.wrapping_sub(segment.address) < segment.file_size;
        let segment = self.segments.iter().find(inside)?;
        let skip = address - segment.address;
        let len = len.min(segment.file_size - skip);
        let start = usize::try_from(segment.file_offset.checked_add(skip)?).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?.min(self.bytes.len());
        self.bytes.get(start..end)
    }

    /// The name of the function that a slot of the global offset table leads to.
    pub(crate) fn slot(&self, address: u64) -> Option<&str> {
        match self.slots.get(&address)? {
            Slot::Symbol(name) => Some(name),
            Slot::Address(target) | Slot::Resolver(target) => {
                Some(&self.symbols.starting_at(*target, Kind::Function)?.name)
            }
        }
    }

    /// The slots that the loader fills, by address: of the global offset table, and of tables of functions.
    pub(crate) fn slots(&self) -> &HashMap<u64, Slot> {
        &self.slots
    }

    /// The whole file.
    pub(crate) fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// What the linker made from the contents of the file, if it did.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let elf = Elf::parse(&*self.bytes).ok()?;
        Some(elf.build_id().ok()??.to_owned())
    }

    /// Where in the file the byte at an address as linked is.
    pub(crate) fn file_offset(&self, address: u64) -> Option<usize> {
        let inside = |segment: &&Segment| address.wrapping_sub(segment.address) < segment.file_size;
        let segment = self.segments.iter().find(inside)?;
        usize::try_from(segment.file_offset.checked_add(address - segment.address)?).ok()
    }

    /// The code of Rust's standard library, as linked, by address; found on first use.
    pub(crate) fn library_code(&self) -> &[(Range<u64>, CodeClass)] {
        self.library_code.get_or_init(|| library_code::functions(self))
    }

    /// Lines, types and frames; found on first use.
    pub(crate) fn debug_info(&self) -> &DebugInfo {
        self.debug_info.get_or_init(|| {
            let elf = Elf::parse(&*self.bytes).ok();
            let section = |name: &str| {
                let section = elf.as_ref()?.section_by_name(name)?;
                Some((section.address(), section_reader(&self.bytes, &section)?))
            };
            DebugInfo::load(section, SplitFiles::of(&self.path))
        })
    }
}

/// The contents of a section: a view of the file's bytes, or a copy if they are compressed there.
pub(crate) fn section_reader<'data>(
    bytes: &Arc<[u8]>,
    section: &impl object::ObjectSection<'data>,
) -> Option<Reader> {
    let range = section.compressed_file_range().ok()?;
    if range.format != object::CompressionFormat::None {
        return Some(Reader::new(section.uncompressed_data().ok()?.into_owned().into(), LittleEndian));
    }
    let start = usize::try_from(range.offset).ok()?;
    let end = start.checked_add(usize::try_from(range.uncompressed_size).ok()?)?;
    bytes.get(start..end)?;
    Some(Reader::new(bytes.clone(), LittleEndian).range(start..end))
}

/// The contents of a section that is not there.
pub(crate) fn empty_reader() -> Reader {
    Reader::new(Arc::from([]), LittleEndian)
}

impl Identity {
    fn of(file: &fs::Metadata) -> Identity {
        Identity {
            device_and_number: (file.dev(), file.ino()),
            size: file.size(),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// The slots that the loader fills.
fn slots(elf: &Elf<'_>) -> HashMap<u64, Slot> {
    let symbols = elf.dynamic_symbol_table();
    let relocations = elf.dynamic_relocations().into_iter().flatten();
    relocations
        .filter_map(|(address, relocation)| {
            let slot = match relocation.target() {
                object::RelocationTarget::Symbol(index) => {
                    let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
                    Slot::Symbol(symbol.name().ok()?.to_string())
                }
                _ if is_resolver(&relocation) => Slot::Resolver(relocation.addend().cast_unsigned()),
                _ => Slot::Address(relocation.addend().cast_unsigned()),
            };
            Some((address, slot))
        })
        .collect()
}

fn is_resolver(relocation: &object::Relocation) -> bool {
    matches!(relocation.flags(), object::RelocationFlags::Elf { r_type: R_X86_64_IRELATIVE })
}

fn runtime_use(elf: &Elf<'_>) -> RuntimeUse {
    let mut found = RuntimeUse::default();
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        found.is_known |= symbol.kind() == object::SymbolKind::Text;
        let Some(name) = symbol.name().ok().filter(|name| name.starts_with("__tsan_")) else { continue };
        found.imports |= symbol.is_undefined();
        found.defines |= symbol.is_definition() && name == "__tsan_init";
    }
    for library in elf.import_libraries().into_iter().flatten().flatten() {
        if library.name().starts_with(b"libtsan") || library.name().starts_with(b"libclang_rt.tsan") {
            found.soname = Some(String::from_utf8_lossy(library.name()).into_owned());
        }
    }
    found
}
