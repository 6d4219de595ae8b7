//! Reads manifests and key lists, and loads the sources they name.

mod keys;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gfxpack_model::{
    KernelFileFormat, KernelKey, SourceId, Target, ToolchainId, processors, relative_path,
};
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::expand;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_plan::license;
use gfxpack_plan::manifest::{self, Manifest};
use gfxpack_plan::plan::{TargetRequest, add_to_exact};
use gfxpack_plan::{Location, arguments};

use crate::ask::source_dirs;
use crate::error::{self, Error, ErrorKind, Result};
use crate::kernel_library::KernelLibrary;
use crate::ledger::{self, Absent, Reason, SkipList};
use crate::license_head::{holders_of, license_of, plain_name};
use crate::options::InputOptions;
use crate::source_tree;
use crate::stock_library::LibraryAnswer;
use crate::text::{counted, if_any, joined, read_text};

use keys::ExistingKeys;
pub(crate) use keys::SourceSearch;
pub use keys::{ExistingCount, InputCollector, Inputs};

/// Reads all inputs for all `targets`, and returns the keys of each, and all else. Toolchains are
/// not chosen yet: all indices are 0. A target whose keys are all in the kdbs of
/// `missing_from` gets no request. If empty key lists are allowed and all are
/// empty, no target gets one.
///
/// # Errors
/// If inputs contradict each other, can't be read, or have no kernel.
pub fn read(
    inputs: &InputOptions,
    targets: Vec<Target>,
    answer: Option<&dyn LibraryAnswer>,
    stated_license: Option<&SourceLicense>,
    allow_partial: bool,
) -> Result<(Vec<TargetRequest>, Inputs)> {
    check_combination(inputs, answer.is_some())?;
    let mut collector = InputCollector::new(targets, inputs)?;
    for file in &inputs.manifest {
        collector.manifest(file)?;
    }
    if !inputs.keys.is_empty() || answer.is_some() {
        // MIOpen looks for the manifests' kernels too.
        collector.inputs.library.consumer = Consumer::Miopen;
        let dirs = source_dirs(&inputs.source_dir)?;
        for file in &inputs.keys {
            collector.key_list(file, &dirs, inputs)?;
        }
        if let Some(answer) = answer {
            answer.add_keys(&mut collector, &dirs, inputs.dfsg())?;
        } else {
            let library = &mut collector.inputs.library;
            library.prefix = source_tree::miopen_prefix(&inputs.source_dir);
            if library.version.is_none() {
                library.version = source_tree::miopen_version(&inputs.source_dir);
            }
        }
    }
    let counts = collector.requests.iter().filter_map(|request| unknown_count(&request.target));
    collector.inputs.warnings.extend(counts);
    collector.finish(inputs, stated_license, allow_partial)
}

/// Checks that there are inputs, and that each has what it needs.
fn check_combination(inputs: &InputOptions, is_asked: bool) -> Result<()> {
    if inputs.manifest.is_empty() && inputs.keys.is_empty() && !is_asked {
        return Err(error::usage(
            "no kernels are given",
            "give what programs compute with --problems FILE or --plans FILE, keys with --keys FILE --source-dir \
             DIR, or a manifest with --manifest FILE",
        ));
    }
    if !inputs.keys.is_empty() && inputs.source_dir.is_empty() {
        return Err(error::usage(
            "failed to look up the sources of keys: no --source-dir is given",
            "give the directory that holds them, as --source-dir MIOpen/src/kernels; what is below is \
             searched too",
        ));
    }
    if !inputs.source_dir.is_empty() && inputs.keys.is_empty() && !is_asked {
        return Err(error::usage(
            "failed to use --source-dir: no keys are given",
            "give keys with --keys FILE, or problems with --problems FILE",
        ));
    }
    Ok(())
}

/// A warning for a number of compute units that no known device of this processor
/// has.
pub fn unknown_count(target: &Target) -> Option<String> {
    let count = target.compute_units()?;
    let processor = processors::by_name(target.id().processor())?;
    let known = processor.compute_units;
    let is_known = known.contains(&count) || processor.partitions().contains(&count);
    let id = target.id();
    // Data sheets have twice as many.
    let is_doubled = id.counts_pairs() && count % 2 == 0 && known.contains(&(count / 2));
    let half = if_any(u32::from(is_doubled), |_| {
        format!("; MIOpen counts pairs of them: say {id}@{}", count / 2)
    });
    (!known.is_empty() && !is_known).then(|| {
        format!(
            "no {id} with {count} compute units is known, only with {}: `{}` may be of no use{half}",
            joined(known),
            target.kdb_file_name()
        )
    })
}

impl InputCollector {
    /// A collector that knows only the targets and the keys that are not built
    /// again.
    fn new(targets: Vec<Target>, inputs: &InputOptions) -> Result<Self> {
        let request = |target| TargetRequest {
            target,
            // Until `finish` sets it.
            format: KernelFileFormat::default(),
            // Until `prepare` has chosen one.
            toolchain: ToolchainId(0),
            keys: Vec::new(),
        };
        Ok(Self {
            requests: targets.into_iter().map(request).collect(),
            inputs: Inputs {
                library: KernelLibrary {
                    only_missing: !inputs.missing_from.is_empty(),
                    ..KernelLibrary::default()
                },
                ..Inputs::default()
            },
            present: ExistingKeys::read(&inputs.missing_from)?,
            skip_list: SkipList::read(&inputs.skip_refused)?,
            ..Self::default()
        })
    }

    /// Adds the kernels of a manifest for all targets.
    fn manifest(&mut self, file: &Path) -> Result<()> {
        let text = read_text(file)?;
        let manifest = manifest::parse(&file.display().to_string(), &text)?;
        let dir = file.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let mut include_dirs = Vec::new();
        for include in &manifest.library.include_dirs {
            let path = dir.join(include.get_ref());
            if !path.is_dir() {
                let at = Location::of_offset(&manifest.file, &text, include.span().start);
                return Err(missing_path(&at, &path));
            }
            include_dirs.push(path);
        }
        let mut expanded: HashMap<String, Vec<Arc<KeyRequest>>> = HashMap::new();
        for request in &self.requests {
            let processor = request.target.id().processor();
            if !expanded.contains_key(processor) {
                let keys = expand::expand(&manifest, processor)?;
                expanded.insert(processor.to_owned(), keys.into_iter().map(Arc::new).collect());
            }
        }
        let option_dirs = option_dirs(expanded.values().flatten());
        let mut indices: HashMap<PathBuf, Option<SourceId>> = HashMap::new();
        for kernel in &manifest.kernels {
            let real = dir.join(&kernel.source);
            if !real.is_file() {
                self.wrong_paths.push(missing_path(&kernel.location, &real));
                indices.insert(kernel.source.clone(), None);
                continue;
            }
            let (real, staged) = match path_below(dir, &kernel.source) {
                Some(staged) => (dir.join(&staged), staged),
                None => (real, kernel.source_name.clone()),
            };
            let own = option_dirs.get(&*kernel.source).map_or(&[][..], Vec::as_slice);
            let index = self
                .inputs
                .sources
                .load(&real, &staged, kernel.language, &include_dirs, own, None)
                .map_err(|problem| kernel.location.error(&problem))?;
            indices.insert(kernel.source.clone(), Some(index));
        }
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            for key in &expanded[target.id().processor()] {
                if self.excludes(&target, &key.key) {
                    continue;
                }
                match indices[&*key.source] {
                    Some(index) => {
                        self.requests[position].keys.push((Arc::clone(key), index));
                    }
                    None => {
                        let why = "its source was not found";
                        let absent = Absent::new(&key.key, Reason::NoSource, why);
                        self.inputs.absent.add(&target, absent);
                    }
                }
            }
        }
        self.describe(&manifest);
        self.has_input = true;
        Ok(())
    }

    /// Records what a manifest says about its library.
    fn describe(&mut self, manifest: &Manifest) {
        let library = &manifest.library;
        let sources = self.inputs.sources.sources().iter().enumerate();
        let holders: HashMap<String, String> = sources
            .filter_map(|(index, source)| {
                let files = self.inputs.sources.files(SourceId(index));
                let (_, text) = files.into_iter().find(|(path, _)| *path == source.main)?;
                Some((source.name.clone(), holders_of(text)))
            })
            .collect();
        let known = &mut self.inputs.library;
        for kernel in &manifest.kernels {
            let license = SourceLicense {
                license: kernel.license.as_ref().unwrap_or(&library.license).clone(),
                copyright: kernel
                    .copyright
                    .as_ref()
                    .or(library.copyright.as_ref())
                    .or_else(|| holders.get(&kernel.source_name))
                    .cloned()
                    .unwrap_or_default(),
            };
            known.licenses.entry(kernel.source_name.clone()).or_default().insert(license);
            if kernel.generated {
                self.generated.insert(kernel.source_name.clone());
            }
        }
        if known.name.is_none() {
            known.name = Some(library.name.clone());
            known.version = Some(library.version.clone());
            known.maintainer = library.maintainer.clone();
            known.description = library.description.clone();
            known.homepage = library.homepage.clone();
            known.consumer = library.consumer;
        } else if library.consumer == Consumer::Miopen {
            // Kernels for MIOpen must be where MIOpen looks for them.
            known.consumer = Consumer::Miopen;
        }
    }

    /// Drops the keys of sources that may not be compiled because of their licences.
    fn leave_out(&mut self, options: &InputOptions, stated: Option<&SourceLicense>) -> Result<()> {
        let left_out = &mut self.left_out;
        for (source, known) in &self.inputs.library.licenses {
            let stated = stated.filter(|_| known.is_empty());
            let licenses = known.iter().chain(stated);
            let generated = self.generated.contains(source);
            let allow = &options.license_allow;
            if let Some(reason) = license::rejection(allow, licenses, generated) {
                left_out.insert(source.clone(), reason);
            }
        }
        // What a source includes is compiled with it.
        for (index, source) in self.inputs.sources.sources().iter().enumerate() {
            for (path, bytes) in self.inputs.sources.files(SourceId(index)) {
                let stated = license_of(bytes).filter(|_| path != source.main);
                let reason = stated.and_then(|stated| {
                    license::rejection(&options.license_allow, [&stated], false)
                });
                if let Some(reason) = reason {
                    let reason = || format!("it includes `{}`: {reason}", plain_name(path));
                    left_out.entry(source.name.clone()).or_insert_with(reason);
                }
            }
        }
        let Some((source, reason)) = left_out.first_key_value() else { return Ok(()) };
        let mut sources = self.inputs.library.licenses.keys();
        // If other sources were not found, that is the error to report.
        let all_found = !self.inputs.key_errors.iter().any(|it| it.kind() == ErrorKind::NotFound);
        if all_found && sources.all(|source| left_out.contains_key(source)) {
            return Err(error::usage(
                format!("failed to find a source that may be compiled: `{source}`: {reason}"),
                "allow its licence with --license-allow, or say it with --license",
            ));
        }
        let sources = self.inputs.sources.sources();
        let absent = &mut self.inputs.absent;
        for request in &mut self.requests {
            let of_them =
                |(_, index): &mut (_, SourceId)| left_out.contains_key(&sources[index.0].name);
            for (key, index) in request.keys.extract_if(.., of_them) {
                let why = left_out[&sources[index.0].name].as_str();
                absent.add(&request.target, Absent::new(&key.key, Reason::LeftOut, why));
            }
        }
        absent.leave_out(left_out);
        self.inputs.library.licenses.retain(|source, _| !left_out.contains_key(source));
        Ok(())
    }

    /// Removes the targets whose keys are all in existing kdbs. Returns how many keys of each target
    /// those kdbs have and lack.
    fn drop_complete_targets(&mut self) -> Vec<ExistingCount> {
        if self.present.is_empty() {
            return Vec::new();
        }
        let mut coverage = Vec::new();
        self.requests.retain(|request| {
            let target = request.target.clone();
            let counts = self.inputs.absent.counts(&target);
            let present = counts.get(&Reason::Present).map_or(0, |count| *count as usize);
            let missing = request.keys.len() + ledger::missing(&counts) as usize;
            coverage.push(ExistingCount { target, present, missing });
            missing > 0 || present == 0
        });
        coverage
    }

    /// Warns of kernels of `--skip-refused` that no input has, for example because the list is of
    /// another release.
    fn warn_of_unused(&mut self) {
        let unused = |request: &TargetRequest| {
            let absent = self.inputs.absent.of(&request.target).iter();
            let left = absent.filter(|one| matches!(one.reason, Reason::Skipped | Reason::Present));
            let left: BTreeSet<&KernelKey> = left.map(|one| &one.key).collect();
            let listed = self.skip_list.of(&request.target);
            listed.iter().filter(|key| !left.contains(key)).count()
        };
        let unused: usize = self.requests.iter().map(unused).sum();
        if unused > 0 {
            self.inputs.warnings.push(format!(
                "not among the keys: {} of --skip-refused: is the list of another release?",
                counted(unused, "kernel")
            ));
        }
    }

    fn finish(
        mut self,
        options: &InputOptions,
        stated: Option<&SourceLicense>,
        allow_partial: bool,
    ) -> Result<(Vec<TargetRequest>, Inputs)> {
        self.leave_out(options, stated)?;
        if !self.wrong_paths.is_empty() && !allow_partial {
            return Err(error::inputs(self.wrong_paths));
        }
        self.inputs.warnings.extend(self.wrong_paths.iter().map(ToString::to_string));
        if !self.has_input {
            self.requests.clear();
        }
        let format = self.inputs.library.consumer.properties().format;
        self.requests.iter_mut().for_each(|request| request.format = format);
        add_to_exact(&mut self.requests);
        self.inputs.absent.sort();
        self.warn_of_unused();
        self.inputs.coverage = self.drop_complete_targets();
        for request in &mut self.requests {
            // Duplicates within one file were found when it was read. Lists may have keys in common.
            if options.manifest.len() + options.keys.len() > 1 {
                let mut seen: HashMap<Arc<KernelKey>, (SourceId, Location)> = HashMap::new();
                let mut other = None;
                request.keys.retain(|(key, source)| {
                    let first = seen.get(&key.key);
                    if let Some((_, first)) = first.filter(|(first, _)| first != source) {
                        other = Some(key.location.duplicate(&key.key, first));
                    }
                    let is_first = first.is_none();
                    if is_first {
                        seen.insert(Arc::clone(&key.key), (*source, key.location.clone()));
                    }
                    is_first
                });
                if let Some(error) = other {
                    return Err(error);
                }
            }
            if request.keys.is_empty() && !self.inputs.key_errors.is_empty() {
                return Err(error::inputs(self.inputs.key_errors));
            }
            if request.keys.is_empty() {
                return Err(error::usage(
                    format!("failed to find any kernel for {}", request.target),
                    "the manifest's target filters or --skip-refused leave every kernel out, or no \
                     source was found",
                ));
            }
        }
        Ok((self.requests, self.inputs))
    }
}

/// By source: the directories below the manifest's that options of its kernels name (`-Iinc`).
fn option_dirs<'k>(
    keys: impl Iterator<Item = &'k Arc<KeyRequest>>,
) -> HashMap<&'k Path, Vec<String>> {
    let mut dirs: HashMap<&Path, Vec<String>> = HashMap::new();
    for key in keys.filter(|key| key.options().contains("-I")) {
        // Wrong options are reported elsewhere.
        let options = arguments::parse(key.language, key.options()).unwrap_or_default();
        for (at, option) in options.iter().enumerate() {
            let dir = match option.strip_prefix("-I") {
                Some("") => options.get(at + 1).map(String::as_str),
                dir => dir,
            };
            let below = dir.and_then(|dir| relative_path::join("", dir));
            let known = dirs.entry(&key.source).or_default();
            known.extend(below.filter(|dir| !dir.is_empty() && !known.contains(dir)));
        }
    }
    dirs
}

/// The path of a source below the manifest's directory, without `..`. `None` if it is outside, or
/// if a symbolic link makes `..` lead elsewhere than the text says.
fn path_below(dir: &Path, source: &Path) -> Option<String> {
    let text = source.to_str().filter(|path| !path.starts_with('/'))?;
    let staged = relative_path::join("", text)?;
    let real = |path: &Path| fs::canonicalize(dir.join(path)).ok();
    (real(Path::new(&staged)) == real(source)).then_some(staged)
}

/// The error for a path in a manifest at which nothing exists.
fn missing_path(at: &Location, path: &Path) -> Error {
    at.fault(
        format!("failed to find `{}`", path.display()),
        "check the path: sources and include-dirs are relative to the manifest's directory",
    )
}

#[cfg(test)]
mod tests;
