//! Places as users name them: the code of a source line or of a function, and the calls that it makes.
//!
//! Instrumented code calls the runtime wherever it does something that a run can notice. So the calls of a line are where
//! a run can best be seen to pass it. A line may have code in many places: in each instance of a generic function, and in each
//! function that one was inlined into. All of them count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

use crate::image::Image;
use crate::symbols::{self, Kind, Symbol};
use crate::{Program, is_library_function};

/// The lines of a source file that have code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlaces {
    /// The lines that make calls, with the addresses that those return to.
    pub calls: BTreeMap<u32, Vec<u64>>,
    /// The lines that have code of any kind, with the address where each piece of it begins.
    pub code: BTreeMap<u32, Vec<u64>>,
}

/// The code of a function, in each of its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPlaces {
    /// Where it begins. It has no such place if it was inlined wherever it is called.
    pub entries: Vec<u64>,
    /// The addresses that its calls return to.
    pub calls: Vec<u64>,
}

impl Program {
    /// The paths of the source files that instrumented code was compiled from, as compilers recorded them.
    pub fn source_files(&self) -> BTreeSet<String> {
        self.instrumented().flat_map(|(image, _)| image.debug_info().files()).collect()
    }

    /// The places of a source file.
    pub fn places_in_file(&self, path: &str) -> FilePlaces {
        let mut places = FilePlaces::default();
        for (image, relocate) in self.instrumented() {
            let debug_info = image.debug_info();
            let functions = debug_info.functions_with_file(path);
            for call in functions.iter().flat_map(|range| calls_in(image, range)) {
                for frame in debug_info.frames_at(call - 1).iter().filter(|frame| frame.file == path) {
                    places.calls.entry(frame.line).or_default().push(relocate(call));
                }
            }
            for (line, address) in debug_info.statements(path) {
                if functions.iter().any(|range| range.contains(&address)) {
                    places.code.entry(line).or_default().push(relocate(address));
                }
            }
        }
        for addresses in places.calls.values_mut().chain(places.code.values_mut()) {
            addresses.sort_unstable();
            addresses.dedup();
        }
        places
    }

    /// The functions whose name `is_meant`, by name.
    pub fn functions_named(&self, is_meant: &dyn Fn(&str) -> bool) -> BTreeMap<String, FunctionPlaces> {
        let mut functions: BTreeMap<String, FunctionPlaces> = BTreeMap::new();
        for (image, relocate) in self.instrumented() {
            for symbol in image.symbols.all(Kind::Function) {
                let name = name_of(symbol);
                if is_meant(&name) {
                    let function = functions.entry(name).or_default();
                    function.entries.push(relocate(symbol.address));
                    function.calls.extend(calls_in(image, &symbol.range()).into_iter().map(&relocate));
                }
            }
        }
        if functions.is_empty() {
            self.add_inlined(is_meant, &mut functions);
        }
        for function in functions.values_mut() {
            function.calls.sort_unstable();
            function.calls.dedup();
        }
        functions
    }

    /// The same for functions that have no code of their own, because they were inlined wherever they are called.
    fn add_inlined(&self, is_meant: &dyn Fn(&str) -> bool, functions: &mut BTreeMap<String, FunctionPlaces>) {
        for (image, relocate) in self.instrumented() {
            let debug_info = image.debug_info();
            let calls = image.symbols.all(Kind::Function).flat_map(|symbol| calls_in(image, &symbol.range()));
            for call in calls {
                for frame in debug_info.frames_at(call - 1) {
                    if is_meant(&frame.function) {
                        functions.entry(frame.function).or_default().calls.push(relocate(call));
                    }
                }
            }
        }
    }

    /// The names of the program's own functions.
    pub fn function_names(&self) -> BTreeSet<String> {
        let functions = self.instrumented().flat_map(|(image, _)| image.symbols.all(Kind::Function));
        functions.map(name_of).filter(|name| !is_library_function(name)).collect()
    }
}

fn name_of(symbol: &Symbol) -> String {
    symbols::without_hashes(&symbols::demangle(&symbol.name)).into_owned()
}

/// The addresses that the calls in a range of code return to, as linked.
fn calls_in(image: &Image, range: &Range<u64>) -> Vec<u64> {
    let code = image.loaded(range.start, range.end - range.start).unwrap_or_default();
    let decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
    decoder.into_iter().filter(|at| at.mnemonic() == Mnemonic::Call).map(|at| at.next_ip()).collect()
}
