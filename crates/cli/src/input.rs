//! What the tested program is given on its standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use threadbare_executor::Input;
use threadbare_formats::clip::ClipInput;
use threadbare_trace::hash::fingerprint;

use crate::problem::Problem;

/// What `--stdin` names, read whole.
pub struct Given {
    bytes: Vec<u8>,
    /// `None` where it was this command's own input.
    path: Option<PathBuf>,
}

/// Reads what `--stdin` names.
pub fn read(option: &Path) -> Result<Given, Problem> {
    if option != Path::new("-") {
        let bytes = fs::read(option).map_err(|error| Problem::file("read", option, error))?;
        return Ok(Given { bytes, path: Some(option.to_owned()) });
    }
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Problem::new(format!("cannot read standard input: {error}")))?;
    Ok(Given { bytes, path: None })
}

/// Reads what a clip names: where it says, or else beside the clip, which may have been moved there with it.
pub fn read_again(input: &ClipInput, clip: &Path) -> Result<Given, Problem> {
    let named = PathBuf::from(&input.path);
    let beside = clip.with_file_name(named.file_name().unwrap_or_default());
    let path = if !named.exists() && beside.exists() { beside } else { named };
    let given = read(&path).map_err(|problem| {
        problem.help("the clip needs it as standard input; if it is elsewhere now, use replay --stdin")
    })?;
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
    /// As the executor takes it.
    pub fn input(&self) -> Result<Input, Problem> {
        Input::new(&self.bytes)
            .map_err(|error| Problem::new(format!("cannot keep standard input in memory: {error}")))
    }

    /// As a clip names it. What has no file yet will have one in `directory`, as soon as a clip needs it.
    pub fn named(&self, program: &str, directory: &Path) -> ClipInput {
        let fingerprint = fingerprint(&self.bytes);
        let path = match &self.path {
            Some(path) => path.clone(),
            None => directory.join(format!("{program}-{fingerprint:016x}.stdin")),
        };
        ClipInput { path: path.to_string_lossy().into_owned(), fingerprint }
    }

    /// The bytes, where they stand in no file.
    pub fn unsaved(self) -> Option<Vec<u8>> {
        self.path.is_none().then_some(self.bytes)
    }
}
