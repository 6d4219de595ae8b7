//! Reads manifests and key lists, and loads the sources they name.

mod asked;
mod excluded;
mod reader;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_compile::{SourceDirs, SourceSet};
use gfxpack_model::{KernelKey, SourceId, Target, ToolchainId, processors, relative_path};
use gfxpack_plan::expand::{self, KeyList, KeyReader, KeyRequest};
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::license::LicensePolicy;
use gfxpack_plan::manifest::{self, Manifest, Reader as KernelReader};
use gfxpack_plan::plan::TargetRequest;
use gfxpack_plan::{InputError, Location, Problem, arguments, device_wide};
use rayon::prelude::*;

use crate::ask::Asked;
use crate::error::{self, Error, Result};
use crate::library::Library;
use crate::licence_head::licence_of;
use crate::missing_from::{Present, Share};
use crate::options::InputOptions;
use crate::rayon_workers::RayonWorkers;
use crate::refused_list::SkipList;
use crate::source_tree;
use crate::text::counted;
use crate::unbuildable::{Reason, Unbuildable, Unbuilt};
use excluded::Excluded;
pub use reader::LeftOut;
use reader::Reader;

/// Lines of a key list that are held beside the keys.
const LINES_AT_ONCE: usize = 32 * 1024;

/// What the inputs come to.
pub struct Read {
    /// What each target wants.
    pub requests: Vec<TargetRequest>,
    /// All else that was read.
    pub inputs: Inputs,
}

/// What was read of the inputs, but for the keys that are compiled.
pub struct Inputs {
    /// The sources, with their bytes.
    pub sources: SourceSet,
    /// What the inputs say of themselves.
    pub library: Library,
    /// Sources that the policy on licences refuses, with the reason.
    pub left_out: LeftOut,
    /// Of each target, what kdbs had already; empty where none were named.
    pub shares: Vec<Share>,
    /// Keys that can't be compiled.
    pub unbuildable: Unbuildable,
    /// What is wrong with those keys, where it stands.
    pub problems: Vec<InputError>,
    /// What the user should hear before anything runs.
    pub warnings: Vec<String>,
}

/// Reads all inputs for all targets; those of which kdbs have every key are
/// left out of the requests, and all are where lists are empty that may be.
///
/// # Errors
/// Where inputs contradict each other, can't be read, or come to no kernel.
pub fn read(inputs: &InputOptions, asked: Option<&Asked>) -> Result<Read> {
    if inputs.manifests.is_empty() && inputs.keys.is_empty() && asked.is_none() {
        return Err(error::usage(
            "failed to start: no kernels are given",
            "give what programs compute with --problems FILE, keys with --keys FILE --source-dir \
             DIR, or a manifest with --manifest FILE",
        ));
    }
    if !inputs.keys.is_empty() && inputs.source_dirs.is_empty() {
        return Err(error::usage(
            "failed to look up the sources of keys: no --source-dir is given",
            "give the directory that holds them, as --source-dir MIOpen/src/kernels; what is below is \
             searched too",
        ));
    }
    if let Some(none) = inputs.source_dirs.iter().find(|dir| !dir.is_dir()) {
        return Err(error::usage(
            format!("failed to find the source directory `{}`", none.display()),
            "check the path",
        ));
    }
    if !inputs.source_dirs.is_empty() && inputs.keys.is_empty() && asked.is_none() {
        return Err(error::usage(
            "failed to use --source-dir: no keys are given",
            "give keys with --keys FILE, or problems with --problems FILE",
        ));
    }
    let targets = distinct(&inputs.targets)?;
    let mut reader = Reader {
        requests: targets
            .into_iter()
            .map(|target| TargetRequest { target, toolchain: ToolchainId(0), keys: Vec::new() })
            .collect(),
        sources: SourceSet::default(),
        library: Library::default(),
        generated: BTreeSet::new(),
        missing: Vec::new(),
        excluded: Excluded {
            present: Present::read(&inputs.missing_from, inputs.max_object_bytes)?,
            had: BTreeMap::new(),
            refused: SkipList::read(&inputs.skip_refused)?,
        },
        problems: Vec::new(),
        unbuildable: Unbuildable::new(),
        warnings: Vec::new(),
        files: inputs.manifests.len() + inputs.keys.len(),
        for_miopen: !inputs.keys.is_empty() || asked.is_some(),
        has_input: !inputs.manifests.is_empty() || asked.is_some(),
        left_out_by_debian: LeftOut::new(),
    };
    for file in &inputs.manifests {
        reader.manifest(file)?;
    }
    if !inputs.keys.is_empty() || asked.is_some() {
        let dirs = SourceDirs::list(&inputs.source_dirs)?;
        for file in &inputs.keys {
            let name = file.display().to_string();
            let list = read_keys(file, &name)?;
            if !(list.is_empty() && inputs.allow_empty_keys) {
                reader.keys(&name, list.finish()?, &dirs)?;
                reader.has_input = true;
            }
        }
        if reader.library.version.is_none() && asked.is_none() {
            reader.library.version = source_tree::miopen_version(&inputs.source_dirs);
        }
        if let Some(asked) = asked {
            reader.asked(asked, &dirs, inputs.dfsg)?;
        }
    }
    reader.warnings.extend(reader.requests.iter().filter_map(|of| unknown_count(&of.target)));
    let policy = LicensePolicy { dfsg: inputs.dfsg, allow: inputs.license_allow.clone() };
    let left_out = reader.leave_out(&policy, inputs.stated_license.as_ref())?;
    reader.finish(left_out, inputs.allow_partial)
}

/// What to say of a count that no device of its kind has, as far as is known.
fn unknown_count(target: &Target) -> Option<String> {
    let count = target.compute_units()?;
    let known = processors::by_name(target.id().processor())?.compute_units;
    (!known.is_empty() && !known.contains(&count)).then(|| {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        format!(
            "no {} with {count} compute units is known, only with {}: `{}` may be of no use",
            target.id(),
            known.join(", "),
            target.kdb_file_name()
        )
    })
}

/// The targets without repetition. Two spellings that differ only in
/// features that a kdb's name does not show would write one file.
pub fn distinct(targets: &[Target]) -> Result<Vec<Target>> {
    let mut by_file: BTreeMap<String, &Target> = BTreeMap::new();
    let mut distinct = Vec::new();
    for target in targets {
        match by_file.insert(target.kdb_file_name(), target) {
            None => distinct.push(target.clone()),
            Some(other) if other == target => {}
            Some(other) => {
                return Err(error::usage(
                    format!(
                        "failed to build for both `{other}` and `{target}`: both are `{}`",
                        target.kdb_file_name()
                    ),
                    "build them in two runs with different --out",
                ));
            }
        }
    }
    Ok(distinct)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    error::usage(format!("failed to read `{}`: {error}", path.display()), "check the path")
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
    as_text(path, bytes, 0)
}

/// The bytes as text; so many lines stand before them.
fn as_text(path: &Path, bytes: Vec<u8>, lines: usize) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..valid];
        let line = 1 + lines + before.iter().filter(|&&byte| byte == b'\n').count();
        error::usage(
            format!("{}:{line}: failed to read text: it is not UTF-8", path.display()),
            "save the file as UTF-8",
        )
    })
}

/// What a file is that begins so, where it is taken for a key list, and how
/// its keys are had.
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

/// Reads the lines of a key list, part by part.
fn read_keys(path: &Path, name: &str) -> Result<KeyReader> {
    let file: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| cannot_read(path, &error))?)
    };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let begin = file.fill_buf().map_err(|error| cannot_read(path, &error))?;
    if let Some((what, hint)) = no_key_list(begin) {
        return Err(error::usage(
            format!("failed to read keys from `{}`: it is {what}", path.display()),
            hint,
        ));
    }
    let mut reader = KeyReader::new(name);
    let mut lines = 0;
    loop {
        let mut part = Vec::new();
        let mut ended = false;
        for _ in 0..LINES_AT_ONCE {
            let read = file.read_until(b'\n', &mut part);
            ended = read.map_err(|error| cannot_read(path, &error))? == 0;
            if ended {
                break;
            }
        }
        reader.add(&as_text(path, part, lines)?, &RayonWorkers)?;
        lines += LINES_AT_ONCE;
        if ended {
            return Ok(reader);
        }
    }
}

impl Reader {
    fn manifest(&mut self, file: &Path) -> Result<()> {
        let text = read_text(file)?;
        let manifest = manifest::parse(&file.display().to_string(), &text)?;
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let include_dirs: Vec<PathBuf> =
            manifest.library.include_dirs.iter().map(|include| dir.join(include)).collect();
        if let Some(missing) = include_dirs.iter().find(|dir| !dir.is_dir()) {
            let problem = Problem::MissingPath(missing.display().to_string());
            return Err(Location::new(&manifest.file, 1).error(problem).into());
        }
        let mut indices: HashMap<PathBuf, Option<SourceId>> = HashMap::new();
        for kernel in &manifest.kernels {
            let real = dir.join(&kernel.source);
            if !real.is_file() {
                let problem = Problem::MissingPath(real.display().to_string());
                self.missing.push(kernel.location.error(problem));
                indices.insert(kernel.source.clone(), None);
                continue;
            }
            let staged = kernel.source.to_str().filter(|path| !path.starts_with('/'));
            let staged = staged
                .and_then(|path| relative_path::join("", path))
                .unwrap_or_else(|| kernel.source_name.clone());
            let index = self
                .sources
                .load(&real, &staged, kernel.language, &include_dirs, None)
                .map_err(|problem| kernel.location.error(problem))?;
            indices.insert(kernel.source.clone(), Some(index));
        }
        let mut expanded: HashMap<String, Vec<Arc<KeyRequest>>> = HashMap::new();
        for request in &mut self.requests {
            let processor = request.target.id().processor();
            if !expanded.contains_key(processor) {
                let keys = expand::expand(&manifest, processor)?;
                expanded.insert(processor.to_owned(), keys.into_iter().map(Arc::new).collect());
            }
            for key in &expanded[processor] {
                if self.excluded.has(&request.target, &key.key) {
                    continue;
                }
                match indices[&*key.source] {
                    Some(index) => request.keys.push((Arc::clone(key), index)),
                    None => {
                        self.unbuildable.entry(request.target.clone()).or_default().push(Unbuilt {
                            key: KernelKey::clone(&key.key),
                            reason: Reason {
                                no_source: true,
                                text: "its source was not found".to_owned(),
                            },
                        })
                    }
                }
            }
        }
        self.describe(&manifest);
        Ok(())
    }

    fn describe(&mut self, manifest: &Manifest) {
        let said = &manifest.library;
        for kernel in &manifest.kernels {
            let license = SourceLicense {
                license: kernel.license.as_ref().unwrap_or(&said.license).clone(),
                copyright: kernel
                    .copyright
                    .as_ref()
                    .or(said.copyright.as_ref())
                    .cloned()
                    .unwrap_or_else(|| format!("the authors of {}", said.name)),
            };
            self.library.licenses.entry(kernel.source_name.clone()).or_default().insert(license);
            if kernel.generated {
                self.generated.insert(kernel.source_name.clone());
            }
        }
        if self.library.name.is_none() {
            self.library.name = Some(said.name.clone());
            self.library.version = Some(said.version.clone());
            self.library.maintainer = said.maintainer.clone();
            self.library.description = said.description.clone();
            self.library.homepage = said.homepage.clone();
            self.library.reader = if self.for_miopen { KernelReader::Miopen } else { said.reader };
        } else if said.reader.is_miopen() {
            self.library.reader = KernelReader::Miopen;
        }
    }

    fn keys(&mut self, name: &str, list: KeyList, dirs: &SourceDirs) -> Result<()> {
        let KeyList { requests: keys, refused: none } = list;
        let keys: Vec<Arc<KeyRequest>> = keys.into_iter().map(Arc::new).collect();
        let all = keys.iter().map(|key| &*key.key).chain(none.iter().map(|(key, _)| key));
        let devices: BTreeSet<&str> =
            all.filter_map(KernelKey::split_device).map(|(_, device)| device).collect();
        // Of many keys this takes as long as reading them.
        let mut refused: Vec<Option<Problem>> = keys
            .par_iter()
            .map(|key| arguments::parse(key.language, key.options()).err())
            .collect();
        let mut checked: Vec<Option<Result<SourceId, Reason>>> = vec![None; keys.len()];
        let mut sources: HashMap<&Path, Result<SourceId, Reason>> = HashMap::new();
        let mut told = vec![false; none.len()];
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            let processor = target.id().processor();
            let mut found = 0;
            for ((key, checked), refused) in keys.iter().zip(&mut checked).zip(&mut refused) {
                if key.key.split_device().is_none_or(|(_, device)| device != processor) {
                    continue;
                }
                found += 1;
                if self.excluded.has(&target, &key.key) {
                    continue;
                }
                let source = checked.get_or_insert_with(|| match refused.take() {
                    Some(problem) => Err(self.refuse(key, problem)),
                    None => self.key_source(key, dirs, &mut sources),
                });
                match source {
                    Ok(index) => self.requests[position].keys.push((Arc::clone(key), *index)),
                    Err(reason) => self
                        .unbuildable
                        .entry(target.clone())
                        .or_default()
                        .push(Unbuilt { key: KernelKey::clone(&key.key), reason: reason.clone() }),
                }
            }
            for ((key, error), told) in none.iter().zip(&mut told) {
                // One that names no processor may be for any.
                if key.split_device().is_some_and(|(_, device)| device != processor) {
                    continue;
                }
                found += 1;
                if self.excluded.has(&target, key) {
                    continue;
                }
                if !std::mem::replace(told, true) {
                    self.problems.push(error.clone());
                }
                let unbuilt = Unbuilt { key: key.clone(), reason: Reason::from(&error.problem) };
                self.unbuildable.entry(target.clone()).or_default().push(unbuilt);
            }
            if found == 0 {
                let devices: Vec<&str> = devices.iter().copied().collect();
                return Err(error::usage(
                    format!("failed to find a key for {processor} in `{name}`"),
                    format!("its keys are for {}: build for that", devices.join(", ")),
                ));
            }
        }
        let processors: BTreeSet<&str> =
            self.requests.iter().map(|request| request.target.id().processor()).collect();
        let foreign = devices.iter().filter(|device| !processors.contains(*device)).count();
        if foreign > 0 {
            self.warnings.push(format!(
                "{name}: keys for {foreign} other devices are left out; only {} is built",
                processors.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(())
    }

    /// The source of a key, or why it can't be compiled. Every problem is
    /// told once, at the first key that has it.
    fn key_source<'k>(
        &mut self,
        key: &'k KeyRequest,
        dirs: &SourceDirs,
        sources: &mut HashMap<&'k Path, Result<SourceId, Reason>>,
    ) -> Result<SourceId, Reason> {
        if let Some(known) = sources.get(&*key.source) {
            return known.clone();
        }
        let name = key.source.display().to_string();
        let licences = self.library.licenses.entry(name.clone()).or_default();
        let mut load = |sources: &mut SourceSet| {
            let real = dirs.find(&name)?.ok_or_else(|| Problem::MissingSource(name.clone()))?;
            licences.extend(std::fs::read(real).ok().as_deref().and_then(licence_of));
            sources.load(real, &name, key.language, &[], Some(dirs))
        };
        let loaded = load(&mut self.sources);
        let loaded = loaded.map_err(|problem: Problem| self.refuse(key, problem));
        sources.insert(&key.source, loaded.clone());
        loaded
    }

    /// Drops the keys of sources whose licences the policy refuses.
    fn leave_out(
        &mut self,
        policy: &LicensePolicy,
        stated: Option<&SourceLicense>,
    ) -> Result<LeftOut> {
        let mut left_out = std::mem::take(&mut self.left_out_by_debian);
        for (source, known) in &self.library.licenses {
            let stated = stated.filter(|_| known.is_empty());
            let licenses = known.iter().chain(stated);
            if let Some(reason) = policy.refusal(licenses, self.generated.contains(source)) {
                left_out.insert(source.clone(), reason);
            }
        }
        if !left_out.is_empty() && left_out.len() == self.library.licenses.len() {
            let (source, reason) = left_out.first_key_value().expect("one at least");
            return Err(error::usage(
                format!("failed to find a source that may be compiled: `{source}`: {reason}"),
                "allow its licence with --license-allow, or say it with --license",
            ));
        }
        let sources = self.sources.sources();
        for request in &mut self.requests {
            request.keys.retain(|(_, index)| !left_out.contains_key(&sources[index.0].name));
        }
        for keys in self.unbuildable.values_mut() {
            keys.retain(|Unbuilt { key, .. }| {
                key.source_name().is_none_or(|source| !left_out.contains_key(source))
            });
        }
        self.library.licenses.retain(|source, _| !left_out.contains_key(source));
        Ok(left_out)
    }

    /// What kdbs had and lack of each target; targets of which they had
    /// everything go.
    fn share(&mut self) -> Vec<Share> {
        if self.excluded.present.is_empty() {
            return Vec::new();
        }
        let mut shares = Vec::new();
        self.requests.retain(|request| {
            let target = request.target.clone();
            let present = self.excluded.had.get(&target).copied().unwrap_or_default();
            let unbuilt = self.unbuildable.get(&target).map_or(0, Vec::len);
            let missing = request.keys.len() + unbuilt;
            shares.push(Share { target, present, missing });
            missing > 0 || present == 0
        });
        shares
    }

    /// What is left out as refused, for the packages and the user.
    fn describe_skipped(&mut self) {
        let skipped = &self.excluded.refused;
        self.library.skipped = skipped.skipped();
        let targets: Vec<&Target> = self.requests.iter().map(|request| &request.target).collect();
        let unused = skipped.unused(&targets);
        if unused > 0 {
            self.warnings.push(format!(
                "{} of --skip-refused are not among the keys: is the list of another release?",
                counted(unused, "kernel")
            ));
        }
    }

    fn finish(mut self, left_out: LeftOut, allow_partial: bool) -> Result<Read> {
        if !self.missing.is_empty() && !allow_partial {
            return Err(Error::Inputs(self.missing));
        }
        self.warnings.extend(self.missing.iter().map(ToString::to_string));
        if !self.has_input {
            self.requests.clear();
        }
        device_wide::add_to_exact(&mut self.requests);
        self.describe_skipped();
        let shares = self.share();
        for request in &self.requests {
            let mut seen: HashMap<&KernelKey, &Location> = HashMap::new();
            // What one file says twice was found when it was read.
            let keys = if self.files > 1 { &request.keys[..] } else { &[] };
            for (key, _) in keys {
                if let Some(first) = seen.insert(&key.key, &key.location) {
                    let problem =
                        Problem::DuplicateKey { key: key.key.to_string(), first: first.clone() };
                    return Err(key.location.error(problem).into());
                }
            }
            if request.keys.is_empty() && !self.problems.is_empty() {
                return Err(Error::Inputs(self.problems));
            }
            if request.keys.is_empty() {
                return Err(error::usage(
                    format!("failed to find any kernel for {}", request.target),
                    "the manifest's target filters or --skip-refused leave every kernel out, or no \
                     source was found",
                ));
            }
        }
        let inputs = Inputs {
            sources: self.sources,
            library: self.library,
            left_out,
            shares,
            unbuildable: self.unbuildable,
            problems: self.problems,
            warnings: self.warnings,
        };
        Ok(Read { requests: self.requests, inputs })
    }
}

#[cfg(test)]
mod tests;
