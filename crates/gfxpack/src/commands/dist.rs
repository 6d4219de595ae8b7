//! `dist` and `build`: compile, assemble, verify, package.

use std::collections::HashSet;
use std::path::PathBuf;

use gfxpack_compile::{Cancel, Summary};
use gfxpack_miopen::Uses;
use gfxpack_model::Target;
use gfxpack_package::signing::Signer;
use gfxpack_plan::stored::Jobs;
use serde_json::json;

use super::kdb::check::Checks;
use super::plan;
use crate::args::{Build, Packaging};
use crate::asking;
use crate::build::{self, MadeKdb};
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::{Output, counted, size};
use crate::perfdb::Shipped;
use crate::prepare::{self, From, Prepared, Purpose};
use crate::remote::Beyond;
use crate::report::{self, Facts};
use crate::shards::{self, Stored};
use crate::{packages, record, writers};

/// Runs the main job; without `packaging`, up to the kdbs. With `check`, the
/// libMIOpen that was asked looks for its kernels in them.
pub(crate) fn run(
    args: &Build,
    packaging: Option<&Packaging>,
    check: bool,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    // Planning, assembling and verifying run in rayon's own pool, which can be
    // sized once.
    rayon::ThreadPoolBuilder::new().num_threads(build::jobs(args)).build_global().ok();
    if let Some(shard) = args.stored.shard {
        if packaging.is_some() {
            return Err(fail::usage(
                format!("failed to package shard {shard}: it is a part of the kernels only"),
                "build shards with `gfxpack build`, then `merge` and `package` them",
            ));
        }
        return shards::build::run(args, shard, environment, cancel, output);
    }
    let purpose = if args.dry_run { Purpose::Look } else { Purpose::Build };
    let prepared = match &args.stored.plan {
        Some(plan) => {
            let cache = prepare::open_cache(&args.cache, environment, purpose)?;
            let search = prepare::search(&args.toolchain, environment);
            Stored::open(plan)?.prepare(&Jobs::All, cache, &search, cancel)?
        }
        None => {
            let from = From {
                inputs: &args.inputs,
                toolchain: &args.toolchain,
                cache: &args.cache,
                stated_license: packaging.and_then(packages::stated_license),
                allow_partial: args.allow_partial,
                purpose,
                jobs: build::jobs(args),
            };
            match prepare::prepare(&from, environment, cancel, output)? {
                Ok(prepared) => prepared,
                Err(shares) => {
                    plan::tell_shares(&shares, output);
                    return Ok(());
                }
            }
        }
    };
    plan::warn(&prepared, output);
    // What is wrong with the packages' options is said before hours of work.
    let release = packaging
        .map(|packaging| {
            let release = packages::release(packaging, &prepared.library, environment, output)?;
            let targets: Vec<Target> =
                prepared.plan.kdbs.iter().map(|kdb| kdb.target.clone()).collect();
            packages::check(&release, targets.iter(), packaging)?;
            let shipped = Shipped::find(&packaging.with_perfdb, &targets, output)?;
            let key = packaging.sign_key.as_deref().filter(|_| !args.dry_run);
            let signer = key.map(|key| Signer::new(key, release.source_date_epoch)).transpose()?;
            anyhow::Ok((release, shipped, signer))
        })
        .transpose()?;
    if args.dry_run {
        plan::print(&prepared, false, output);
        return Ok(());
    }
    args.report.as_deref().map_or(Ok(()), report::check)?;
    let beyond = Beyond::of(args)?;
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    for (index, toolchain) in prepared.toolchains.iter().enumerate() {
        let kdbs = prepared.plan.kdbs.iter().filter(|kdb| kdb.toolchain.0 == index);
        let targets: Vec<String> = kdbs.map(|kdb| kdb.target.to_string()).collect();
        output.say(&format!("using {} for {}", toolchain.identity(), targets.join(", ")));
    }
    output.building();
    let mut facts = Facts::new();
    let made = build::build(&prepared, args, &beyond, cancel, output, &mut facts);
    let told = report::tell(&facts, &prepared, args.report.as_deref(), made.as_ref().err(), output);
    let made = made?;
    told?;
    let build::Made { kdbs, summary } = made;
    let refused: usize = kdbs.iter().map(|kdb| kdb.missing.len()).sum();
    // A package of nothing would only take the place of one that has kernels.
    let empty = kdbs.iter().any(|kdb| kdb.kernels == 0 && !kdb.missing.is_empty());
    let allowed = refused == 0 || (args.allow_partial && !(empty && packaging.is_some()));
    let mut packaged = writers::Made::default();
    let outputs = prepared.cache.outputs(&args.out)?;
    let kdbs = match (packaging, release) {
        (Some(packaging), Some((release, shipped, signer))) if allowed => {
            let with_release = |kdb: MadeKdb| {
                let release = packages::of_target(&release, &prepared.library, &kdb.target);
                (kdb, release)
            };
            let kdbs: Vec<_> = kdbs.into_iter().map(with_release).collect();
            let planned = packages::plan(&kdbs, &shipped, packaging)?;
            let signer = signer.as_ref();
            packaged = writers::write(
                &planned,
                packaging,
                signer,
                &args.out,
                Some(&outputs),
                cancel,
                output,
            )?;
            let kdbs: Vec<MadeKdb> = kdbs.into_iter().map(|(kdb, _)| kdb).collect();
            record::write(&args.out, &kdbs.iter().collect::<Vec<_>>(), &packaged, signer, output)?;
            kdbs
        }
        _ => {
            record::write(&args.out, &kdbs.iter().collect::<Vec<_>>(), &packaged, None, output)?;
            kdbs
        }
    };
    summarise(&prepared, &kdbs, &summary, &packaged.packages, args, output);
    if let (Some(asked), Some(facts)) = (&prepared.asked, &prepared.library.asked) {
        for kdb in &kdbs {
            let missing: HashSet<_> = kdb.missing.iter().map(|(key, _)| key).collect();
            let planned = prepared.plan.kdbs.iter().filter(|plan| plan.target == kdb.target);
            let rows = planned.flat_map(|plan| plan.rows.iter().map(|row| &*row.key));
            let built = rows.filter(|key| !missing.contains(key));
            let coverage = asking::coverage(asked, facts, &kdb.target, built);
            asking::report_coverage(&coverage, facts, output);
        }
    }
    prepared.cache.shrink(output);
    if let (true, Some(asked), Some(facts)) = (check, &prepared.asked, &prepared.library.asked) {
        let files: Vec<PathBuf> = kdbs.iter().map(|kdb| kdb.path.clone()).collect();
        let library = &args.inputs.asking.library;
        let checks = Checks {
            library: &asked.library,
            problems: &asked.problems,
            files: &files,
            without_source: &facts.without_source,
            databases: asking::library::databases(library, &asked.library)?,
            uses: library.uses.unwrap_or(Uses::ALL),
            jobs: build::jobs(args),
            max_object: args.inputs.max_object,
        };
        checks.run(&kdbs.iter().map(|kdb| kdb.target.clone()).collect(), cancel, output)?;
    }
    if !allowed {
        let kernels: u64 = kdbs.iter().map(|kdb| kdb.kernels).sum();
        let total = kernels as usize + refused;
        let (failed, packages) = (refused, packaging.is_some());
        let why = match summary.failures.len() {
            0 => "what they lack is told above",
            _ => "see the compiler's words above",
        };
        return Err(Outcome::Refused { failed, total, why, packages }.into());
    }
    Ok(())
}

fn summarise(
    prepared: &Prepared,
    kdbs: &[MadeKdb],
    summary: &Summary,
    packaged: &[writers::MadePackage],
    args: &Build,
    output: &Output,
) {
    build::tell(kdbs, output);
    writers::tell(packaged, output);
    let body = json!({
        "jobs": prepared.plan.jobs.len(), "cached": summary.cached,
        "compiled": summary.compiled, "remote": summary.remote, "shared": summary.shared,
        "reused": 0, "failed": summary.failures.len(), "refused_before": summary.refused_before,
        "plan": prepared.plan.digest(),
    });
    output.message("build-finished", &body);
    let failed = match kdbs.iter().map(|kdb| kdb.missing.len()).sum() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let total: u64 = packaged.iter().map(|package| package.written.size).sum();
    let packages = match packaged.len() {
        0 => String::new(),
        count => format!("; {}, {}", counted(count, "package"), size(total)),
    };
    let remote = match summary.remote {
        0 => String::new(),
        remote => format!(" ({remote} remotely)"),
    };
    let shared = match summary.shared {
        0 => String::new(),
        shared => format!(" ({shared} of them from the shared one)"),
    };
    output.say(&format!(
        "{} compiled{remote}, {} from the cache{shared}{failed}{packages}: {}",
        summary.compiled,
        summary.cached,
        args.out.display()
    ));
}
