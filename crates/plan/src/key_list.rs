//! Keys to build, and lists of them as MIOpen writes them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use gfxpack_model::key_record::KeyRecord;
use gfxpack_model::{Error, KernelKey, Language};

use crate::arguments;
use crate::location::Location;
use crate::workers::{InTurn, Workers};

/// At most this many keys' commands are in memory besides the plan.
pub(crate) const KEYS_AT_ONCE: usize = 16 * 1024;

/// One key to build, with the origin of its source and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    /// The key that MIOpen will look up.
    pub key: Arc<KernelKey>,
    /// The source's language.
    pub language: Language,
    /// The source as named in the manifest, or the bare file name in a key.
    pub source: Arc<Path>,
    /// The line with the key.
    pub location: Location,
}

impl KeyRequest {
    /// A key with the source and the language that its name says.
    ///
    /// # Errors
    /// For a key that MIOpen could not find, or that can't be compiled with its options.
    pub fn new(key: Arc<KernelKey>, location: Location) -> Result<Self, Error> {
        let language = key.check()?;
        arguments::parse(language, key.options())?;
        let source = Path::new(key.source_name().unwrap_or_default()).into();
        Ok(Self { key, language, source, location })
    }

    /// The options in the key, without the device.
    pub fn options(&self) -> &str {
        self.key.options()
    }
}

/// The content of a key list.
#[derive(Debug, Default)]
pub struct KeyList {
    /// The keys, in the order of the lines.
    pub keys: Vec<KeyRequest>,
    /// Keys that no compiler can build, or that MIOpen could never find, with the reason and the
    /// line. MIOpen writes such keys too; the others of the list are used.
    pub unusable: Vec<(KernelKey, Location, Error)>,
    /// The first line that is no key, and the number of such lines.
    pub unread: Option<(Error, usize)>,
}

/// Reads the keys of a JSON Lines list: one object per line with `kernel_name` and `kernel_args`,
/// taken byte for byte, and the other fields of [`KeyRecord`]; empty lines are skipped. The text
/// comes in parts: with very many keys, it would take as much memory as they do.
#[derive(Debug, Default)]
pub struct KeyReader {
    file: Arc<str>,
    /// Each key with its line.
    seen: HashMap<Arc<KernelKey>, usize>,
    /// Names of sources, each held once for all its keys.
    sources: HashSet<Arc<Path>>,
    list: KeyList,
}

impl KeyReader {
    /// A reader that has read nothing.
    pub fn new(file: &str) -> Self {
        Self { file: file.into(), ..Self::default() }
    }

    /// Reads lines, each with its number from 1.
    ///
    /// # Errors
    /// With the line that repeats a key.
    pub fn add(
        &mut self,
        lines: &[(usize, impl AsRef<str> + Sync)],
        workers: &impl Workers,
    ) -> Result<(), Error> {
        for lines in lines.chunks(KEYS_AT_ONCE) {
            let parsed = workers.map(lines, |(number, line)| {
                let (number, line) = (*number, line.as_ref());
                let request = |record: KeyRecord| {
                    let key = Arc::new(record.key);
                    let request = KeyRequest::new(Arc::clone(&key), self.location(number));
                    (key, record.of_build, request)
                };
                let parsed = || (number, serde_json::from_str(line).map(request));
                (!line.trim().is_empty()).then(parsed)
            });
            for (number, key) in parsed.into_iter().flatten() {
                match key {
                    Ok((key, true, _)) if self.seen.contains_key(&key) => {}
                    Ok((key, _, request)) => self.add_key(number, key, request)?,
                    Err(error) => self.unread(number, &error),
                }
            }
        }
        Ok(())
    }

    fn location(&self, line: usize) -> Location {
        Location { file: Arc::clone(&self.file), line }
    }

    fn unread(&mut self, line: usize, error: &serde_json::Error) {
        let location = self.location(line);
        let first = || {
            let error = location.fault(
                format!("failed to parse: {}", in_its_line(error)),
                "write one key a line, as {\"kernel_name\": \"NAME.cl.o\", \"kernel_args\": \
                 \" -DX=1 -mcpu=gfx906\"}; docs/manifest.md has more",
            );
            (error, 0)
        };
        self.list.unread.get_or_insert_with(first).1 += 1;
    }

    fn add_key(
        &mut self,
        line: usize,
        key: Arc<KernelKey>,
        request: Result<KeyRequest, Error>,
    ) -> Result<(), Error> {
        let location = self.location(line);
        if let Some(line) = self.seen.insert(Arc::clone(&key), line) {
            let first = Location { file: Arc::clone(&self.file), line };
            return Err(location.duplicate(&key, &first));
        }
        match request {
            Ok(mut request) => {
                match self.sources.get(&request.source) {
                    Some(source) => request.source = Arc::clone(source),
                    None => drop(self.sources.insert(Arc::clone(&request.source))),
                }
                self.list.keys.push(request);
            }
            Err(error) => self.list.unusable.push((KernelKey::clone(&key), location, error)),
        }
        Ok(())
    }

    /// All keys that were read.
    ///
    /// # Errors
    /// With the first line, if no line is a key.
    pub fn finish(self) -> Result<KeyList, Error> {
        match self.list {
            KeyList { keys, unusable, unread: Some((first, _)) }
                if keys.is_empty() && unusable.is_empty() =>
            {
                Err(first)
            }
            list => Ok(list),
        }
    }
}

/// The keys of a list whose whole text is in memory.
pub fn parse_keys(file: &str, text: &str) -> Result<KeyList, Error> {
    let mut reader = KeyReader::new(file);
    reader.add(&(1..).zip(text.lines()).collect::<Vec<_>>(), &InTurn)?;
    reader.finish()
}

/// The message of the JSON parser about a line, which it counts as the first one.
fn in_its_line(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.is_syntax() || error.is_eof() {
        return format!("it is no JSON, from column {column} on");
    }
    let message = error.to_string();
    match message.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(message) => format!("{message}, column {column}"),
        None => message,
    }
}
