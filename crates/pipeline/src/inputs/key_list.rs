//! Lists of keys: read part by part, checked, and divided among the targets.

use std::collections::{BTreeSet, HashMap};
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_harvest::key_begins;
use gfxpack_harvest::log::Lines;
use gfxpack_model::{KernelKey, processors};
use gfxpack_plan::key_list::{KeyList, KeyReader, KeyRequest};

use super::collector::{InputCollector, SourceSearch};
use crate::error::{self, Error, Result};
use crate::ledger::Absent;
use crate::options::InputOptions;
use crate::prepare::RayonWorkers;
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

fn no_key_for(processor: &str, name: &str, devices: &BTreeSet<String>) -> Error {
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
        let KeyList { keys, unusable, unread } = read_keys(file, &name)?;
        if let Some((first, lines)) = unread {
            if inputs.asking.strict {
                return Err(first);
            }
            let more = if_any(lines - 1, |_| format!(" ({lines} such lines)"));
            self.inputs.warnings.push(format!("{first}{more}: left out, unless --strict is given"));
        }
        // Where nothing was missed, the list is empty.
        if keys.is_empty() && unusable.is_empty() {
            return Ok(());
        }
        self.has_input = true;
        let keys: Vec<Arc<KeyRequest>> = keys.into_iter().map(Arc::new).collect();
        let device = |key: &KernelKey| key.split_device().map(|(_, device)| device.to_owned());
        let all = keys.iter().map(|key| &*key.key).chain(unusable.iter().map(|(key, ..)| key));
        let devices: BTreeSet<String> = all.filter_map(device).collect();
        let (dirs, dfsg) = (vec![dirs], inputs.dfsg());
        let mut search = SourceSearch { dirs, dfsg, of_library: false, found: HashMap::new() };
        let mut reported = vec![false; unusable.len()];
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            let is_for = |key: &KernelKey, or_any| {
                key.split_device().map_or(or_any, |(_, device)| device == target.id().processor())
            };
            let mut found = 0;
            for key in keys.iter().filter(|key| is_for(&key.key, false)) {
                found += 1;
                if !self.excludes(&target, &key.key) {
                    let source = self.find_source(key, &mut search);
                    self.add_key(position, Arc::clone(key), source);
                }
            }
            // A key without a processor may be for any.
            let faulty = unusable.iter().zip(&mut reported);
            for ((key, location, fault), reported) in
                faulty.filter(|((key, ..), _)| is_for(key, true))
            {
                found += 1;
                if self.excludes(&target, key) {
                    continue;
                }
                if !std::mem::replace(reported, true) {
                    self.inputs.key_errors.push(location.error(fault));
                }
                self.inputs.absent.add(&target, Absent::faulty(key, fault));
            }
            if found == 0 {
                return Err(no_key_for(target.id().processor(), &name, &devices));
            }
        }
        let processors: BTreeSet<&str> =
            self.requests.iter().map(|request| request.target.id().processor()).collect();
        let others = devices.iter().filter(|device| !processors.contains(device.as_str())).count();
        if others > 0 {
            self.inputs.warnings.push(format!(
                "{name}: keys for {others} other devices are left out; only {} is built",
                joined(processors)
            ));
        }
        Ok(())
    }
}
