//! The symbol table: which function or variable an address belongs to, and names that survive a rebuild.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use object::{Object as _, SymbolKind};

use crate::image::Elf;

/// A function or variable with an address.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// As linked.
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// The linkage name, without a symbol version or the number of a static local.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Not visible to other object files, so others may have the same name.
    local: bool,
    /// The source file that a local symbol came from, as an index into [`Symbols::files`].
    file: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Variable,
}

impl Symbol {
    /// The addresses it covers.
    pub(crate) fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }

    /// Its name was mangled by a Rust compiler.
    pub(crate) fn is_rust(&self) -> bool {
        is_rust(&self.name)
    }

    /// Chooses between several names of one address. The greatest rank has a name that others can link to, then one that
    /// is not reserved, then the shorter one.
    fn rank(&self) -> (bool, Reverse<(usize, usize)>, &str) {
        let underscores = self.name.bytes().take_while(|&byte| byte == b'_').count();
        (!self.local, Reverse((underscores, self.name.len())), &self.name)
    }
}

/// All functions and variables of one file.
#[derive(Default)]
pub(crate) struct Symbols {
    /// By address, and by rank where that is the same.
    by_address: Vec<Symbol>,
    /// Indices into `by_address`, by name and then by address.
    by_name: Vec<usize>,
    /// Base names of source files, of which one may occur more than once.
    files: Vec<String>,
    /// Indices into `by_address`, by [`stem`] and then by address. Most programs are asked for no name of another
    /// build, so that it is made on first use.
    by_stem: OnceLock<HashMap<String, Vec<usize>>>,
}

impl Symbols {
    /// The full table, or the one for dynamic linking in a stripped file.
    pub(crate) fn read(elf: &Elf<'_>) -> Symbols {
        let mut symbols = Symbols::default();
        for symbol in elf.symbols() {
            symbols.add(&symbol);
        }
        if symbols.by_address.is_empty() {
            for symbol in elf.dynamic_symbols() {
                symbols.add(&symbol);
            }
        }
        symbols.by_address.sort_by(|a, b| (a.address, a.rank()).cmp(&(b.address, b.rank())));
        symbols.by_name = (0..symbols.by_address.len()).collect();
        symbols.by_name.sort_by(|&a, &b| {
            let (a, b) = (&symbols.by_address[a], &symbols.by_address[b]);
            (&a.name, a.address).cmp(&(&b.name, b.address))
        });
        symbols
    }

    fn add<'data>(&mut self, symbol: &impl object::ObjectSymbol<'data>) {
        let Ok(name) = symbol.name() else { return };
        let kind = match symbol.kind() {
            SymbolKind::File => return self.files.push(base_name(name).to_string()),
            SymbolKind::Text => Kind::Function,
            SymbolKind::Data => Kind::Variable,
            _ => return,
        };
        let name = name.split('@').next().unwrap_or_default();
        if !symbol.is_definition() || name.is_empty() || symbol.address() == 0 {
            return;
        }
        let local = symbol.is_local();
        let name = if local && kind == Kind::Variable { without_number(name) } else { name };
        self.by_address.push(Symbol {
            address: symbol.address(),
            size: symbol.size(),
            name: name.to_string(),
            kind,
            local,
            // Local symbols follow the entry of their file.
            file: if local { self.files.len().checked_sub(1) } else { None },
        });
    }

    /// The symbol of this kind whose range holds `address`.
    pub(crate) fn at(&self, address: u64, kind: Kind) -> Option<&Symbol> {
        /// How many symbols are tried, the nearest first. Ranges rarely nest, so these are enough.
        const LOOK_BACK: usize = 16;
        let end = self.by_address.partition_point(|symbol| symbol.address <= address);
        let nearest = self.by_address[..end].iter().rev().filter(|symbol| symbol.kind == kind);
        nearest.take(LOOK_BACK).find(|symbol| symbol.range().contains(&address))
    }

    /// All symbols of this kind, by address.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Symbol> {
        self.by_address.iter().filter(move |symbol| symbol.kind == kind)
    }

    /// The symbol of this kind that starts at `address`, whatever its size.
    pub(crate) fn starting_at(&self, address: u64, kind: Kind) -> Option<&Symbol> {
        self.all_starting_at(address).find(|symbol| symbol.kind == kind)
    }

    /// All names for what starts at `address`, the best first.
    pub(crate) fn names_at(&self, address: u64, kind: Kind) -> impl Iterator<Item = &str> {
        self.all_starting_at(address).filter(move |symbol| symbol.kind == kind).map(|symbol| &*symbol.name)
    }

    fn all_starting_at(&self, address: u64) -> impl Iterator<Item = &Symbol> {
        let end = self.by_address.partition_point(|symbol| symbol.address <= address);
        self.by_address[..end].iter().rev().take_while(move |symbol| symbol.address == address)
    }

    /// The functions of this name that can be linked to.
    pub(crate) fn definition(&self, name: &str) -> Option<&Symbol> {
        self.named(name).find(|symbol| symbol.kind == Kind::Function && !symbol.local)
    }

    /// A name that [`Symbols::resolve`] leads back to `symbol`: the linkage name where that is the only one
    /// or can be linked to, else `name@file.c`, and `name@file.c#2` for the second of a file.
    pub(crate) fn unique_name(&self, symbol: &Symbol) -> String {
        let namesakes: Vec<&Symbol> = self.named(&symbol.name).collect();
        if namesakes.len() <= 1 || !symbol.local {
            return symbol.name.clone();
        }
        let file = self.file(symbol);
        let same_file = namesakes.iter().filter(|other| other.local && self.file(other) == file);
        match same_file.filter(|other| other.address < symbol.address).count() {
            0 => format!("{}@{file}", symbol.name),
            before => format!("{}@{file}#{}", symbol.name, before + 1),
        }
    }

    /// The symbol for a name made by [`Symbols::unique_name`], in this build or another. A bare name that has become
    /// ambiguous has none, because a guess could be the wrong variable.
    pub(crate) fn resolve(&self, unique_name: &str) -> Option<&Symbol> {
        let (name, file) = match unique_name.split_once('@') {
            Some((name, file)) => (name, Some(file)),
            None => (unique_name, None),
        };
        let namesakes: Vec<&Symbol> = self.named(name).collect();
        if let [only] = namesakes[..] {
            return Some(only);
        }
        let Some(file) = file else {
            return namesakes.into_iter().find(|symbol| !symbol.local);
        };
        let (file, nth) = match file.rsplit_once('#') {
            Some((file, nth)) => (file, nth.parse::<usize>().ok()?.checked_sub(1)?),
            None => (file, 0),
        };
        namesakes.into_iter().filter(|symbol| symbol.local && self.file(symbol) == file).nth(nth)
    }

    /// Symbols of this kind whose linkage name differs from `name` in what a compiler may change. Those that were
    /// made for the same crate come first: each crate has a copy of its own of a generic or inline function.
    pub(crate) fn of_another_build(&self, name: &str, kind: Kind) -> Vec<&Symbol> {
        let by_stem = self.by_stem.get_or_init(|| {
            let mut by_stem: HashMap<String, Vec<usize>> = HashMap::new();
            for (index, symbol) in self.by_address.iter().enumerate() {
                by_stem.entry(stem(&symbol.name).into_owned()).or_default().push(index);
            }
            by_stem
        });
        let namesakes = by_stem.get(&*stem(name)).into_iter().flatten().map(|&index| &self.by_address[index]);
        let mut alike: Vec<&Symbol> = namesakes.filter(|symbol| symbol.kind == kind).collect();
        alike.sort_by_key(|symbol| instantiating_crate(&symbol.name) != instantiating_crate(name));
        alike
    }

    /// The variable for a name of another build, in which Rust's hashes were others. As in [`Symbols::resolve`],
    /// nothing is guessed.
    pub(crate) fn rust_variable_of_another_build(&self, name: &str) -> Option<&Symbol> {
        match self.of_another_build(name, Kind::Variable)[..] {
            [only] if is_rust(name) => Some(only),
            _ => None,
        }
    }

    /// All symbols of a name, by address, one for each address.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &Symbol> {
        let start = self.by_name.partition_point(|&index| self.by_address[index].name.as_str() < name);
        let symbols = self.by_name[start..].iter().map(|&index| &self.by_address[index]);
        let mut last = None;
        symbols
            .take_while(move |symbol| symbol.name == name)
            .filter(move |symbol| last.replace(symbol.address) != Some(symbol.address))
    }

    fn file(&self, symbol: &Symbol) -> &str {
        symbol.file.and_then(|index| self.files.get(index)).map_or("", String::as_str)
    }
}

/// Removes the number from a static local, which gcc calls `counter.3`. It changes when another one is added.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// A linkage name without what a compiler may change from one build to the next: the hashes of Rust's manglings, and
/// the suffix of a clone such as `.constprop.0`.
pub(crate) fn stem(name: &str) -> Cow<'_, str> {
    let name = name.split('@').next().unwrap_or_default();
    match rust_hash(name) {
        Some(start) => name[..start].into(),
        None if name.starts_with("_R") => demangle(name).into(),
        None => name.split('.').next().unwrap_or_default().into(),
    }
}

/// A linkage name without the hashes of Rust's manglings, which another compiler, dependency or facade changes; names
/// of other languages are left alone.
pub fn without_hashes(name: &str) -> Cow<'_, str> {
    if is_rust(name) { stem(name) } else { name.into() }
}

/// A linkage name that a Rust compiler mangled.
fn is_rust(name: &str) -> bool {
    name.starts_with("_R") || rust_hash(name).is_some()
}

/// Where the `17h0123456789abcdefE` of a legacy Rust name starts.
fn rust_hash(name: &str) -> Option<usize> {
    let start = name.find("17h")?;
    let hash = name.as_bytes().get(start + 3..start + 20)?;
    let is_hash = hash[..16].iter().all(u8::is_ascii_hexdigit) && hash[16] == b'E';
    (name.starts_with("_ZN") && is_hash).then_some(start)
}

/// The crate that this copy of a generic or inline function was made for. It ends a name of the v0 mangling:
/// `Cs4FV0dNO3SBb_4bank`, or `B2_` when the crate stands earlier in the name. Demangled names do not show it.
fn instantiating_crate(name: &str) -> Option<&str> {
    let name = name.strip_prefix("_R")?.split(['@', '.']).next()?;
    let starts_of = |letter| name.match_indices(letter).map(|(start, _)| start);
    let Some(reference) = name.strip_suffix('_') else {
        let mut roots = starts_of('C').filter_map(|start| crate_root(name, start));
        return roots.find(|(_, rest)| rest.is_empty()).map(|(root, _)| root);
    };
    // A `B` may also be a digit of the number that follows the one we look for; that is then no crate's position.
    let mut targets = starts_of('B').rev().filter_map(|start| base_62(reference.get(start + 1..)?));
    targets.find_map(|target| crate_root(name, target)).map(|(root, _)| root)
}

/// The name of the crate whose `C` is at `start` of a v0 name, and what follows it.
fn crate_root(name: &str, start: usize) -> Option<(&str, &str)> {
    let rest = name.get(start..)?.strip_prefix('C')?;
    let rest = match rest.strip_prefix('s') {
        Some(hash) => hash.split_once('_')?.1,
        None => rest,
    };
    let (length, rest) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit())?);
    rest.strip_prefix('_').unwrap_or(rest).split_at_checked(length.parse().ok()?)
}

/// The number that v0 writes as these digits and an underscore: none is 0, `0` is 1.
fn base_62(digits: &str) -> Option<usize> {
    let alphabet = ('0'..='9').chain('a'..='z').chain('A'..='Z');
    let value = |digit| alphabet.clone().position(|letter| letter == digit);
    let number =
        digits.chars().try_fold(0usize, |number, digit| number.checked_mul(62)?.checked_add(value(digit)?));
    if digits.is_empty() { Some(0) } else { number?.checked_add(1) }
}

/// A linkage name as it is written in the source; one that is not mangled is left alone.
pub(crate) fn demangle(name: &str) -> String {
    // Without its prefix, `f` would be the mangled name of the type `float`.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_owned();
    }
    let language = if is_rust(name) { gimli::DW_LANG_Rust } else { gimli::DW_LANG_C_plus_plus };
    match addr2line::demangle(name, language) {
        // A tag of the linker's that nobody wrote.
        Some(demangled) => demangled.replace("[abi:cxx11]", ""),
        None => name.to_string(),
    }
}

/// The part after the last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects finding a function again whose hash or clone number changed with the build.
    #[test]
    fn stems_drop_hashes_and_clone_suffixes() {
        assert_eq!(stem("_ZN4bank7deposit17h0123456789abcdefE"), "_ZN4bank7deposit");
        assert_eq!(stem("_ZN4bank7deposit17h0123456789abcdefE.llvm.12"), "_ZN4bank7deposit");
        assert_eq!(stem("deposit.constprop.0"), "deposit");
        assert_eq!(stem("deposit"), "deposit");
        let of_one_build = "_RNvMs_NtNtCs4FV0dNO3SBb_15crossbeam_utils4sync10wait_groupNtB4_9WaitGroup4wait";
        let of_another = "_RNvMs_NtNtCsFV0dNO3SBb_15crossbeam_utils4sync10wait_groupNtB4_9WaitGroup4wait";
        assert_eq!(stem(of_one_build), stem(of_another));
        assert_ne!(stem(of_one_build), stem("_RNvCs4FV0dNO3SBb_4bank7deposit"));
    }

    /// Protects telling apart the copies of a generic function, of names as rustc 1.95 makes them: at the end,
    /// spelt out or as a reference into the name.
    #[test]
    fn the_crate_of_a_copy_is_read_from_the_end_of_its_name() {
        let loads = "_RINvNtNtCsgEmfK2I1SDS_4core4sync6atomic11atomic_loadjECs7KzZBlU6oIV_6v0demo";
        assert_eq!(instantiating_crate(loads), Some("v0demo"));
        assert_eq!(instantiating_crate("_RNCNvCs7KzZBlU6oIV_6v0demos_3gens_0B3_"), Some("v0demo"));
        let twice = "_RINvCs7KzZBlU6oIV_6v0demo5twiceNCNCNvB2_s_7generic00EB2_";
        assert_eq!(instantiating_crate(twice), Some("v0demo"));
        assert_eq!(instantiating_crate(&format!("{twice}.llvm.12")), Some("v0demo"));
        assert_eq!(instantiating_crate("_RNvCs7KzZBlU6oIV_6v0demo3add"), None);
        assert_eq!(instantiating_crate("_ZN4bank7deposit17h0123456789abcdefE"), None);
        assert_eq!([base_62(""), base_62("0"), base_62("Z"), base_62("10")], [0, 1, 62, 63].map(Some));
        for broken in ["_R", "_RB_", "_RB", "_RC", "_RCs_9bank", "_RNvCs_99999999999999999999bank", "_RBé_"]
        {
            assert_eq!(instantiating_crate(broken), None, "{broken}");
        }
    }

    /// Protects C++ names from being read by Rust's rules, which know no anonymous namespace.
    #[test]
    fn names_are_demangled_by_the_rules_of_their_language() {
        assert_eq!(demangle("_ZN12_GLOBAL__N_17counterE"), "(anonymous namespace)::counter");
        assert_eq!(demangle("_ZZ4nextvE7counter"), "next()::counter");
        assert_eq!(demangle("_ZN4bank7ACCOUNT17h0123456789abcdefE"), "bank::ACCOUNT");
        assert_eq!(demangle("_Z4textB5cxx11"), "text");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("f"), "f");
    }
}
