//! Runs a plan and assembles its kdbs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_compile::{
    CorruptObject, Event as JobEvent, ExecutorOptions, History, Summary, interrupted,
};
use gfxpack_kdb::{Blob, Row};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, JobId, KdbId, KernelFileFormat, Target};
use gfxpack_plan::plan::KdbPlan;
use gfxpack_plan::shard::Shard;
use gfxpack_process::Timestamp;

use crate::environment::ENVIRONMENT;
use crate::error::{self, Error, ErrorKind, Result};
use crate::failures;
use crate::inputs::Inputs;
use crate::kdb_inputs::KdbInputs;
use crate::kernel_files;
use crate::ledger::{self, AbsentCounts, Ledger, Reason};
use crate::options::{BuildOptions, Via, processes};
use crate::outputs::{OutputDigest, Outputs};
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};
use crate::remote;
use crate::report::{self, BuildFacts, FailureFiles};
use crate::text::counted;

/// How often objects that are damaged are compiled again before the build gives
/// up.
pub(crate) const REPAIRS: u32 = 2;

/// One kdb.
pub struct MadeKdb {
    /// For which GPU.
    pub target: Target,
    /// The file.
    pub path: PathBuf,
    /// Number of rows.
    pub kernels: u64,
    /// Wanted kernels that it does not have.
    pub absent: AbsentCounts,
    pub(crate) inputs: KdbInputs,
}

/// The error for kernels that could not be compiled or found, although none may
/// be missing. `reasons` says where to find the reasons. `packages` says that
/// packages were to be made; none were.
pub(crate) fn incomplete(kdbs: &[MadeKdb], reasons: &str, packages: bool) -> Error {
    let kernels: u64 = kdbs.iter().map(|kdb| kdb.kernels).sum();
    let failed: u64 = kdbs.iter().map(|kdb| ledger::missing(&kdb.absent)).sum();
    let hint = match packages {
        _ if kernels == 0 => reasons.to_owned(),
        true => format!("{reasons}; --allow-partial makes packages without these kernels"),
        false => {
            format!(
                "{reasons}; the other kernels are in the kdbs; with --allow-partial the exit code \
                 is 0"
            )
        }
    };
    let no_package = if packages { "; no package was made" } else { "" };
    let total = counted(kernels + failed, "kernel");
    let message = format!("failed to build {failed} of {total}{no_package}");
    Error::new(ErrorKind::Incomplete, message, hint)
}

/// Compiles what the cache lacks, and writes and verifies every kdb below the
/// output directory, in the plan's order. Kernels that failed are reported to `progress`, and are
/// missing in the ledger; all others are in the kdbs.
///
/// # Errors
/// If the build as a whole fails; a job that fails is not an error.
pub(crate) fn build<'a>(
    prepared: &'a Prepared,
    options: &BuildOptions,
    executor: ExecutorOptions,
    outputs: &Outputs<'_>,
    progress: &dyn Progress,
) -> Result<(Vec<MadeKdb>, Summary, Ledger<'a>)> {
    reported(prepared, options, None, progress, |facts| {
        let Prepared { plan, toolchains, cache, .. } = prepared;
        let mut failed: HashMap<JobId, (Reason, String)> = HashMap::new();
        // Runs all jobs whose objects the cache does not have, and records what they were made from.
        let mut run_all = |failed: &mut HashMap<_, _>| {
            let executor = prepared.executor(&cache.store, None, &executor, progress.cancel());
            let summary = executor.run(&mut |event| {
                facts.event(&event);
                match &event {
                    JobEvent::FoundInCache { refused, .. } => {
                        let refused = refused.iter();
                        *failed =
                            refused.map(|(job, one)| (*job, failures::absence(one))).collect();
                    }
                    JobEvent::Failed { job, failure, .. } => {
                        failed.insert(*job, failures::absence(failure));
                    }
                    _ => {}
                }
                progress.event(Event::Job(plan, &event));
            })?;
            cache.digests.save();
            // Without it, a later plan can't say what changed.
            History::record(plan, toolchains, &cache.store, &summary).ok();
            Ok::<Summary, Error>(summary)
        };
        let mut summary = run_all(&mut failed)?;
        let mut repairs = REPAIRS;
        Ok(loop {
            let store = &cache.store;
            let read = |job: JobId| match &summary.objects[job.0] {
                Some((object, _)) => store.read(object.key),
                None => Err(CorruptObject(plan[job].digest).into()),
            };
            let objects = summary.objects.iter();
            let known = objects
                .map(|object| object.as_ref().map(|(object, _)| (object.sha256, object.size)))
                .collect();
            let ledger = Ledger::new(plan, &prepared.inputs, known, &failed);
            let BuildOptions { out, blob, .. } = options;
            match assemble(&prepared.inputs, out, *blob, outputs, &ledger, &read, progress) {
                Err(error) if repairs > 0 && damaged_object(&error).is_some() => {
                    repairs -= 1;
                    // If one object is damaged, others may be too: find all of them at once.
                    let keys = summary.objects.iter().flatten().map(|(object, _)| object.key);
                    store.drop_damaged(&keys.collect::<Vec<Digest>>());
                    summary = run_all(&mut failed)?;
                }
                made => break (made?, summary, ledger),
            }
        })
    })
}

/// Runs the jobs of a build or a shard with `run`, and writes the reports whether
/// or not that succeeds.
pub(crate) fn reported<T>(
    prepared: &Prepared,
    options: &BuildOptions,
    shard: Option<Shard>,
    progress: &dyn Progress,
    run: impl FnOnce(&mut BuildFacts) -> Result<T>,
) -> Result<T> {
    let mut facts = BuildFacts::new();
    facts.date = ENVIRONMENT.stated_epoch().map_or(facts.date, Timestamp);
    let files = FailureFiles::new(&options.out, shard, options.reports(false).next());
    progress.event(Event::BuildStarted(&prepared.plan, &files));
    let ended = run(&mut facts);
    progress.event(Event::BuildEnded);
    let written = report::write(&facts, prepared, options, &files, ended.as_ref().err(), progress);
    let made = ended?;
    written.map(|()| made)
}

/// The executor's options for a plan's jobs.
///
/// # Errors
/// If the options name a remote service that can't be used.
pub(crate) fn executor_options(
    prepared: &Prepared,
    options: &BuildOptions,
) -> Result<ExecutorOptions> {
    Ok(ExecutorOptions {
        jobs: processes(options.jobs),
        time_limit: Duration::from_secs(options.timeout),
        cache_dir: prepared.cache.scratch.clone(),
        shortcuts: options.via == Via::Auto,
        remote: remote::workers(options)?,
        shared: remote::cache(options)?,
        retry_refused: options.retry_refused,
        admitted: options.allow_read.clone(),
    })
}

/// The stored object that was found damaged, if that is the cause of an error.
pub(crate) fn damaged_object(error: &Error) -> Option<Digest> {
    error.cause().map(|CorruptObject(object)| *object)
}

/// Writes and verifies every kdb of a plan that is not up to date, from objects wherever those were
/// compiled. Each format has a subdirectory of `out`; `read` reads the object of a job.
pub(crate) fn assemble(
    inputs: &Inputs,
    out: &Path,
    blob: Blob,
    outputs: &Outputs<'_>,
    ledger: &Ledger<'_>,
    read: &(dyn Fn(JobId) -> Result<Vec<u8>> + Sync),
    progress: &dyn Progress,
) -> Result<Vec<MadeKdb>> {
    let plan = ledger.plan;
    let check = || if progress.cancel().is_cancelled() { Err(interrupted()) } else { Ok(()) };
    let make = |id: KdbId| {
        let KdbPlan { target, format, .. } = &plan[id];
        let dir = out.join(format.output_dir());
        std::fs::create_dir_all(&dir).map_err(error::io("create", &dir))?;
        let path = dir.join(plan[id].file_name());
        let made = plan[id].rows.iter().filter_map(|row| {
            let (_, size) = ledger.known[row.job.0]?;
            Some((row.job, Row { key: &row.key, size }))
        });
        let (jobs, rows): (Vec<JobId>, Vec<Row<'_>>) = made.unzip();
        let show = |rows, total, unchanged| {
            progress.event(Event::KdbProgress { plan, kdb: id, rows, total, unchanged });
        };
        let output = output_digest(inputs, blob, outputs, ledger, id);
        let kernels = if outputs.unchanged(&output).is_some() {
            let kernels = rows.len() as u64;
            show(kernels, kernels, true);
            kernels
        } else {
            let library = &inputs.library;
            let object = |position: usize| check().and_then(|()| read(jobs[position]));
            let show = |rows, total| show(rows, total, false);
            let kernels = kernel_files::write(&path, target, library, blob, &rows, &object, &show)?;
            check()?;
            verify(*format, &path, target)?;
            let file = outputs.records.described(&path).map_err(error::io("read", &path))?;
            outputs.records.note_verified(&file, target, kernels);
            outputs.remember(&output, &file);
            kernels
        };
        let (inputs, absent) =
            (KdbInputs::of_kdb(plan, inputs, id), ledger.absences.counts(target));
        Ok(MadeKdb { target: target.clone(), path, kernels, absent, inputs })
    };
    (0..plan.kdbs.len()).map(|id| make(KdbId(id))).collect()
}

/// The digest of everything that determines a kdb's bytes.
fn output_digest(
    inputs: &Inputs,
    blob: Blob,
    outputs: &Outputs<'_>,
    ledger: &Ledger<'_>,
    kdb: KdbId,
) -> OutputDigest {
    let (plan, library) = (ledger.plan, &inputs.library);
    let name = format!("kdb {}", plan[kdb].file_name());
    let version = library.miopen_version().to_string();
    let form = kernel_files::identity(library, blob);
    // A job's digest does not cover the system's headers, so the objects
    // count too.
    let objects = plan[kdb].rows.iter().map(|row| {
        let object = ledger.known[row.job.0];
        object.map_or(Digest::from_bytes([0; 32]), |(sha256, _)| sha256)
    });
    let object_digests = Hasher::new("gfxpack objects of a kdb 1").list(objects).finish();
    let plan_digest = plan.kdb_digest(kdb);
    let fields =
        [plan_digest.as_ref(), object_digests.as_ref(), form.as_bytes(), version.as_bytes()];
    outputs.digest_of(&name, fields)
}

/// Reads the kdb back. A finding is a defect of gfxpack or of the disk. Such a
/// kdb is removed, so that nobody takes it for a verified one.
fn verify(format: KernelFileFormat, path: &Path, target: &Target) -> Result<()> {
    let verified = kernel_files::verified(format, path, target);
    if verified.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unsound) {
        std::fs::remove_file(path).map_err(error::io("remove", path))?;
    }
    verified.map(|_| ())
}

#[cfg(test)]
mod tests {
    use gfxpack_kdb::WriteOptions;
    use gfxpack_model::KernelKey;

    use super::*;

    #[test]
    fn a_kdb_that_does_not_pass_verification_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gfx906_60.kdb");
        let key = KernelKey::for_source("a.cl", "", "gfx906");
        let write = |object: &[u8]| {
            let row = Row { key: &key, size: object.len() as u64 };
            let object = |_| Ok::<_, std::io::Error>(object.to_vec());
            gfxpack_kdb::write(&path, &[row], &WriteOptions::default(), object).unwrap();
            let target = "gfx906_60".parse().unwrap();
            verify(KernelFileFormat::Kdb, &path, &target).map_err(|error| error.to_string())
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
