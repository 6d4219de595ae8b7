//! The directory of a stored plan: header, jobs, and the sources' files by
//! digest. docs/plan-format.md describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use gfxpack_compile::{Cancel, Declarer, FileSystemCache, SourceSet, StoredContent};
use gfxpack_model::{Digest, Language, SourceId, TargetId, ToolchainId};
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_plan::stored::{self, Beside, FORMAT, Header, Jobs, StoredToolchain};
use gfxpack_process::is_not_found;
use gfxpack_toolchain::{Search, Toolchain, Toolchains, different_names};
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::destination::replace;
use crate::error::{self, Error, Result};
use crate::inputs::Inputs;
use crate::kernel_library::KernelLibrary;
use crate::ledger::Absences;
use crate::prepare::{Prepared, RayonWorkers, for_plan};
use crate::record::GENERATOR;
use crate::text::joined;

/// Written last: a directory without it is not a plan.
const HEADER: &str = "plan.json";
const JOBS: &str = "jobs.jsonl";
/// The directory for the sources' files.
const FILES: &str = "files";
/// How many names of files that differ are reported.
const NAMED: usize = 3;

/// The description of a plan, besides its jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanDescription {
    library: KernelLibrary,
    absent: Absences,
}

pub(crate) struct Stored {
    dir: PathBuf,
    header: Header<PlanDescription>,
}

/// The path of a source's file.
fn file(dir: &Path, digest: Digest) -> PathBuf {
    let name = digest.to_string();
    dir.join(FILES).join(&name[..2]).join(name)
}

/// Stores a plan in `dir`.
///
/// # Errors
/// If a file can't be written.
pub fn write(dir: &Path, prepared: Prepared, cancel: &Cancel) -> Result<Header<PlanDescription>> {
    let Prepared { plan, inputs, toolchains, cache } = prepared;
    fs::create_dir_all(dir).map_err(error::io("create", dir))?;
    write_sources(dir, &inputs.sources)?;
    let path = dir.join(JOBS);
    let usual = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let temporary = tempfile::Builder::new().prefix(".jobs").permissions(usual).tempfile_in(dir);
    let mut temporary = temporary.map_err(error::io("create", dir))?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary.as_file_mut());
    let mut write = |line: &[u8]| out.write_all(line).map_err(error::io("write", &path));
    let written = stored::write_jobs(&plan, &mut write)?;
    out.flush().map_err(error::io("write", &path))?;
    drop(out);
    let samples = written.samples.iter().map(|job| &plan[*job]);
    let beside = write_beside(dir, &inputs.sources, &toolchains, &cache, samples, cancel)?;
    let stored = toolchains.iter().map(|toolchain| {
        let closure = toolchain.covered_files.to_vec();
        StoredToolchain { toolchain: for_plan(toolchain), closure }
    });
    let header = Header {
        format: FORMAT,
        generator: GENERATOR.to_owned(),
        digest: plan.digest(),
        jobs: written.jobs,
        jobs_sha256: written.jobs_sha256,
        toolchains: stored.collect(),
        sources: plan.sources,
        beside,
        groups: written.groups,
        kdbs: written.kdbs,
        about: PlanDescription { library: inputs.library, absent: inputs.absent },
    };
    // An earlier plan's header must not be there with the new jobs.
    let head = dir.join(HEADER);
    fs::remove_file(&head).ok();
    temporary.persist(&path).map_err(|error| error::io("write", &path)(error.error))?;
    replace(&head, &header.to_text().map_err(error::json)?)?;
    Ok(header)
}

/// Stores the sources with all files that they include.
fn write_sources(dir: &Path, sources: &SourceSet) -> Result<()> {
    for (id, source) in (0..).map(SourceId).zip(sources.sources()) {
        for (staged, (_, bytes)) in source.files.iter().zip(sources.files(id)) {
            store(dir, staged.digest, bytes)?;
        }
    }
    Ok(())
}

/// Stores a file, unless it is already stored undamaged.
fn store(dir: &Path, digest: Digest, bytes: &[u8]) -> Result<()> {
    let path = file(dir, digest);
    let is_whole = fs::read(&path).is_ok_and(|bytes| Digest::of(&bytes) == digest);
    if is_whole { Ok(()) } else { replace(&path, bytes) }
}

/// Stores files of the sources' directories that only headers of the system name, and
/// returns them by source.
fn write_beside<'a>(
    dir: &Path,
    sources: &SourceSet,
    toolchains: &[Toolchain],
    cache: &Cache,
    samples: impl Iterator<Item = &'a Job>,
    cancel: &Cancel,
) -> Result<Vec<Beside>> {
    let file_system = FileSystemCache::new(&cache.digests);
    let declarer = Declarer::new(&file_system, sources, toolchains, &cache.store, cancel, &[])
        .without_writing();
    let mut beside = vec![Beside::default(); sources.sources().len()];
    for job in samples {
        let declared = declarer.declared(job);
        declared
            .add_beside(&mut beside[job.source.0], |digest, bytes| store(dir, digest, bytes))?;
    }
    Ok(beside)
}

impl Stored {
    /// Opens the plan in a directory, or the one whose header file is given.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let dir = if path.is_file() { path.parent().unwrap_or(path) } else { path };
        let dir = if dir == Path::new("") { Path::new(".") } else { dir };
        let head = dir.join(HEADER);
        let text = fs::read(&head).map_err(|error| {
            let is_missing = dir.is_dir() && is_not_found(&error);
            let message = if is_missing {
                format!("failed to find a stored plan in `{}`", dir.display())
            } else {
                format!("failed to read the plan `{}`: {error}", path.display())
            };
            error::usage(message, "give the directory that `gfxpack plan --out` wrote")
        })?;
        let header = Header::from_text(&text, &path.display().to_string())?;
        Ok(Self { dir: dir.to_owned(), header })
    }

    pub(crate) fn digest(&self) -> Digest {
        self.header.digest
    }

    pub(crate) fn load(&self, wanted: &Jobs<'_>) -> Result<Plan> {
        let path = self.dir.join(JOBS);
        let lines = File::open(&path).map_err(error::io("read", &path))?;
        let mut lines = BufReader::with_capacity(1 << 20, lines);
        stored::read(&self.header, &mut lines, wanted, &RayonWorkers)
    }

    /// Prepares a build of these jobs with the plan's toolchains.
    pub(crate) fn prepare(
        self,
        wanted: &Jobs<'_>,
        cache: Cache,
        search: &Search,
        cancel: &Cancel,
    ) -> Result<Prepared> {
        let mut toolchains = Vec::new();
        let mut found = cache.toolchains(search, cancel)?;
        for (id, wanted) in (0..).map(ToolchainId).zip(&self.header.toolchains) {
            let languages = self.languages(id).into_values().flatten().collect();
            match found.with_digest(wanted.toolchain.digest, &languages)? {
                Some(toolchain) => toolchains.push(toolchain),
                None => return Err(self.differs(id, &mut found)),
            }
        }
        if cache.writable {
            cache.digests.save();
        }
        let plan = self.load(wanted)?;
        self.prepared(plan, toolchains, cache)
    }

    /// Like [`Stored::prepare`], with a plan and toolchains that were already read.
    pub(crate) fn prepared(
        self,
        plan: Plan,
        toolchains: Vec<Toolchain>,
        cache: Cache,
    ) -> Result<Prepared> {
        let used = plan.jobs.iter().map(|job| (job.source, job.language)).collect();
        let content = StoredContent { dir: self.dir, file };
        let sources = SourceSet::of_stored(&plan.sources, &self.header.beside, &used, &content)?;
        let PlanDescription { library, absent } = self.header.about;
        let warnings = cache.warning.iter().cloned().collect();
        let inputs = Inputs { sources, library, absent, warnings, ..Inputs::default() };
        Ok(Prepared { plan, inputs, toolchains, cache })
    }

    /// By target: the languages that a toolchain compiles.
    fn languages(&self, toolchain: ToolchainId) -> BTreeMap<TargetId, BTreeSet<Language>> {
        let mut languages: BTreeMap<TargetId, BTreeSet<Language>> = BTreeMap::new();
        let groups = self.header.groups.iter().filter(|group| group.toolchain == toolchain);
        for group in groups {
            languages.entry(group.target_id.clone()).or_default().insert(group.language);
        }
        languages
    }

    /// The error for a toolchain of the plan that is not on this machine. It says
    /// how the one that would be used instead differs.
    fn differs(&self, id: ToolchainId, found: &mut Toolchains<'_>) -> Error {
        let wanted = &self.header.toolchains[id.0];
        let here = self
            .languages(id)
            .iter()
            .next()
            .and_then(|(id, languages)| found.choose(id, languages).ok());
        let difference = match &here {
            None => "none is found here that could take its place".to_owned(),
            Some(here) => {
                let difference = different(&wanted.closure, &here.covered_files);
                format!("here is {}{difference}", here.identity())
            }
        };
        error::usage(
            format!(
                "failed to run the plan `{}`: it was made with {}, and {difference}",
                self.dir.display(),
                wanted.toolchain.identity
            ),
            "run it where the very same compiler is installed, as in one container image, or make \
             the plan here; --hipcc and --clang choose another compiler",
        )
    }
}

/// Names files that differ between two toolchains, or that only one has.
fn different(wanted: &[(String, Digest)], here: &[(String, Digest)]) -> String {
    let names = different_names(wanted, here);
    let first = joined(names.iter().take(NAMED));
    match names.len() {
        0 => " with other constants supplied".to_owned(),
        count if count <= NAMED => format!(", which differs in {first}"),
        count => format!(", which differs in {count} files, among them {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_of_a_plan_is_stored_again() {
        let dir = tempfile::tempdir().unwrap();
        let (main, plan) = (dir.path().join("k.cl"), dir.path().join("plan"));
        fs::write(&main, "text").unwrap();
        let mut sources = SourceSet::default();
        sources.load(&main, "k.cl", Language::OpenclC, &[], &[], None).unwrap();
        let stored = file(&plan, Digest::of(b"text"));
        for damaged in [None, Some("")] {
            damaged.inspect(|text| fs::write(&stored, text).unwrap());
            write_sources(&plan, &sources).unwrap();
            assert_eq!(fs::read_to_string(&stored).unwrap(), "text");
        }
    }
}
