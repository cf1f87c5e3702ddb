//! [`Program`]: the modules of one process, and what can be asked about their addresses.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use threadbare_trace::CodeClass;
use threadbare_trace::{Frame, Location, Site};

use crate::debug_info::DebugExtent;
use crate::flow::{Flow, ModuleCode};
use crate::image::Image;
use crate::locals::{self, FrameLayout};
use crate::module::{Loaded, Module};
use crate::site::{self, Candidate, Likeness};
use crate::source::Sources;
use crate::symbols::{self, Kind, Symbol};
use crate::{ProgramError, UnitCoverage, coverage, frame_info, maps, types, unpoisoned};

/// Separates the name of a shared object from the name of its symbol. A symbol of the executable has no such prefix.
const IN_MODULE: char = '!';

/// An executable and the shared objects loaded with it.
///
/// Answers are computed on first use and kept. All methods take a shared reference, so many threads can use one program.
pub struct Program {
    /// The executable first, then shared objects by address.
    modules: Vec<Module>,
    sources: Sources,
    locations: Mutex<HashMap<u64, Location>>,
    calls: Mutex<HashMap<FunctionKey, Arc<[Candidate]>>>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

/// The number of a module, and the address of a function in it as linked.
type FunctionKey = (usize, u64);

/// How an executable was built, which decides how our runtime can take the place of ThreadSanitizer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// Not with `-fsanitize=thread`.
    None,
    /// It is stripped and takes nothing from shared objects, so nothing can be told.
    Unknown,
    /// It takes the runtime from the shared object of this name, such as `libtsan.so.2`; no name means that
    /// the link left the runtime to whoever starts the program.
    Dynamic { soname: Option<String> },
    /// The runtime is linked in: `-static-libtsan`, or clang's default.
    Static,
}

/// A byte of a variable with static storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Names the variable in every build: its linkage name; `name@file.c` for a file-local one whose name
    /// others have too; with `lib.so!` in front when it is not the executable's.
    pub symbol: String,
    /// Bytes into the variable.
    pub offset: u64,
    /// In source terms: `accounts[1].amount`.
    pub display: String,
}

impl Program {
    /// The executable alone, at the address it has when layout is not randomised.
    pub fn open(executable: &Path) -> Result<Program, ProgramError> {
        Ok(Program::of(vec![Module::executable(executable)?]))
    }

    /// The executable and its shared objects as loaded, from the text of `/proc/PID/maps`.
    pub fn from_maps(executable: &Path, maps: &str) -> Result<Program, ProgramError> {
        let real = fs::canonicalize(executable);
        let real = real.as_deref().unwrap_or(executable);
        let (mut mapped_executable, mut libraries) = (None, Vec::new());
        for mapped in maps::mapped_files(maps) {
            if mapped_executable.is_none() && mapped.path == real {
                mapped_executable = Some(mapped);
            } else {
                libraries.push(Module::library(mapped));
            }
        }
        let mut modules = vec![match mapped_executable {
            Some(mapped) => Module::mapped_executable(executable, mapped)?,
            None => Module::executable(executable)?,
        }];
        libraries.sort_by_key(|module| module.start);
        modules.extend(libraries);
        Ok(Program::of(modules))
    }

    fn of(modules: Vec<Module>) -> Program {
        Program { modules, sources: Sources::default(), locations: Mutex::default(), calls: Mutex::default() }
    }

    /// How the executable was built.
    pub fn instrumentation(&self) -> Instrumentation {
        let Some(executable) = self.modules.first().and_then(Module::loaded) else {
            return Instrumentation::None;
        };
        let runtime = &executable.image.runtime;
        match (runtime.defines, runtime.imports) {
            (true, _) => Instrumentation::Static,
            (false, true) => Instrumentation::Dynamic { soname: runtime.soname.clone() },
            (false, false) if runtime.is_known => Instrumentation::None,
            (false, false) => Instrumentation::Unknown,
        }
    }

    /// What the executable has of debug information.
    pub fn debug_extent(&self) -> DebugExtent {
        self.executable().map_or(DebugExtent::None, |image| image.debug_info().extent())
    }

    /// How much of the executable is instrumented, by compilation unit.
    pub fn coverage(&self) -> Vec<UnitCoverage> {
        self.executable().map(coverage::of).unwrap_or_default()
    }

    /// The files with instrumented code, each with how its addresses are relocated.
    pub(crate) fn instrumented(&self) -> impl Iterator<Item = (&Image, impl Fn(u64) -> u64)> {
        let loaded = self.modules.iter().filter_map(Module::loaded);
        let instrumented = loaded.filter(|loaded| loaded.image.runtime.imports);
        instrumented.map(|loaded| (&*loaded.image, |linked| loaded.relocated(linked)))
    }

    /// Their code.
    pub(crate) fn instrumented_code(&self) -> impl Iterator<Item = ModuleCode<'_>> {
        let is_instrumented =
            |module: &&Module| module.loaded().is_some_and(|loaded| loaded.image.runtime.imports);
        self.modules.iter().filter(is_instrumented).filter_map(Module::code)
    }

    fn executable(&self) -> Option<&Image> {
        self.modules.first().and_then(Module::loaded).map(|loaded| &*loaded.image)
    }

    /// The code of Rust's standard library that is compiled into the executable, as linked, by address.
    pub fn library_code(&self) -> Vec<(Range<u64>, CodeClass)> {
        let executable = self.modules.first().and_then(Module::loaded);
        executable.map(|executable| executable.image.library_code().to_vec()).unwrap_or_default()
    }

    /// The code of the executable.
    pub fn code(&self) -> Option<ModuleCode<'_>> {
        self.modules.first().and_then(Module::code)
    }

    /// The code of every module that can be read, the executable first and then by address.
    pub fn all_code(&self) -> impl Iterator<Item = ModuleCode<'_>> {
        self.modules.iter().filter_map(Module::code)
    }

    /// The code of the module that an address of the process belongs to.
    pub fn code_at(&self, address: u64) -> Option<ModuleCode<'_>> {
        self.at(address).and_then(|place| place.module.code())
    }

    /// The control flow of the function that an address of the process belongs to. Its addresses are as linked.
    pub fn flow_at(&self, address: u64) -> Option<Arc<Flow>> {
        let code = self.code_at(address)?;
        code.flow(code.function_at(code.linked(address))?)
    }

    /// The function that the loader finds for a linkage name: the module's code, and the address as linked.
    pub fn import(&self, name: &str) -> Option<(ModuleCode<'_>, u64)> {
        self.all_code().find_map(|code| Some((code, code.definition(name)?)))
    }

    /// The source location of the call that returns to `return_address`, which is also the location's
    /// address. Without debug information it has the function's name; outside of any module, nothing.
    pub fn location(&self, return_address: u64) -> Location {
        if let Some(known) = unpoisoned(&self.locations).get(&return_address) {
            return known.clone();
        }
        let location = Location { address: return_address, frames: self.frames(return_address) };
        unpoisoned(&self.locations).insert(return_address, location.clone());
        location
    }

    fn frames(&self, return_address: u64) -> Vec<Frame> {
        let Some(place) = self.at(return_address) else { return Vec::new() };
        let inside_call = place.address.wrapping_sub(1);
        let mut frames = place.image().debug_info().frames_at(inside_call);
        // The outermost frame is that of the function with the code, whose name the symbol table has.
        if frames.last().is_none_or(|frame| frame.function.is_empty())
            && let Some(function) = place.image().symbols.at(inside_call, Kind::Function)
        {
            let mut frame = frames.pop().unwrap_or_default();
            frame.function = symbols::demangle(&function.name);
            frames.push(frame);
        }
        frames
    }

    /// What the call that returns to `return_address` is known by in another build; `None` when there is no
    /// such call, or its function has no name.
    ///
    /// The column counts from the first character of the site's text, so that indenting a line changes
    /// nothing; it is the compiler's own where the source cannot be read. A static function whose name others
    /// have too is written `name@file.c`.
    pub fn site(&self, return_address: u64) -> Option<Site> {
        let place = self.at(return_address)?;
        let symbols = &place.image().symbols;
        let function = symbols.at(place.address.checked_sub(1)?, Kind::Function)?;
        let candidates = self.candidates(place.number, place.image(), function);
        let name = symbols.unique_name(function);
        site::describe(name.clone(), &candidates, place.address).or_else(|| {
            let statements = site::statements(place.image(), &self.sources, function);
            site::describe(name, &statements, place.address)
        })
    }

    /// The return address of the call that a site, perhaps of another build, stands for.
    pub fn find_site(&self, site: &Site) -> Option<u64> {
        let loaded =
            self.modules.iter().enumerate().filter_map(|(number, module)| Some((number, module.loaded()?)));
        loaded.into_iter().find_map(|(number, loaded)| {
            let found = self.find_site_in(number, &loaded.image, site)?;
            Some(loaded.relocated(found))
        })
    }

    fn find_site_in(&self, number: usize, image: &Image, site: &Site) -> Option<u64> {
        let named = image.symbols.resolve(&site.function).filter(|symbol| symbol.kind == Kind::Function);
        let functions: Vec<&Symbol> = match named {
            Some(function) => vec![function],
            None => image.symbols.of_another_build(&site.function, Kind::Function),
        };
        let candidates = |function: &Symbol| match site.callee.as_str() {
            site::STATEMENT => site::statements(image, &self.sources, function).into(),
            _ => self.candidates(number, image, function),
        };
        let calls: Vec<_> = functions.into_iter().map(candidates).collect();
        let find = |likeness: Likeness| calls.iter().find_map(|calls| likeness.find(site, calls));
        find(Likeness::Exact).or_else(|| find(Likeness::Text))
    }

    fn candidates(&self, number: usize, image: &Image, function: &Symbol) -> Arc<[Candidate]> {
        let key = (number, function.address);
        if let Some(known) = unpoisoned(&self.calls).get(&key) {
            return known.clone();
        }
        let candidates: Arc<[Candidate]> = site::candidates(image, &self.sources, function).into();
        unpoisoned(&self.calls).insert(key, candidates.clone());
        candidates
    }

    /// The variable with static storage that holds the byte at `address`.
    pub fn global(&self, address: u64) -> Option<Global> {
        let place = self.at(address)?;
        let symbols = &place.image().symbols;
        let variable = symbols.at(place.address, Kind::Variable)?;
        let offset = place.address - variable.address;
        let symbol = match place.number {
            0 => symbols.unique_name(variable),
            _ => format!("{}{IN_MODULE}{}", place.module.name(), symbols.unique_name(variable)),
        };
        Some(Global { symbol, offset, display: display(place.image(), variable, offset) })
    }

    /// The address of a variable or function, under a name as in [`Global::symbol`].
    pub fn symbol_address(&self, symbol: &str) -> Option<u64> {
        let (module, symbol) = match symbol.split_once(IN_MODULE) {
            Some((name, symbol)) => {
                (self.modules.iter().skip(1).find(|module| module.name() == name)?, symbol)
            }
            None => (self.modules.first()?, symbol),
        };
        let loaded = module.loaded()?;
        let symbols = &loaded.image.symbols;
        let found = symbols.resolve(symbol).or_else(|| symbols.rust_variable_of_another_build(symbol))?;
        Some(loaded.relocated(found.address))
    }

    /// The local variable or parameter, with the path inside it, that lies `cfa_offset` bytes from the
    /// canonical frame address of the function with the call that returns to `return_address`.
    pub fn local(&self, return_address: u64, cfa_offset: i64) -> Option<String> {
        let place = self.at(return_address)?;
        let address = place.address.checked_sub(1)?;
        let layout = FrameLayout {
            address,
            from_stack_pointer: frame_info::cfa_from_stack_pointer(place.image(), place.address),
            has_frame_pointer: frame_info::has_frame_pointer(place.image(), address),
        };
        locals::name_at(place.image().debug_info().index(), &layout, cfa_offset)
    }

    /// What to add to the stack pointer, as it is just before the call that returns to `return_address`, to
    /// get the canonical frame address of the calling function. `None` when only a run could tell.
    pub fn cfa_from_stack_pointer(&self, return_address: u64) -> Option<i64> {
        let place = self.at(return_address)?;
        frame_info::cfa_from_stack_pointer(place.image(), place.address)
    }

    /// The module that an address of the process belongs to. Modules do not overlap, so that it is the one
    /// that starts last before the address, if it reaches that far.
    fn at(&self, address: u64) -> Option<ModuleAddress<'_>> {
        let below = self.modules.iter().enumerate().filter(|(_, module)| module.start <= address);
        let (number, module) = below.max_by_key(|(_, module)| module.start)?;
        let loaded = module.loaded()?;
        Some(ModuleAddress { number, module, loaded, address: loaded.linked(address)? })
    }
}

/// An address within a module.
struct ModuleAddress<'program> {
    number: usize,
    module: &'program Module,
    loaded: &'program Loaded,
    /// As linked.
    address: u64,
}

impl<'program> ModuleAddress<'program> {
    fn image(&self) -> &'program Image {
        &self.loaded.image
    }
}

/// A byte of a variable in source terms, or as symbol and offset if its type is unknown.
///
/// A mangled name has scopes, which the name in the debug information lacks. For a C variable the debug information is
/// better: the linker adds a number to the name of a static local.
fn display(image: &Image, variable: &Symbol, offset: u64) -> String {
    let demangled = symbols::demangle(&variable.name);
    let index = image.debug_info().index();
    let described = index.variable(variable.address);
    let Some((id, type_id)) = described.and_then(|id| Some((id, index.type_of(id)?))) else {
        return if offset == 0 { demangled } else { format!("{demangled}+{offset}") };
    };
    let is_mangled = demangled != variable.name;
    let name = if is_mangled { demangled } else { index.name(id).unwrap_or(demangled) };
    name + &types::path(index, type_id, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects the promise that one program may serve many threads.
    #[test]
    fn programs_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
    }
}
