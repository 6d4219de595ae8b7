//! Keys, and their sources, each loaded once; lists of keys, which are read part by part, and
//! divided among the targets; and the keys that existing kdbs have (`--missing-from`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_compile::{SourceDirs, SourceSet};
use gfxpack_harvest::key_begins;
use gfxpack_harvest::log::Lines;
use gfxpack_kdb::{ReadError, Reader};
use gfxpack_miopen::is_left_out_by_debian;
use gfxpack_model::{Digest, KernelKey, SourceId, Target, processors};
use gfxpack_plan::key_list::{KeyList, KeyReader, KeyRequest};
use gfxpack_plan::plan::TargetRequest;
use gfxpack_process::ScratchDir;

use crate::error::{self, Error, ErrorKind, Result};
use crate::kernel_library::KernelLibrary;
use crate::ledger::{Absences, Absent, Reason, SkipList};
use crate::license_head::license_of;
use crate::options::InputOptions;
use crate::prepare::RayonWorkers;
use crate::text::{if_any, joined};
use crate::text_file::open;

/// What was read of the inputs, except for the keys to compile.
#[derive(Default)]
pub struct Inputs {
    /// The sources, with their bytes.
    pub sources: SourceSet,
    /// Directories with sources that a library contains or generates. They are
    /// kept until plans are stored, since plans include what lies beside sources.
    pub(crate) own_sources: Vec<Arc<ScratchDir>>,
    /// What the inputs say about the kernels as a whole.
    pub library: KernelLibrary,
    /// By target: how many keys existing kdbs have; empty if no kdb was given.
    pub coverage: Vec<ExistingCount>,
    /// Keys that are not compiled.
    pub absent: Absences,
    /// Errors in keys of lists. Programs write key lists, so the other keys are
    /// built nevertheless.
    pub key_errors: Vec<Error>,
    /// Warnings to print before anything runs.
    pub warnings: Vec<String>,
}

/// A key's source, which is loaded, or why the key is not compiled.
type FoundSource = Result<SourceId, (Reason, String)>;

/// Looks sources up by name, and remembers the results.
pub(crate) struct SourceSearch<'a> {
    /// The first one that has a source is used.
    pub(crate) dirs: Vec<&'a SourceDirs>,
    /// Whether Debian's rules for free software apply.
    pub(crate) dfsg: bool,
    /// Whether a library asks for the keys, which may do without what it does not carry.
    pub(crate) of_library: bool,
    pub(crate) found: HashMap<Arc<Path>, FoundSource>,
}

/// The keys of existing kdbs, as digests: their text would take hundreds of
/// megabytes for a large kdb.
#[derive(Debug, Default)]
pub(crate) struct ExistingKeys {
    files: Vec<(Option<Target>, HashSet<Digest>)>,
}

/// How many of a target's keys existing kdbs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingCount {
    /// The target.
    pub target: Target,
    /// Keys in the kdbs.
    pub present: usize,
    /// Other keys, including those that can't be compiled.
    pub missing: usize,
}

impl ExistingKeys {
    /// Reads the keys of kdbs, and of users' kdbs that no program has open.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self> {
        let read = |path: &PathBuf| -> Result<_> {
            let mut keys = HashSet::new();
            Reader::open_at_rest(path)?.for_each_row(|entry| {
                keys.insert(entry.key.digest());
                Ok::<(), ReadError>(())
            })?;
            Ok((target_of(path), keys))
        };
        Ok(Self { files: files.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Whether a device of the target finds the key in one of the kdbs. It reads
    /// those whose name has the target's XNACK setting, which is not in a key,
    /// and the target's number of compute units or none. Kdbs without a target in
    /// their name count for all.
    pub(crate) fn has(&self, target: &Target, key: &KernelKey) -> bool {
        if self.files.is_empty() {
            return false;
        }
        let digest = key.digest();
        let is_read = |kdb: &Target| {
            kdb.id().db_id() == target.id().db_id()
                && (kdb.compute_units().is_none() || kdb.compute_units() == target.compute_units())
        };
        self.files
            .iter()
            .any(|(kdb, keys)| kdb.as_ref().is_none_or(is_read) && keys.contains(&digest))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The target in a kdb's name.
fn target_of(path: &Path) -> Option<Target> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// Takes one input after the other, and holds the result so far.
#[derive(Default)]
pub struct InputCollector {
    pub(crate) requests: Vec<TargetRequest>,
    /// The result.
    pub(crate) inputs: Inputs,
    /// Sources that are not compiled because of their licence, with the reason. Until `leave_out`
    /// adds others, those that Debian does not take although their licence is free.
    pub(crate) left_out: BTreeMap<String, String>,
    /// Names of sources that are generated by programs.
    pub(crate) generated: BTreeSet<String>,
    /// Keys that existing kdbs have.
    pub(crate) present: ExistingKeys,
    /// The keys that the lists of `--skip-refused` name.
    pub(crate) skip_list: SkipList,
    /// Paths in manifests at which nothing exists. People write manifests, so they
    /// should correct them.
    pub(crate) wrong_paths: Vec<Error>,
    /// Whether any input may have kernels; false if all inputs are empty key lists.
    pub(crate) has_input: bool,
}

impl InputCollector {
    /// Records an error in a key, and says why it is then absent.
    fn note_unusable(&mut self, key: &KeyRequest, fault: &Error) -> (Reason, String) {
        let Absent { reason, why, .. } = Absent::faulty(&key.key, fault);
        self.inputs.key_errors.push(key.location.error(fault));
        (reason, why)
    }

    /// Whether a key is not built for a target, although it could be. Records such keys.
    pub(crate) fn excludes(&mut self, target: &Target, key: &KernelKey) -> bool {
        let absent = if self.present.has(target, key) {
            Absent::new(key, Reason::Present, "an existing kdb has it")
        } else if let Some(why) = self.skip_list.why(target, key) {
            Absent::new(key, Reason::Skipped, why)
        } else {
            return false;
        };
        self.inputs.absent.add(target, absent);
        true
    }

    /// Adds a key to the request at `position` if its source is found, otherwise to the keys that
    /// are not built.
    pub(crate) fn add_key(
        &mut self,
        position: usize,
        key: Arc<KeyRequest>,
        search: &mut SourceSearch<'_>,
    ) {
        let found = self.find_source(&key, search);
        let request = &mut self.requests[position];
        match found {
            Ok(source) => request.keys.push((key, source)),
            Err((reason, why)) => {
                self.inputs.absent.add(&request.target, Absent::new(&key.key, reason, why));
            }
        }
    }

    /// Finds the source of a key and loads it. An error is reported once, at the
    /// first key that has it.
    fn find_source(&mut self, key: &KeyRequest, search: &mut SourceSearch<'_>) -> FoundSource {
        if let Some(known) = search.found.get(&key.source) {
            return known.clone();
        }
        let name = key.source.display().to_string();
        let found = if search.dfsg && is_left_out_by_debian(&name) {
            let why = "Debian leaves it out: it is not what its authors edit".to_owned();
            self.left_out.insert(name, why.clone());
            Err((Reason::LeftOut, why))
        } else {
            match self.load_source(key, &name, &search.dirs) {
                Ok(Some(source)) => Ok(source),
                Ok(None) if search.of_library => {
                    let why = "the library that asks for it lacks its source";
                    Err((Reason::NotCarried, why.to_owned()))
                }
                Ok(None) => Err(self.note_unusable(
                    key,
                    &Error::new(
                        ErrorKind::NotFound,
                        format!("failed to find source `{name}`"),
                        "check the path, or give the directory that holds it (--source-dir)",
                    ),
                )),
                Err(fault) => Err(self.note_unusable(key, &fault)),
            }
        };
        search.found.insert(Arc::clone(&key.source), found.clone());
        found
    }

    fn load_source(
        &mut self,
        key: &KeyRequest,
        name: &str,
        dirs: &[&SourceDirs],
    ) -> Result<Option<SourceId>> {
        for dirs in dirs {
            if let Some(path) = dirs.find(name)? {
                let licenses = self.inputs.library.licenses.entry(name.to_owned()).or_default();
                // Loading reports a file that can't be read.
                licenses.extend(std::fs::read(path).ok().as_deref().and_then(license_of));
                let sources = &mut self.inputs.sources;
                return sources.load(path, name, key.language, &[], &[], Some(dirs)).map(Some);
            }
        }
        Ok(None)
    }

    /// Adds the keys of a list.
    pub(crate) fn key_list(
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
                    self.add_key(position, Arc::clone(key), &mut search);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kdb_counts_for_the_devices_that_read_it() {
        let key = |args: &str| KernelKey {
            kernel_name: "a.cl.o".to_owned(),
            kernel_args: args.to_owned(),
        };
        let file = |name: &str, args: &str| {
            (target_of(Path::new(name)), HashSet::from([key(args).digest()]))
        };
        let present = ExistingKeys {
            files: vec![
                file("d/gfx90a68.kdb", " -DA -mcpu=gfx90a"),
                file("gfx90a_xnack.kdb", " -DB -mcpu=gfx90a"),
                file("gfx90a.kdb", " -DD -mcpu=gfx90a"),
                file("all.kdb", " -DC -mcpu=gfx90a"),
            ],
        };
        let has =
            |target: &str, args: &str| present.has(&target.parse::<Target>().unwrap(), &key(args));
        assert!(has("gfx90a@104", " -DA -mcpu=gfx90a") && has("gfx90a", " -DC -mcpu=gfx90a"));
        assert!(!has("gfx90a@110", " -DA -mcpu=gfx90a") && !has("gfx90a", " -DA -mcpu=gfx90a"));
        assert!(has("gfx90a@110", " -DD -mcpu=gfx90a") && has("gfx90a", " -DD -mcpu=gfx90a"));
        assert!(!has("gfx90a", " -DB -mcpu=gfx90a") && !has("gfx90a", " -DA  -mcpu=gfx90a"));
        assert!(has("gfx90a:xnack+", " -DB -mcpu=gfx90a"));
        assert!(!has("gfx90a:xnack+", " -DA -mcpu=gfx90a"));
    }
}
