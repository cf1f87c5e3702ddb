//! Reading a clip.

use std::fmt;
use std::str::FromStr;

use super::text::{read_text, read_word};
use super::{
    Clip, ClipEvent, ClipExtent, ClipInput, ClipSite, ClipStep, ClipUntil, OLDEST_VERSION, SiteIndex, VERSION,
};
use threadbare_trace::{EventKind, Outlasting, Site, ThreadId};

/// A clip could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClipError {
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for ClipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ClipError {}

/// The sections, in the order in which they come. Until the first of them there are fields.
const SECTIONS: [&str; 5] = ["[sites]", "[tracked]", "[watched]", "[steps]", "[events]"];

impl Clip {
    /// Reads the bytes of a file.
    pub fn read(bytes: &[u8]) -> Result<Clip, ClipError> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
            ClipError { line, message: "expected text, found bytes that are not UTF-8".to_owned() }
        })?;
        text.parse()
    }
}

impl FromStr for Clip {
    type Err = ClipError;

    fn from_str(text: &str) -> Result<Clip, ClipError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let (_, head) = lines.next().unwrap_or((1, ""));
        let version = read_head(head).map_err(|message| ClipError { line: 1, message })?;

        let mut fields = Fields::default();
        let mut lists = Lists { version, ..Lists::default() };
        // How many sections have begun or been left out.
        let mut begun = 0;
        let mut last_line = 1;
        for (number, line) in lines {
            last_line = number;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = match begun {
                _ if line.starts_with('[') => section(line, begun).map(|section| begun = section + 1),
                0 => fields.read(line),
                _ => lists.read(begun - 1, line),
            };
            read.map_err(|message| ClipError { line: number, message })?;
        }
        fields.into_clip(lists).map_err(|message| ClipError { line: last_line, message })
    }
}

/// The version of the clip.
fn read_head(line: &str) -> Result<u32, String> {
    let version = line
        .strip_prefix("threadbare clip ")
        .ok_or_else(|| format!("expected a clip, which begins with `threadbare clip {VERSION}`"))?;
    (OLDEST_VERSION..=VERSION).find(|known| version == known.to_string()).ok_or_else(|| {
        format!(
            "the clip is of version {version}, and this build of Threadbare reads versions up to {VERSION}"
        )
    })
}

/// The index of the section that begins, given how many did before.
fn section(line: &str, begun: usize) -> Result<usize, String> {
    let index = SECTIONS
        .iter()
        .position(|&section| section == line)
        .ok_or_else(|| format!("expected one of {}, found `{line}`", SECTIONS.join(" ")))?;
    if index < begun {
        return Err(format!("`{line}` is there twice or too late; the order is {}", SECTIONS.join(" ")));
    }
    Ok(index)
}

/// What stands above the sections.
#[derive(Default)]
struct Fields {
    directory: Option<String>,
    target: Option<String>,
    compiler_arguments: Vec<String>,
    arguments: Vec<String>,
    input: Option<ClipInput>,
    finding: Option<String>,
    message: Option<String>,
    seed: Option<u64>,
    max_events: Option<u64>,
    spurious: Option<u32>,
    outlasting: Option<Outlasting>,
    guarded: Option<()>,
}

impl Fields {
    fn read(&mut self, line: &str) -> Result<(), String> {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "directory" => set(&mut self.directory, key, read_text(value)?),
            "target" => set(&mut self.target, key, read_text(value)?),
            "compiler-argument" => {
                self.compiler_arguments.push(read_text(value)?);
                Ok(())
            }
            "argument" => {
                self.arguments.push(read_text(value)?);
                Ok(())
            }
            "input" => set(&mut self.input, key, input(value)?),
            "finding" => set(&mut self.finding, key, read_text(value)?),
            "message" => set(&mut self.message, key, read_text(value)?),
            "seed" => set(&mut self.seed, key, number(value, "a seed")?),
            "max-events" => set(&mut self.max_events, key, number(value, "a number of events")?),
            "spurious-wakeups" => set(&mut self.spurious, key, number(value, "a number of wake-ups")?),
            "outlasted-sleeps" => set(&mut self.outlasting, key, outlasting(value)?),
            "guarded-heap" if value.is_empty() => set(&mut self.guarded, key, ()),
            _ => Err(format!("expected a field such as `target` or `seed`, found `{key}`")),
        }
    }

    fn into_clip(self, lists: Lists) -> Result<Clip, String> {
        let missing =
            |field| format!("expected a line that begins with `{field}`, found none before the sections");
        Ok(Clip {
            directory: self.directory,
            target: self.target.ok_or_else(|| missing("target"))?,
            compiler_arguments: self.compiler_arguments,
            arguments: self.arguments,
            input: self.input,
            finding: self.finding.ok_or_else(|| missing("finding"))?,
            message: self.message.ok_or_else(|| missing("message"))?,
            seed: self.seed.ok_or_else(|| missing("seed"))?,
            max_events: self.max_events.ok_or_else(|| missing("max-events"))?,
            spurious: self.spurious.unwrap_or(0),
            outlasting: self.outlasting.unwrap_or_default(),
            guarded: self.guarded.is_some(),
            sites: lists.sites,
            tracked: lists.tracked,
            watched: lists.watched,
            steps: lists.steps,
            events: lists.events,
        })
    }
}

fn input(value: &str) -> Result<ClipInput, String> {
    let (fingerprint, path) = value.split_once(' ').unwrap_or((value, ""));
    Ok(ClipInput { path: read_text(path)?, fingerprint: number(fingerprint, "a fingerprint")? })
}

fn outlasting(value: &str) -> Result<Outlasting, String> {
    let (sleeps, longest) = value.split_once(' ').unwrap_or((value, ""));
    Ok(Outlasting { sleeps: number(sleeps, "a number of sleeps")?, longest: number(longest, "nanoseconds")? })
}

fn set<T>(field: &mut Option<T>, key: &str, value: T) -> Result<(), String> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("`{key}` is there twice")),
    }
}

/// What stands in the sections.
#[derive(Default)]
struct Lists {
    version: u32,
    sites: Vec<ClipSite>,
    tracked: Vec<ClipExtent>,
    watched: Vec<SiteIndex>,
    steps: Vec<ClipStep>,
    events: Vec<ClipEvent>,
}

impl Lists {
    /// Reads a line of the section with this index.
    fn read(&mut self, section: usize, line: &str) -> Result<(), String> {
        let mut words = Words { rest: line, sites: self.sites.len(), version: self.version };
        match SECTIONS[section] {
            "[sites]" => self.sites.push(words.site()?),
            "[tracked]" => self.tracked.push(words.extent()?),
            "[watched]" => self.watched.push(words.watched()?),
            "[steps]" => self.steps.push(words.step()?),
            _ => self.events.push(words.event()?),
        }
        Ok(())
    }
}

/// The part of a line that is still to be read.
struct Words<'a> {
    rest: &'a str,
    /// How many sites there are to refer to.
    sites: usize,
    /// The version of the clip.
    version: u32,
}

impl<'a> Words<'a> {
    fn word(&mut self, expected: &str) -> Result<&'a str, String> {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        if word.is_empty() {
            return Err(match self.rest {
                "" => format!("expected {expected}, found the end of the line"),
                _ => format!("expected {expected}, found a second blank"),
            });
        }
        self.rest = rest;
        Ok(word)
    }

    fn thread(&mut self) -> Result<ThreadId, String> {
        self.word("a thread")?
            .parse()
            .map_err(|error: threadbare_trace::thread::InvalidThreadId| error.to_string())
    }

    /// A site that the line may refer to here.
    fn site_reference(&mut self) -> Result<Option<SiteIndex>, String> {
        if !self.rest.starts_with('@') {
            return Ok(None);
        }
        let index = SiteIndex::new(number(&self.word("a site")?[1..], "a site's number after `@`")?);
        if index.index() >= self.sites {
            return Err(format!("expected one of the {} sites above, found `@{index}`", self.sites));
        }
        Ok(Some(index))
    }

    fn watched(&mut self) -> Result<SiteIndex, String> {
        let site = self
            .site_reference()?
            .ok_or_else(|| format!("expected a site such as `@1`, found `{}`", self.rest))?;
        self.finish()?;
        Ok(site)
    }

    fn range<S: TryFrom<i128>>(&mut self) -> Result<(S, u64), String> {
        let range = self.word("a range of bytes")?;
        let wrong = || format!("expected a range of bytes such as `8..16`, found `{range}`");
        let (start, end) = range.split_once("..").ok_or_else(wrong)?;
        let (start, end): (i128, i128) = (number(start, "a start")?, number(end, "an end")?);
        let len = end.checked_sub(start).and_then(|len| u64::try_from(len).ok());
        Ok((S::try_from(start).map_err(|_| wrong())?, len.ok_or_else(wrong)?))
    }

    /// Nothing may be left of the line.
    fn finish(&self) -> Result<(), String> {
        match self.rest {
            "" => Ok(()),
            rest => Err(format!("expected the end of the line, found `{rest}`")),
        }
    }

    fn site(&mut self) -> Result<ClipSite, String> {
        let index: usize = number(self.word("a site's number")?, "a site's number")?;
        if index != self.sites {
            return Err(format!("expected site {} to come next, found site {index}", self.sites));
        }
        let function = self.word("a function")?;
        if self.rest.is_empty() && function.starts_with("0x") && self.version > 1 {
            return Ok(ClipSite::Address(number(function, "an address")?));
        }
        let function = read_word(function)?;
        let place = self.word("a place such as `account.c:42:18`")?;
        let mut parts = place.rsplitn(3, ':');
        let (Some(column), Some(line), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("expected a place such as `account.c:42:18`, found `{place}`"));
        };
        let site = Site {
            function,
            file: read_word(file)?,
            line: number(line, "a line")?,
            column: number(column, "a column")?,
            callee: read_word(self.word("the function called")?)?,
            nth: number(self.word("a number")?, "which of the calls it is")?,
            text: String::new(),
        };
        match self.word("`|` and the source line")? {
            "|" => Ok(self.understood(Site { text: read_text(self.rest)?, ..site })),
            other => Err(format!("expected `|` and the source line, found `{other}`")),
        }
    }

    /// What a site with all its words stands for. In version 1 that may be an address.
    fn understood(&self, site: Site) -> ClipSite {
        let is_bare = site == Site { function: site.function.clone(), ..Site::default() };
        match site.function.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
            Some(Ok(address)) if self.version == 1 && is_bare => ClipSite::Address(address),
            _ => ClipSite::Source(site),
        }
    }

    fn extent(&mut self) -> Result<ClipExtent, String> {
        let extent = match self.word("a kind of memory")? {
            "global" => {
                let symbol = read_word(self.word("a symbol")?)?;
                let (offset, len) = self.range()?;
                ClipExtent::Global { symbol, offset, len }
            }
            "heap" => {
                let mut calls = Vec::new();
                while let Some(call) = self.site_reference()? {
                    calls.push(call);
                }
                let (start, len) = self.range()?;
                ClipExtent::Heap { calls, start, len }
            }
            "stack" => {
                let thread = self.thread()?;
                let (start, len) = self.range()?;
                ClipExtent::Stack { thread, start, len }
            }
            "memory" => {
                let (start, len) = self.range()?;
                ClipExtent::Memory { start, len }
            }
            other => return Err(format!("expected `global`, `heap`, `stack` or `memory`, found `{other}`")),
        };
        self.finish()?;
        Ok(extent)
    }

    fn step(&mut self) -> Result<ClipStep, String> {
        let thread = self.thread()?;
        match self.word("`until`")? {
            "until" => {}
            other => return Err(format!("expected `until`, found `{other}`")),
        }
        let until = match self.word("an event kind or `ended`")? {
            "ended" => ClipUntil::End,
            kind => {
                let kind = event_kind(kind)?;
                let site = self.site_reference()?;
                let occurrence = self.word("`#` and which occurrence")?;
                let digits = occurrence
                    .strip_prefix('#')
                    .ok_or_else(|| format!("expected `#` and which occurrence, found `{occurrence}`"))?;
                ClipUntil::Before { kind, site, occurrence: number(digits, "which occurrence")? }
            }
        };
        self.finish()?;
        Ok(ClipStep { thread, until })
    }

    fn event(&mut self) -> Result<ClipEvent, String> {
        let thread = self.thread()?;
        let kind = event_kind(self.word("an event kind")?)?;
        let site = self.site_reference()?;
        Ok(ClipEvent { thread, kind, site, object: read_text(self.rest)? })
    }
}

fn event_kind(name: &str) -> Result<EventKind, String> {
    EventKind::from_name(name)
        .ok_or_else(|| format!("expected an event kind such as `write`, found `{name}`"))
}

/// A number, decimal or hexadecimal, in the range of the type that is asked for.
fn number<T: TryFrom<i128>>(text: &str, expected: &str) -> Result<T, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("expected {expected}, found `{text}`"))
}
