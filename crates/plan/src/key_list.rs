//! Keys that are to be built, and lists of them as MIOpen writes them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gfxpack_model::key_record::KeyRecord;
use gfxpack_model::{KernelKey, Language};

use crate::location::{InputError, InputFault, Location};
use crate::workers::{InTurn, Workers};

/// How many keys' commands are held beside the plan.
pub(crate) const KEYS_AT_ONCE: usize = 16 * 1024;

/// One key to build, with where its source and options come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    /// What MIOpen will ask for.
    pub key: Arc<KernelKey>,
    /// The source's language.
    pub language: Language,
    /// The source as the manifest names it, or the bare file name of a key.
    pub source: Arc<Path>,
    /// The line that asked for it.
    pub location: Location,
}

impl KeyRequest {
    /// The options in the key, without the device.
    #[must_use]
    pub fn options(&self) -> &str {
        self.key.options()
    }
}

/// What a list of keys holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyList {
    /// The keys, in the order of the lines.
    pub requests: Vec<KeyRequest>,
    /// Keys that no compiler can be asked for, or that MIOpen could never
    /// find, with the reason and the line: MIOpen writes such keys too, and
    /// the others of the list are worth it.
    pub unusable: Vec<(KernelKey, InputError)>,
}

/// The keys of a JSON Lines list: one object with `kernel_name` and
/// `kernel_args` a line, taken byte for byte, and what [`KeyRecord`] knows
/// besides; empty lines are skipped.
///
/// # Errors
/// [`InputError`] with the line that is no such object or repeats a key, or
/// where there is no key at all.
pub fn parse_keys(file: &str, text: &str) -> Result<KeyList, InputError> {
    let mut reader = KeyReader::new(file);
    reader.add(text, &InTurn)?;
    reader.finish()
}

/// Reads keys as [`parse_keys`] does, from text that comes in parts: of very
/// many keys, the text takes as much memory as they do.
#[derive(Debug)]
pub struct KeyReader {
    file: Arc<str>,
    /// Lines so far.
    lines: usize,
    /// Each key with its line.
    seen: HashMap<Arc<KernelKey>, usize>,
    sources: HashMap<String, Arc<Path>>,
    list: KeyList,
}

impl KeyReader {
    /// Ready for the first line.
    #[must_use]
    pub fn new(file: &str) -> Self {
        Self {
            file: file.into(),
            lines: 0,
            seen: HashMap::new(),
            sources: HashMap::new(),
            list: KeyList { requests: Vec::new(), unusable: Vec::new() },
        }
    }

    /// Reads whole lines.
    ///
    /// # Errors
    /// As [`parse_keys`].
    pub fn add(&mut self, text: &str, workers: &impl Workers) -> Result<(), InputError> {
        // Editors put a mark before UTF-8 that JSON knows nothing of.
        let text = if self.lines == 0 { text.trim_start_matches('\u{feff}') } else { text };
        let lines: Vec<&str> = text.lines().collect();
        for lines in lines.chunks(KEYS_AT_ONCE) {
            let parsed = workers.map(lines, |line| {
                let record = || serde_json::from_str::<KeyRecord>(line).map(|record| record.key);
                (!line.trim().is_empty()).then(record)
            });
            for key in parsed {
                self.lines += 1;
                if let Some(key) = key {
                    self.one(key)?;
                }
            }
        }
        Ok(())
    }

    fn one(&mut self, key: serde_json::Result<KernelKey>) -> Result<(), InputError> {
        let location = Location { file: Arc::clone(&self.file), line: self.lines };
        let key = Arc::new(key.map_err(|error| {
            location.fault(
                format!("failed to parse: {}", in_its_line(&error)),
                "write one key a line, as {\"kernel_name\": \"NAME.cl.o\", \"kernel_args\": \
                 \" -DX=1 -mcpu=gfx906\"}; docs/manifest.md has more",
            )
        })?);
        if let Some(line) = self.seen.insert(Arc::clone(&key), self.lines) {
            let first = Location { file: Arc::clone(&self.file), line };
            return Err(location.error(InputFault::duplicate(&key, &first)));
        }
        if let Err(error) = key.check() {
            self.list.unusable.push((KernelKey::clone(&key), location.error(error.into())));
            return Ok(());
        }
        let source_name = key.source_name().unwrap_or_default();
        let language = InputFault::language_of(source_name, source_name)
            .map_err(|problem| location.error(problem))?;
        let source = match self.sources.get(source_name) {
            Some(source) => Arc::clone(source),
            None => {
                let source: Arc<Path> = Path::new(source_name).into();
                self.sources.insert(source_name.to_owned(), Arc::clone(&source));
                source
            }
        };
        self.list.requests.push(KeyRequest { language, source, location, key });
        Ok(())
    }

    /// Whether no key was read so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// All keys that were read.
    ///
    /// # Errors
    /// [`InputError`] where there are none.
    pub fn finish(self) -> Result<KeyList, InputError> {
        if self.is_empty() {
            return Err(Location::new(&self.file, 1).fault(
                "failed to find any kernel",
                "add a line with a key; if there may be none, --if-empty=ok makes that no error",
            ));
        }
        Ok(self.list)
    }
}

/// What JSON's reader says of a line, which it takes for the first one.
fn in_its_line(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.is_syntax() || error.is_eof() {
        return format!("it is no JSON, from column {column} on");
    }
    let said = error.to_string();
    match said.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(said) => format!("{said}, column {column}"),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lines_are_taken_byte_for_byte() {
        let text = "{\"kernel_name\":\"a.cl.o\",\"kernel_args\":\"  -DA=1  -mcpu=gfx906\"}\n\n{\"kernel_name\":\"b.s.o\",\"kernel_args\":\" -mcpu=gfx906\"}\n";
        let requests = parse_keys("k.jsonl", text).unwrap().requests;
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].key.kernel_args, "  -DA=1  -mcpu=gfx906");
        assert_eq!(requests[0].options(), "  -DA=1 ");
        assert_eq!(requests[1].location.line, 3);
        let twice = format!("{text}{}", text.lines().next().unwrap());
        assert_eq!(parse_keys("k.jsonl", &twice).unwrap_err().location.line, 4);
        let mut parts = KeyReader::new("k.jsonl");
        text.split_inclusive('\n').for_each(|line| parts.add(line, &InTurn).unwrap());
        assert_eq!(parts.finish().unwrap().requests, requests);
        let unknown = "{\"kernel_name\":\"a.cl.o\",\"kernel_args\":\" -mcpu=gfx906\",\"x\":1}";
        assert!(parse_keys("k.jsonl", unknown).is_err());
    }

    #[test]
    fn harvested_keys_are_read_and_those_that_no_compiler_takes_are_told() {
        let text = r#"{"kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906","seen":9,"hits":0,"misses":9,"targets":["gfx906"]}
{"kernel_name":"r.mlir.o","kernel_args":" --arch gfx906","seen":1}
{"kernel_name":"a.cl.o","kernel_args":" -DX='a' -mcpu=gfx906"}
"#;
        let KeyList { requests, unusable } = parse_keys("k.jsonl", text).unwrap();
        assert_eq!(requests.len(), 1);
        let lines: Vec<usize> = unusable.iter().map(|(_, error)| error.location.line).collect();
        assert_eq!(lines, [2, 3]);
        assert!(unusable[1].1.to_string().contains("MIOpen could never find it"));
    }
}
