//! Lists of keys: read part by part, checked, and divided among the targets.

use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_harvest::key_begins;
use gfxpack_harvest::log::Lines;
use gfxpack_model::{KernelKey, processors};
use gfxpack_plan::key_list::{KeyList, KeyReader, KeyRequest};
use gfxpack_plan::{Location, arguments};
use rayon::prelude::*;

use super::collector::{FoundSource, InputCollector, SourceSearch};
use crate::error::{self, Error, ErrorKind, Result};
use crate::ledger::Absent;
use crate::options::InputOptions;
use crate::rayon_workers::RayonWorkers;
use crate::text::{if_any, joined};
use crate::text_file::open;

/// How many lines of a key list are in memory beside the keys.
const LINES_AT_ONCE: usize = 32 * 1024;

/// Recognises a file by its first bytes that is no key list. Returns what it is,
/// and how to get its keys.
fn no_key_list(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    const PACKED: [&[u8]; 4] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd], b"\xfd7zXZ", b"BZh"];
    if begin.starts_with(b"SQLite format 3\0") {
        Some(("a kdb", "`gfxpack kdb list --keys FILE` prints a kdb's keys"))
    } else if PACKED.iter().any(|magic| begin.starts_with(magic)) {
        Some(("packed", "unpack it, or have `gfxpack harvest FILE -o keys.jsonl` read it"))
    } else {
        None
    }
}

/// Reads a key list in parts.
fn read_keys(path: &Path, name: &str) -> Result<KeyList> {
    let mut file = open(path)?;
    let begin = file.fill_buf().map_err(error::io("read", path))?;
    if let Some((what, hint)) = no_key_list(begin) {
        return Err(error::usage(
            format!("failed to read keys from `{}`: it is {what}", path.display()),
            hint,
        ));
    }
    let mut reader = KeyReader::new(name);
    let (mut lines, mut part) = (Lines::all(), Vec::new());
    loop {
        let piece = file.fill_buf().map_err(error::io("read", path))?;
        let (read, mut line) = (piece.len(), |number, line: &[u8], _| {
            // Log tools may have written before it.
            let key = &line[key_begins(line).unwrap_or(0)..];
            part.push((number as usize, str::from_utf8(key).unwrap_or("\u{fffd}").to_owned()));
        });
        if read == 0 {
            lines.finish(&mut line);
            reader.add(&part, &RayonWorkers)?;
            return reader.finish();
        }
        lines.push(piece, &mut line);
        file.consume(read);
        if part.len() >= LINES_AT_ONCE {
            reader.add(&std::mem::take(&mut part), &RayonWorkers)?;
        }
    }
}

/// What is known about a list's keys while targets are processed.
struct KeyChecks<'a> {
    /// By key: what is wrong with its options.
    bad_options: Vec<Option<Error>>,
    /// By key: its source, if it was checked.
    checked: Vec<Option<FoundSource>>,
    search: SourceSearch<'a>,
}

impl<'a> KeyChecks<'a> {
    fn new(keys: &[Arc<KeyRequest>], search: SourceSearch<'a>) -> Self {
        // Many keys take as long here as reading them does.
        let bad_options = keys
            .par_iter()
            .map(|key| arguments::parse(key.language, key.options()).err())
            .collect();
        Self { bad_options, checked: vec![None; keys.len()], search }
    }
}

fn no_key_for(processor: &str, name: &str, devices: &BTreeSet<&str>) -> Error {
    if processors::by_name(processor).is_none() {
        return error::usage(
            format!("failed to find a key for {processor} in `{name}`"),
            format!(
                "no processor of that name is known here, `gfxpack targets` lists those that are; \
                 the list's keys are for {}",
                joined(devices)
            ),
        );
    }
    error::usage(
        format!("failed to find a key for {processor} in `{name}`"),
        format!(
            "its keys are for {}: give that as --target; what MIOpen needs on another GPU, it says \
             itself (--problems in place of --keys)",
            joined(devices)
        ),
    )
}

impl InputCollector {
    /// Adds the keys of a list.
    pub(super) fn key_list(
        &mut self,
        file: &Path,
        dirs: &SourceDirs,
        inputs: &InputOptions,
    ) -> Result<()> {
        let name = if file.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            file.display().to_string()
        };
        let mut list = read_keys(file, &name)?;
        if let Some((first, lines)) = list.unread.take() {
            if inputs.asking.strict {
                return Err(first);
            }
            let more = if_any(lines - 1, |_| format!(" ({lines} such lines)"));
            self.inputs.warnings.push(format!("{first}{more}"));
        }
        // Where nothing was missed, the list is empty.
        if !(list.keys.is_empty() && list.unusable.is_empty()) {
            let search = SourceSearch::new(vec![dirs], inputs.dfsg());
            self.add_key_list(&name, list, search)?;
            self.has_input = true;
        }
        Ok(())
    }

    /// Adds the keys of a list for all targets.
    ///
    /// # Errors
    /// If the list has no key for a target.
    fn add_key_list(&mut self, name: &str, list: KeyList, search: SourceSearch<'_>) -> Result<()> {
        let KeyList { keys, unusable, .. } = list;
        let keys: Vec<Arc<KeyRequest>> = keys.into_iter().map(Arc::new).collect();
        let all = keys.iter().map(|key| &*key.key).chain(unusable.iter().map(|(key, ..)| key));
        let devices: BTreeSet<&str> =
            all.filter_map(KernelKey::split_device).map(|(_, device)| device).collect();
        let mut checks = KeyChecks::new(&keys, search);
        let mut reported = vec![false; unusable.len()];
        for position in 0..self.requests.len() {
            let found = self.add_keys_of_target(position, &keys, &mut checks)
                + self.add_unusable_keys_of_target(position, &unusable, &mut reported);
            if found == 0 {
                let processor = self.requests[position].target.id().processor();
                return Err(no_key_for(processor, name, &devices));
            }
        }
        self.warn_of_other_devices(name, &devices);
        Ok(())
    }

    /// Adds a list's keys for one target, and returns their number.
    fn add_keys_of_target(
        &mut self,
        position: usize,
        keys: &[Arc<KeyRequest>],
        checks: &mut KeyChecks<'_>,
    ) -> usize {
        let target = self.requests[position].target.clone();
        let processor = target.id().processor();
        let mut found = 0;
        for (number, key) in keys.iter().enumerate() {
            if key.key.split_device().is_none_or(|(_, device)| device != processor) {
                continue;
            }
            found += 1;
            if self.excludes(&target, &key.key) {
                continue;
            }
            let source = self.check_key(number, key, checks);
            self.add_key(position, Arc::clone(key), source);
        }
        found
    }

    /// Like [`Self::add_keys_of_target`], for keys that can't be compiled.
    fn add_unusable_keys_of_target(
        &mut self,
        position: usize,
        unusable: &[(KernelKey, Location, Error)],
        reported: &mut [bool],
    ) -> usize {
        let target = self.requests[position].target.clone();
        let mut found = 0;
        for ((key, location, fault), reported) in unusable.iter().zip(reported) {
            // A key without a processor may be for any.
            if key.split_device().is_some_and(|(_, device)| device != target.id().processor()) {
                continue;
            }
            found += 1;
            if self.excludes(&target, key) {
                continue;
            }
            if !std::mem::replace(reported, true) {
                self.inputs.key_errors.push(location.error(fault));
            }
            self.inputs.absent.add(&target, Absent::faulty(key, fault));
        }
        found
    }

    fn warn_of_other_devices(&mut self, name: &str, devices: &BTreeSet<&str>) {
        let processors: BTreeSet<&str> =
            self.requests.iter().map(|request| request.target.id().processor()).collect();
        let others = devices.iter().filter(|device| !processors.contains(*device)).count();
        if others > 0 {
            self.inputs.warnings.push(format!(
                "{name}: keys for {others} other devices are left out; only {} is built",
                joined(processors)
            ));
        }
    }

    /// The source of a list's key. A key is checked once for all targets.
    fn check_key(
        &mut self,
        number: usize,
        key: &KeyRequest,
        checks: &mut KeyChecks<'_>,
    ) -> FoundSource {
        if let Some(checked) = &checks.checked[number] {
            return checked.clone();
        }
        let checked = match checks.bad_options[number].take() {
            Some(fault) => FoundSource::from(self.note_unusable(key, fault)),
            None => match self.find_source(key, &mut checks.search) {
                FoundSource::NotFound => {
                    let fault = Error::new(
                        ErrorKind::NotFound,
                        format!("failed to find source `{}`", key.source.display()),
                        "check the path, or give the directory that holds it (--source-dir)",
                    );
                    checks.search.give_up(key, self.note_unusable(key, fault))
                }
                found => found,
            },
        };
        checks.checked[number] = Some(checked.clone());
        checked
    }
}
