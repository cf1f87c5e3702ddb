//! A file at the address it is loaded at.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::ProgramError;
use crate::flow::ModuleCode;
use crate::image::Image;
use crate::maps::MappedFile;

/// Where Linux loads a position-independent executable when address space layout is not randomised.
const FIXED_BASE: u64 = 0x5555_5555_4000;

/// An executable or shared object of a process.
pub(crate) struct Module {
    path: PathBuf,
    /// The first address it is loaded at.
    pub(crate) start: u64,
    mappings: Vec<(u64, u64)>,
    /// Read on first use: a process has dozens of libraries, and a run touches few.
    loaded: OnceLock<Option<Loaded>>,
}

/// A file that could be read, and how far from its linked addresses it is.
pub(crate) struct Loaded {
    pub(crate) image: Arc<Image>,
    bias: u64,
}

impl Loaded {
    /// An address of the process as linked, if it is one of this file.
    pub(crate) fn linked(&self, address: u64) -> Option<u64> {
        let linked = address.wrapping_sub(self.bias);
        // A return address may be the one behind the last byte of code.
        let span = self.image.span();
        (span.start..=span.end).contains(&linked).then_some(linked)
    }

    /// The address in the process of an address as linked.
    pub(crate) fn relocated(&self, linked: u64) -> u64 {
        linked.wrapping_add(self.bias)
    }
}

impl Module {
    /// The executable with no process to ask.
    pub(crate) fn executable(path: &Path) -> Result<Module, ProgramError> {
        let image = Image::open(path)?;
        let start = if image.position_independent { FIXED_BASE } else { image.span().start };
        let bias = start.wrapping_sub(image.span().start);
        let loaded = OnceLock::from(Some(Loaded { image, bias }));
        Ok(Module { path: path.into(), start, mappings: Vec::new(), loaded })
    }

    /// The executable as mapped.
    pub(crate) fn mapped_executable(path: &Path, mapped: MappedFile) -> Result<Module, ProgramError> {
        let image = Image::open(path)?;
        let loaded = place(image, &mapped.mappings).ok_or_else(|| ProgramError::NotAnExecutable {
            path: path.into(),
            reason: "it is not the file that was loaded".to_string(),
        })?;
        let path = path.to_path_buf();
        Ok(Module { path, loaded: OnceLock::from(Some(loaded)), ..Module::library(mapped) })
    }

    /// A shared object, not looked at yet.
    pub(crate) fn library(mapped: MappedFile) -> Module {
        let start = mapped.mappings.first().map_or(u64::MAX, |&(address, _)| address);
        Module { path: mapped.path, start, mappings: mapped.mappings, loaded: OnceLock::new() }
    }

    /// `None` when the file is gone or is no library.
    pub(crate) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.get_or_init(|| place(Image::open(&self.path).ok()?, &self.mappings)).as_ref()
    }

    /// What its code does.
    pub(crate) fn code(&self) -> Option<ModuleCode<'_>> {
        self.loaded().map(|loaded| ModuleCode::new(&loaded.image, loaded.bias))
    }

    /// The file's base name.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn place(image: Arc<Image>, mappings: &[(u64, u64)]) -> Option<Loaded> {
    let bias = mappings.iter().find_map(|&(address, offset)| image.bias(address, offset))?;
    Some(Loaded { image, bias })
}
