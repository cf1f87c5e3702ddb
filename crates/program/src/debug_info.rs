//! The debug information of one file: source lines, and an index of where variables and functions are.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use addr2line::{LookupContinuation as _, LookupResult};
use gimli::{AttributeValue, DwAt, Operation, UnitOffset, UnitSectionOffset};
use threadbare_trace::Frame;

use crate::frame_info::FrameInfo;
use crate::image::{Reader, empty_reader};
use crate::split::{SplitFiles, SplitName};
use crate::symbols::demangle;
use crate::unpoisoned;

pub(crate) type Die = gimli::DebuggingInformationEntry<Reader>;

/// The index is made on first use, because most files are asked for lines only.
pub(crate) struct DebugInfo {
    dwarf: Arc<gimli::Dwarf<Reader>>,
    split: SplitFiles,
    /// Parses on demand, so it cannot be shared between threads; `None` if the list of units is damaged.
    lines: Option<Mutex<addr2line::Context<Reader>>>,
    pub(crate) frames: FrameInfo,
    index: OnceLock<Index>,
}

/// What a program has of debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugExtent {
    Present,
    /// Nothing, or nothing of the program's own code.
    None,
    /// This file of split DWARF is not there, or belongs to another build.
    SplitMissing(PathBuf),
}

/// Units that come with every program: of gcc's sanitizer, and of Rust's standard library.
fn is_of_toolchain(name: &str) -> bool {
    name.contains("/libsanitizer/") || name.starts_with("library/") || name.starts_with("/rustc/")
}

/// A position of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl DebugInfo {
    /// `section` gives the address and contents of a section by name. What is missing counts as empty.
    pub(crate) fn load(section: impl Fn(&str) -> Option<(u64, Reader)>, split: SplitFiles) -> DebugInfo {
        let dwarf = gimli::Dwarf::load(|id| {
            Ok::<_, std::convert::Infallible>(
                section(id.name()).map_or_else(empty_reader, |(_, reader)| reader),
            )
        });
        let dwarf = Arc::new(match dwarf {
            Ok(dwarf) => dwarf,
            Err(never) => match never {},
        });
        let lines = addr2line::Context::from_arc_dwarf(dwarf.clone()).ok().map(Mutex::new);
        DebugInfo { dwarf, split, lines, frames: FrameInfo::load(&section), index: OnceLock::new() }
    }

    /// The frames that an address stands for, innermost first.
    pub(crate) fn frames_at(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Some(lines) = &self.lines else { return frames };
        let lines = unpoisoned(lines);
        let mut lookup = lines.find_frames(address);
        let found = loop {
            match lookup {
                LookupResult::Output(found) => break found,
                LookupResult::Load { load, continuation } => {
                    let name = SplitName { id: load.dwo_id, directory: load.comp_dir, file: load.path };
                    lookup = continuation.resume(self.split.load(&name, &load.parent));
                }
            }
        };
        let Ok(mut found) = found else { return frames };
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.as_ref().and_then(|name| Some(demangle(&name.raw_name().ok()?)));
            let Position { file, line, column } = position(frame.location);
            frames.push(Frame { function: function.unwrap_or_default(), file, line, column });
        }
        frames
    }

    /// The row of the line table for an address, which is the position of the innermost frame.
    pub(crate) fn position_at(&self, address: u64) -> Position {
        let Some(lines) = &self.lines else { return Position::default() };
        position(unpoisoned(lines).find_location(address).unwrap_or_default())
    }

    /// What there is of the program's own code.
    pub(crate) fn extent(&self) -> DebugExtent {
        let mut extent = DebugExtent::None;
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let name = unit.name.as_ref().map(|name| String::from_utf8_lossy(name.bytes()).into_owned());
            if name.is_some_and(|name| is_of_toolchain(&name)) {
                continue;
            }
            extent = DebugExtent::Present;
            if let Some(name) = SplitName::of(&self.dwarf, &unit) {
                // One is enough to know: a build leaves all of them or none.
                return match self.split.load(&name, &self.dwarf) {
                    Some(_) => DebugExtent::Present,
                    None => DebugExtent::SplitMissing(name.path()),
                };
            }
        }
        extent
    }

    /// The paths of the source files that the units name.
    pub(crate) fn files(&self) -> impl Iterator<Item = String> {
        self.index().units.iter().flat_map(Unit::files)
    }

    /// The code of the functions in units that name this source file.
    pub(crate) fn functions_with_file(&self, path: &str) -> Vec<Range<u64>> {
        let index = self.index();
        let has_file: Vec<bool> =
            index.units.iter().map(|unit| unit.files().any(|file| file == path)).collect();
        let functions = index.functions.iter().filter(|(_, id)| has_file[id.unit]);
        functions.map(|(range, _)| range.clone()).collect()
    }

    /// Where the line tables say that a statement of this source file begins: its line, and the address.
    pub(crate) fn statements(&self, path: &str) -> Vec<(u32, u64)> {
        self.index().units.iter().flat_map(|unit| unit.statements(path)).collect()
    }

    /// Where the line table has a new row in a range of code.
    pub(crate) fn row_starts(&self, range: &Range<u64>) -> HashSet<u64> {
        let Some(lines) = &self.lines else { return HashSet::new() };
        let lines = unpoisoned(lines);
        let rows = lines.find_location_range(range.start, range.end).into_iter().flatten();
        rows.map(|(start, _, _)| start).collect()
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.dwarf, &self.split))
    }
}

fn position(location: Option<addr2line::Location<'_>>) -> Position {
    let Some(location) = location else { return Position::default() };
    Position {
        file: location.file.unwrap_or_default().to_string(),
        line: location.line.unwrap_or_default(),
        column: location.column.unwrap_or_default(),
    }
}

/// Where variables and functions are described, over all units.
pub(crate) struct Index {
    units: Vec<Unit>,
    /// Variables with static storage, by address.
    variables: HashMap<u64, EntryId>,
    /// Functions with code of their own, by start of each piece of it.
    functions: Vec<(Range<u64>, EntryId)>,
    /// Linkage names of functions that are declared never to return.
    never_return: HashSet<String>,
}

/// A compilation unit.
pub(crate) struct Unit {
    /// The file that has it: the program, or one of split DWARF.
    pub(crate) dwarf: Arc<gimli::Dwarf<Reader>>,
    /// Where it, or its skeleton, begins in the program's debug information.
    start: usize,
    pub(crate) unit: gimli::Unit<Reader>,
    pub(crate) is_rust: bool,
    /// Which entries are inside the namespaces of a standard library.
    library: Vec<Range<usize>>,
}

/// An entry of the debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryId {
    pub(crate) unit: usize,
    pub(crate) offset: UnitOffset,
}

impl Unit {
    fn files(&self) -> impl Iterator<Item = String> {
        let files = self.unit.line_program.iter().flat_map(|program| program.header().file_names());
        files.filter_map(|file| self.path(file))
    }

    /// The path of a file: its name, behind its directory and that of the compilation as far as those are relative.
    fn path(&self, file: &gimli::FileEntry<Reader>) -> Option<String> {
        let text = |value| self.dwarf.attr_string(&self.unit, value).ok();
        let directory = file.directory(self.unit.line_program.as_ref()?.header()).and_then(text);
        let parts = [self.unit.comp_dir.clone(), directory, Some(text(file.path_name())?)];
        let mut path = PathBuf::new();
        for part in parts.into_iter().flatten() {
            path.push(&*String::from_utf8_lossy(part.bytes()));
        }
        Some(path.to_string_lossy().into_owned())
    }

    fn statements(&self, path: &str) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        let Some(program) = self.unit.line_program.clone() else { return found };
        let mut is_meant: HashMap<u64, bool> = HashMap::new();
        let mut rows = program.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            let (Some(line), Some(file)) = (row.line(), row.file(header)) else { continue };
            let is_file = || self.path(file).is_some_and(|known| known == path);
            if !row.end_sequence()
                && row.is_stmt()
                && *is_meant.entry(row.file_index()).or_insert_with(is_file)
            {
                found.push((u32::try_from(line.get()).unwrap_or(u32::MAX), row.address()));
            }
        }
        found
    }
}

impl Index {
    fn new(dwarf: &Arc<gimli::Dwarf<Reader>>, split: &SplitFiles) -> Index {
        let mut index = Index {
            units: Vec::new(),
            variables: HashMap::new(),
            functions: Vec::new(),
            never_return: HashSet::new(),
        };
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let start = header.debug_info_offset().map_or(0, |offset| offset.0);
            let Ok(unit) = dwarf.unit(header) else { continue };
            match whole_unit(dwarf, &unit, split) {
                Some((dwarf, whole)) => index.add(dwarf, whole, start),
                None => index.add(Arc::clone(dwarf), unit, start),
            }
        }
        index.functions.sort_by_key(|(range, _)| range.start);
        index
    }

    /// Goes over all entries of a unit once. A damaged unit is known as far as it could be read.
    fn add(&mut self, dwarf: Arc<gimli::Dwarf<Reader>>, unit: gimli::Unit<Reader>, start: usize) {
        let Index { units, variables, functions, never_return } = self;
        let number = units.len();
        let mut scan = Scan {
            dwarf: &dwarf,
            number,
            variables,
            functions,
            never_return,
            is_rust: false,
            library: Vec::new(),
            open: false,
        };
        let mut entries = unit.entries();
        while let Ok(Some(die)) = entries.next_dfs() {
            scan.entry(&unit, die);
        }
        let Scan { is_rust, library, .. } = scan;
        units.push(Unit { dwarf, start, unit, is_rust, library });
    }

    /// The variable that starts at an address.
    pub(crate) fn variable(&self, address: u64) -> Option<EntryId> {
        self.variables.get(&address).copied()
    }

    /// The function with code of its own at an address.
    pub(crate) fn function(&self, address: u64) -> Option<EntryId> {
        let end = self.functions.partition_point(|(range, _)| range.start <= address);
        let (range, id) = self.functions[..end].last()?;
        range.contains(&address).then_some(*id)
    }

    /// A function of this linkage name is declared never to return.
    pub(crate) fn never_returns(&self, name: &str) -> bool {
        self.never_return.contains(name)
    }

    /// The code of every function, with the name of the unit that it is in.
    pub(crate) fn functions(&self) -> Vec<(Range<u64>, String)> {
        let name = |unit: &Unit| {
            let name = unit.unit.name.as_ref();
            name.map_or_else(String::new, |name| String::from_utf8_lossy(name.bytes()).into_owned())
        };
        let names: Vec<String> = self.units.iter().map(name).collect();
        self.functions.iter().map(|(range, id)| (range.clone(), names[id.unit].clone())).collect()
    }

    pub(crate) fn unit(&self, number: usize) -> Option<&Unit> {
        self.units.get(number)
    }

    pub(crate) fn entry(&self, id: EntryId) -> Option<Die> {
        self.unit(id.unit)?.unit.entry(id.offset).ok()
    }

    /// Declared by a standard library.
    pub(crate) fn is_library(&self, id: EntryId) -> bool {
        self.unit(id.unit).is_some_and(|unit| unit.library.iter().any(|range| range.contains(&id.offset.0)))
    }

    /// The entry that an attribute refers to, in the same unit or another.
    pub(crate) fn reference(&self, unit: usize, die: &Die, attribute: DwAt) -> Option<EntryId> {
        match die.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => Some(EntryId { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => {
                let number = self.units.partition_point(|unit| unit.start <= offset.0).checked_sub(1)?;
                let header = &self.units[number].unit.header;
                let offset = UnitSectionOffset(offset.0).to_unit_offset(header)?;
                Some(EntryId { unit: number, offset })
            }
            _ => None,
        }
    }

    /// The name of an entry, or of the entry that it refers to.
    pub(crate) fn name(&self, id: EntryId) -> Option<String> {
        self.inherited(id, |id, die| {
            let unit = self.unit(id.unit)?;
            string(&unit.dwarf, &unit.unit, die, gimli::DW_AT_name)
        })
    }

    /// The type of an entry, or of the entry that it refers to.
    pub(crate) fn type_of(&self, id: EntryId) -> Option<EntryId> {
        self.inherited(id, |id, die| self.reference(id.unit, die, gimli::DW_AT_type))
    }

    /// The first result of `get` along the chain of entries that begins here.
    fn inherited<T>(&self, id: EntryId, get: impl Fn(EntryId, &Die) -> Option<T>) -> Option<T> {
        /// More than a real chain has: a concrete entry, its abstract origin and the declaration of that.
        const CHAIN: usize = 5;
        let mut id = id;
        for _ in 0..CHAIN {
            let die = self.entry(id)?;
            if let Some(found) = get(id, &die) {
                return Some(found);
            }
            id = self
                .reference(id.unit, &die, gimli::DW_AT_abstract_origin)
                .or_else(|| self.reference(id.unit, &die, gimli::DW_AT_specification))?;
        }
        None
    }
}

/// The unit that a skeleton stands for, with the file that has it.
fn whole_unit(
    dwarf: &gimli::Dwarf<Reader>,
    skeleton: &gimli::Unit<Reader>,
    split: &SplitFiles,
) -> Option<(Arc<gimli::Dwarf<Reader>>, gimli::Unit<Reader>)> {
    let whole = split.load(&SplitName::of(dwarf, skeleton)?, dwarf)?;
    let mut unit = whole.unit(whole.units().next().ok()??).ok()?;
    unit.copy_relocated_attributes(skeleton);
    Some((whole, unit))
}

/// The collection of one unit.
struct Scan<'index> {
    dwarf: &'index gimli::Dwarf<Reader>,
    number: usize,
    variables: &'index mut HashMap<u64, EntryId>,
    functions: &'index mut Vec<(Range<u64>, EntryId)>,
    never_return: &'index mut HashSet<String>,
    is_rust: bool,
    library: Vec<Range<usize>>,
    /// The last range of `library` has not ended yet.
    open: bool,
}

impl Scan<'_> {
    fn entry(&mut self, unit: &gimli::Unit<Reader>, die: &Die) {
        let id = EntryId { unit: self.number, offset: die.offset() };
        if die.depth() <= 1 && self.open {
            self.open = false;
            self.library.last_mut().into_iter().for_each(|range| range.end = die.offset().0);
        }
        match die.tag() {
            gimli::DW_TAG_compile_unit => {
                let language = die.attr_value(gimli::DW_AT_language);
                self.is_rust = language == Some(AttributeValue::Language(gimli::DW_LANG_Rust));
            }
            gimli::DW_TAG_namespace if die.depth() == 1 => {
                let name = string(self.dwarf, unit, die, gimli::DW_AT_name).unwrap_or_default();
                if matches!(name.as_str(), "std" | "core" | "alloc") || name.starts_with("__") {
                    self.open = true;
                    self.library.push(die.offset().0..usize::MAX);
                }
            }
            gimli::DW_TAG_variable => {
                if let Some(address) = fixed_address(self.dwarf, unit, die) {
                    self.variables.insert(address, id);
                }
            }
            gimli::DW_TAG_subprogram => {
                if die.attr_value(gimli::DW_AT_noreturn).is_some() {
                    let name = |attribute| string(self.dwarf, unit, die, attribute);
                    let name = name(gimli::DW_AT_linkage_name).or_else(|| name(gimli::DW_AT_name));
                    self.never_return.extend(name);
                }
                let Ok(mut ranges) = self.dwarf.die_ranges(unit, die) else { return };
                while let Ok(Some(range)) = ranges.next() {
                    self.functions.push((range.begin..range.end, id));
                }
            }
            _ => {}
        }
    }
}

fn string(
    dwarf: &gimli::Dwarf<Reader>,
    unit: &gimli::Unit<Reader>,
    die: &Die,
    attribute: DwAt,
) -> Option<String> {
    let text = dwarf.attr_string(unit, die.attr_value(attribute)?).ok()?;
    Some(String::from_utf8_lossy(text.bytes()).into_owned())
}

/// The address of a variable that has one for the whole run; thread-local ones do not.
fn fixed_address(dwarf: &gimli::Dwarf<Reader>, unit: &gimli::Unit<Reader>, die: &Die) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = die.attr_value(gimli::DW_AT_location)? else { return None };
    let mut operations = expression.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(address)
}
