//! Runs a plan and assembles its kdbs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use gfxpack_compile::{
    Cancel, CompileError, Executor, ExecutorOptions, History, Summary, default_jobs,
};
use gfxpack_kdb::{Row, VerifyOptions, WriteError, WriteOptions};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, JobId, KdbId, KernelKey, Target};
use gfxpack_package::sums;
use gfxpack_plan::plan;
use serde_json::json;

use crate::args::{Build, KdbForm};
use crate::fail::{self, Outcome};
use crate::output::{Output, shown};
use crate::outputs::{Outputs, Recipe};
use crate::prepare::Prepared;
use crate::progress::{self, Progress};
use crate::provenance::Provenance;
use crate::record::Origin;
use crate::remote::Beyond;
use crate::report::Facts;

/// How often an object that turns out damaged is made again before it is
/// given up: a disk that loses bytes twice loses them always.
pub(crate) const REPAIRS: u32 = 2;

/// What a build made.
pub(crate) struct Made {
    pub(crate) kdbs: Vec<MadeKdb>,
    pub(crate) summary: Summary,
}

/// One kdb.
pub(crate) struct MadeKdb {
    pub(crate) target: Target,
    pub(crate) path: PathBuf,
    pub(crate) kernels: u64,
    /// Keys that should be in it and are not, with the reason.
    pub(crate) missing: Vec<(KernelKey, String)>,
    /// What it was made from.
    pub(crate) origin: Origin,
}

/// Compilers at once.
pub(crate) fn jobs(args: &Build) -> usize {
    processes(args.jobs)
}

/// So many processes at once: as many as are wanted, or one for each processor.
pub(crate) fn processes(wanted: Option<u16>) -> usize {
    wanted.map_or_else(default_jobs, usize::from)
}

/// Compiles what the cache lacks, and writes and verifies every kdb below
/// `<out>/kdb`. Kernels that failed are told by `progress` and listed in what
/// was made; all others are in the kdbs. `facts` learns of every job, also of
/// a build that ends with an error.
pub(crate) fn build(
    prepared: &Prepared,
    args: &Build,
    beyond: &Beyond,
    cancel: &Cancel,
    output: &Output,
    facts: &mut Facts,
) -> anyhow::Result<Made> {
    let kdb_dir = args.out.join("kdb");
    std::fs::create_dir_all(&kdb_dir).map_err(fail::io("create", &kdb_dir))?;
    let outputs = prepared.cache.outputs(&args.out)?;
    let mut progress = progress::of(output, &prepared.plan, args.report.as_deref());
    let made = run(prepared, args, beyond, cancel, &outputs, progress.as_mut(), facts);
    progress.finish(progress::keeps(&made));
    made
}

fn run(
    prepared: &Prepared,
    args: &Build,
    beyond: &Beyond,
    cancel: &Cancel,
    outputs: &Outputs,
    progress: &mut dyn Progress,
    facts: &mut Facts,
) -> anyhow::Result<Made> {
    let options = ExecutorOptions {
        jobs: jobs(args),
        time_limit: Duration::from_secs(args.timeout),
        cache_dir: prepared.cache.scratch.clone(),
        shortcuts: args.shortcuts(),
        remote: beyond.workers.clone(),
        shared: beyond.cache.clone(),
        retry_refused: args.retry_refused,
        admitted: args.allow_read.clone(),
    };
    let plan = &prepared.plan;
    let mut repairs = REPAIRS;
    loop {
        let executor = Executor {
            plan,
            only: None,
            sources: &prepared.sources,
            toolchains: &prepared.toolchains,
            store: &prepared.cache.store,
            digests: &prepared.cache.digests,
            options: &options,
            cancel,
        };
        let summary = executor.run(&mut |event| {
            facts.event(&event);
            progress.event(plan, &event);
        })?;
        prepared.cache.digests.save();
        History::record(
            plan,
            &prepared.toolchains,
            &prepared.cache.store,
            &prepared.cache.digests,
            &summary,
        );
        // Another build with other files beside its sources may have put an
        // object of its own into the same place.
        let read = |job: JobId| {
            let (store, digest) = (&prepared.cache.store, plan[job].digest);
            match &summary.objects[job.0] {
                Some(object) => store.read_known(digest, object.sha256),
                None => store.read(digest),
            }
        };
        let failures = summary.failures.iter();
        let objects = Objects {
            known: summary
                .objects
                .iter()
                .map(|object| object.as_ref().map(|object| (object.sha256, object.size)))
                .collect(),
            failed: failures.map(|(job, kind)| (*job, kind.to_string())).collect(),
            read: &read,
        };
        let assembly = Assembly { prepared, out: &args.out, form: args.form, cancel, outputs };
        match assembly.run(&objects, progress) {
            Err(error) if repairs > 0 && is_corrupt_object(&error) => {
                repairs -= 1;
                // Where one is damaged there may be more: all are found at once.
                let jobs: Vec<Digest> = plan.jobs.iter().map(|job| job.digest).collect();
                prepared.cache.store.drop_damaged(&jobs);
            }
            other => return Ok(Made { kdbs: other?, summary }),
        }
    }
}

/// Whether assembling found a damaged object, which the store has dropped.
fn is_corrupt_object(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref::<CompileError>(), Some(CompileError::CorruptObject(_)))
    })
}

/// Where the objects of a plan's jobs are.
pub(crate) struct Objects<'a> {
    /// By job: SHA-256 and size; `None` where it failed.
    pub(crate) known: Vec<Option<(Digest, u64)>>,
    /// Jobs that have none, with the reason.
    pub(crate) failed: HashMap<JobId, String>,
    /// Reads a job's.
    pub(crate) read: &'a (dyn Fn(JobId) -> Result<Vec<u8>, CompileError> + Sync),
}

/// Makes the kdbs of a plan out of objects, wherever those were made.
pub(crate) struct Assembly<'a> {
    pub(crate) prepared: &'a Prepared,
    /// kdbs go to `kdb` below.
    pub(crate) out: &'a Path,
    pub(crate) form: KdbForm,
    pub(crate) cancel: &'a Cancel,
    pub(crate) outputs: &'a Outputs,
}

impl Assembly<'_> {
    /// Writes and verifies every kdb, but those that lie there as they would
    /// be made.
    pub(crate) fn run(
        &self,
        objects: &Objects<'_>,
        progress: &mut dyn Progress,
    ) -> anyhow::Result<Vec<MadeKdb>> {
        let Self { prepared, form, cancel, outputs, .. } = *self;
        let plan = &prepared.plan;
        let progress = Mutex::new(progress);
        let mut made = Vec::new();
        for (id, kdb) in (0..).map(KdbId).zip(&plan.kdbs) {
            let path = self.out.join("kdb").join(kdb.target.kdb_file_name());
            let failed = |row: &plan::Row| objects.failed.get(&row.job);
            let mut missing: Vec<(KernelKey, String)> = kdb
                .rows
                .iter()
                .filter_map(|row| Some((KernelKey::clone(&row.key), failed(row)?.clone())))
                .collect();
            let unbuilt = prepared.unbuildable.get(&kdb.target).into_iter().flatten();
            missing
                .extend(unbuilt.map(|unbuilt| (unbuilt.key.clone(), unbuilt.reason.text.clone())));
            missing.sort();
            let rows: Vec<_> = kdb.rows.iter().filter(|row| failed(row).is_none()).collect();
            let origin = Origin::of(prepared, id);
            let (target, kernels) = (kdb.target.clone(), rows.len() as u64);
            let recipe = self.recipe(id, &missing, objects);
            if recipe.as_ref().and_then(|recipe| outputs.unchanged(recipe)).is_some() {
                progress.lock().expect("no panic inside").unchanged(plan, id, kernels);
                made.push(MadeKdb { target, path, kernels, missing, origin });
                continue;
            }
            let size = |row: &plan::Row| objects.known[row.job.0].map_or(0, |(_, size)| size);
            let sized: Vec<Row<'_>> =
                rows.iter().map(|row| Row { key: &row.key, size: size(row) }).collect();
            let report = |done: gfxpack_kdb::Progress| {
                let mut progress = progress.lock().expect("no panic inside");
                progress.assembled(plan, id, done.rows, done.total);
            };
            let mut write_options = WriteOptions::default();
            write_options.progress = Some(&report);
            write_options.blob = form.blob.into();
            write_options.layout = form.kdb_layout.into();
            let origins = form.provenance.then(|| Provenance::of(plan, id));
            let origin_of = |position: usize| origins.as_ref()?.of_job(plan, rows[position].job);
            write_options.origin = Some(&origin_of);
            let object = |position: usize| {
                if cancel.is_cancelled() {
                    return Err(CompileError::Interrupted);
                }
                (objects.read)(rows[position].job)
            };
            let written = gfxpack_kdb::write(&path, &sized, &write_options, object)
                .map_err(unwrap_object_error)?;
            if cancel.is_cancelled() {
                return Err(CompileError::Interrupted.into());
            }
            verify(&path, &kdb.target)?;
            if let Some(recipe) = &recipe {
                outputs.remember(recipe, &sums::digest_file(&path)?);
            }
            made.push(MadeKdb { target, path, kernels: written.rows, missing, origin });
        }
        Ok(made)
    }

    /// What decides a kdb's bytes; none where more does than can be said.
    fn recipe(
        &self,
        kdb: KdbId,
        missing: &[(KernelKey, String)],
        objects: &Objects<'_>,
    ) -> Option<Recipe> {
        if self.form.provenance {
            return None;
        }
        let plan = &self.prepared.plan;
        let slot = format!("kdb {}", plan[kdb].target.kdb_file_name());
        let form = format!("{:?} {:?}", self.form.blob, self.form.kdb_layout);
        // A job's digest does not tell of the system's headers: the object does.
        let rows = &plan[kdb].rows;
        let made = Hasher::new("gfxpack objects of a kdb 1")
            .list(rows.iter().map(|row| {
                let object = objects.known[row.job.0];
                object.map_or(Digest::from_bytes([0; 32]), |(sha256, _)| sha256)
            }))
            .finish();
        let plan = plan.kdb_digest(kdb);
        let missing = missing.iter().map(|(key, _)| [&key.kernel_name, &key.kernel_args]);
        let missing = missing.flatten().map(String::as_bytes);
        let fields = [plan.as_ref(), made.as_ref(), form.as_bytes()].into_iter().chain(missing);
        Some(self.outputs.recipe(&slot, fields))
    }
}

/// Tells machines of the kdbs that were made.
pub(crate) fn tell(kdbs: &[MadeKdb], output: &Output) {
    for kdb in kdbs {
        let body = json!({
            "target": kdb.target, "file": shown(&kdb.path), "kernels": kdb.kernels,
            "missing": kdb.missing.len(),
        });
        output.message("kdb", &body);
    }
}

/// Puts what the store said in place of the kdb writer's wrapping of it.
fn unwrap_object_error(error: WriteError) -> anyhow::Error {
    match error {
        WriteError::Object { source, key } => match source.downcast::<CompileError>() {
            Ok(error) => anyhow::Error::from(*error),
            Err(source) => WriteError::Object { source, key }.into(),
        },
        other => other.into(),
    }
}

/// Reads the kdb back as a stranger would; what is wrong with it then is a
/// defect of gfxpack or of the disk. Such a kdb does not stay: others would
/// take it for one that was verified.
fn verify(path: &Path, target: &Target) -> anyhow::Result<()> {
    let report = gfxpack_kdb::verify(path, Some(target), &VerifyOptions::default())?;
    match report.findings.first() {
        None if report.is_sound() => Ok(()),
        first => {
            std::fs::remove_file(path).map_err(fail::io("remove", path))?;
            let finding = first.map(ToString::to_string).unwrap_or_default();
            Err(Outcome::Unsound(format!("`{}`: {finding}", path.display())).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kdb_that_is_refused_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gfx906_60.kdb");
        let key = KernelKey::for_source("a.cl", "", "gfx906");
        let write = |object: &[u8]| {
            let row = Row { key: &key, size: object.len() as u64 };
            let object = |_| Ok::<_, std::io::Error>(object.to_vec());
            gfxpack_kdb::write(&path, &[row], &WriteOptions::default(), object).unwrap();
            verify(&path, &"gfx906_60".parse().unwrap()).map_err(|error| error.to_string())
        };
        assert!(write(b"no code object").unwrap_err().contains("gfx906_60.kdb"));
        assert!(!path.exists());
        let mut object = vec![0; 64];
        object[..4].copy_from_slice(b"\x7fELF");
        (object[8], object[18]) = (2, 0xe0);
        object[48] = 0x2f;
        assert_eq!(write(&object), Ok(()));
        assert!(path.exists());
    }
}
