//! Split DWARF: debug information that the compiler has left beside the program (`-gsplit-dwarf`).
//!
//! The program itself then has a skeleton of each unit, with the lines, and the name of the `.dwo` file that has the rest.
//! A `.dwp` package beside the program, which `dwp` makes, takes the place of all its `.dwo` files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gimli::DwoId;

use crate::bounded;
use crate::image::{Elf, MAX_BYTES, Reader, empty_reader, section_reader};

type Dwarf = gimli::Dwarf<Reader>;

/// The files of one program.
pub(crate) struct SplitFiles {
    program: PathBuf,
    /// Read on first use, because most programs have none.
    package: OnceLock<Option<gimli::DwarfPackage<Reader>>>,
}

/// How a skeleton names its other part.
pub(crate) struct SplitName {
    pub(crate) id: DwoId,
    pub(crate) directory: Option<Reader>,
    pub(crate) file: Option<Reader>,
}

impl SplitName {
    /// Of the unit, if it is a skeleton.
    pub(crate) fn of(dwarf: &Dwarf, unit: &gimli::Unit<Reader>) -> Option<SplitName> {
        let file = unit.dwo_name().ok()??;
        let file = dwarf.attr_string(unit, file).ok()?;
        Some(SplitName { id: unit.dwo_id?, directory: unit.comp_dir.clone(), file: Some(file) })
    }

    /// The file where the compiler put it.
    pub(crate) fn path(&self) -> PathBuf {
        let path = |reader: &Option<Reader>| {
            reader.as_ref().map(|reader| PathBuf::from(OsStr::from_bytes(reader.bytes()))).unwrap_or_default()
        };
        path(&self.directory).join(path(&self.file))
    }
}

impl SplitFiles {
    pub(crate) fn of(program: &Path) -> SplitFiles {
        SplitFiles { program: program.into(), package: OnceLock::new() }
    }

    /// The part that a skeleton of `parent` names. It must be of the same compilation.
    pub(crate) fn load(&self, name: &SplitName, parent: &Dwarf) -> Option<Arc<Dwarf>> {
        if let Some(packed) = self.package().and_then(|package| package.find_cu(name.id, parent).ok()?) {
            return Some(Arc::new(packed));
        }
        let path = name.path();
        // The program may have been moved together with its files.
        let beside = self.program.with_file_name(path.file_name()?);
        [path, beside].iter().find_map(|path| {
            let mut dwarf = gimli::Dwarf::load(sections(path)?).ok()?;
            dwarf.make_dwo(parent);
            let unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
            (unit.dwo_id == Some(name.id)).then(|| Arc::new(dwarf))
        })
    }

    fn package(&self) -> Option<&gimli::DwarfPackage<Reader>> {
        let load = || {
            let mut path = self.program.clone().into_os_string();
            path.push(".dwp");
            gimli::DwarfPackage::load(sections(Path::new(&path))?, empty_reader()).ok()
        };
        self.package.get_or_init(load).as_ref()
    }
}

/// Gives the sections of a file by what they hold. What is missing counts as empty.
fn sections(path: &Path) -> Option<impl Fn(gimli::SectionId) -> Result<Reader, gimli::Error>> {
    let bytes: Arc<[u8]> = bounded::read_regular(path, MAX_BYTES).ok()?.into();
    Elf::parse(&*bytes).ok()?;
    Some(move |id: gimli::SectionId| {
        let section = || {
            let elf = Elf::parse(&*bytes).ok()?;
            section_reader(&bytes, &object::Object::section_by_name(&elf, id.dwo_name()?)?)
        };
        Ok(section().unwrap_or_else(empty_reader))
    })
}
