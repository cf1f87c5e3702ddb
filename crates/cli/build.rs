//! Lists the facade's source files, so that all of them travel inside the tool.
//!
//! `facade/` is a link to the facade's `src`; `cargo package` puts the files in its place.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=facade");
    let facade = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"))
        .join("facade");
    let mut files = Vec::new();
    list(&facade, &mut files).expect("cannot list the facade's files");
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&facade).expect("files are in the directory");
        writeln!(
            list,
            "    ({:?}, include_str!({:?})),",
            name.display().to_string(),
            file.display().to_string()
        )
        .expect("a string takes everything");
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("facade.rs"), list).expect("cannot write the list of the facade's files");
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
