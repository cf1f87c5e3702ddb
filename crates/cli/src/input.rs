//! The standard input of the tested program.

use std::io;
use std::path::{Path, PathBuf};

use threadbare_executor::Input;
use threadbare_formats::clip::ClipInput;
use threadbare_program::bounded;
use threadbare_trace::hash::fingerprint;

use crate::files::{self, INPUT_LIMIT};
use crate::problem::Problem;

/// The contents of the file that `--stdin` names.
pub struct Given {
    bytes: Vec<u8>,
    /// `None` if it was this command's own input.
    path: Option<PathBuf>,
}

/// Reads the file that `--stdin` names.
pub fn read(option: &Path) -> Result<Given, Problem> {
    if option != Path::new("-") {
        let bytes = files::read(option, INPUT_LIMIT)?;
        return Ok(Given { bytes, path: Some(option.to_owned()) });
    }
    let bytes = bounded::read_stream(io::stdin().lock(), INPUT_LIMIT)
        .map_err(|error| files::problem(Path::new("standard input"), error))?;
    Ok(Given { bytes, path: None })
}

/// Reads the input that a clip names: at its path, which begins at `directory`, or else beside the clip, because both may
/// have been moved.
pub fn read_again(input: &ClipInput, directory: &Path, clip: &Path) -> Result<Given, Problem> {
    let named = directory.join(&input.path);
    let beside = clip.with_file_name(named.file_name().unwrap_or_default());
    let path = if !named.exists() && beside.exists() { beside } else { named };
    let bytes = files::read_regular(&path, INPUT_LIMIT).map_err(|problem| {
        problem.help("the clip needs it as standard input; if it is elsewhere now, use replay --stdin")
    })?;
    let given = Given { bytes, path: Some(path.clone()) };
    if fingerprint(&given.bytes) != input.fingerprint {
        return Err(Problem::new(format!(
            "{} is not what it was when the clip was made, and the program reads it as standard input",
            path.display()
        ))
        .help("to run the clip on it all the same, use replay --stdin; or hunt again"));
    }
    Ok(given)
}

impl Given {
    /// The input for the executor.
    pub fn input(&self) -> Result<Input, Problem> {
        Input::new(&self.bytes)
            .map_err(|error| Problem::new(format!("cannot keep standard input in memory: {error}")))
    }

    /// The input as a clip names it. Input without a file gets one in `directory` with the first clip.
    pub fn named(&self, program: &str, directory: &Path) -> ClipInput {
        let fingerprint = fingerprint(&self.bytes);
        let path = match &self.path {
            Some(path) => path.clone(),
            None => directory.join(format!("{program}-{fingerprint:016x}.stdin")),
        };
        ClipInput { path: path.to_string_lossy().into_owned(), fingerprint }
    }

    /// The bytes, if they are in no file.
    pub fn unsaved(self) -> Option<Vec<u8>> {
        self.path.is_none().then_some(self.bytes)
    }
}
