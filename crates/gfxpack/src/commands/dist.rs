//! `dist`, `build` and `package`: compile, assemble, verify, package.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gfxpack_compile::Origin;
use gfxpack_pipeline::build::MadeKdb;
use gfxpack_pipeline::dist::{Dist, FinishedDist};
use gfxpack_pipeline::kernel_library::LibraryFacts;
use gfxpack_pipeline::ledger;
use gfxpack_pipeline::options::{BuildOptions, PackageKdbs, PackageOptions, processes};
use gfxpack_pipeline::prepare::Preparation;
use gfxpack_pipeline::text::brief;
use gfxpack_pipeline::write_packages::MadePackage;

use super::{kdb, plan};
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{Output, counted, display, if_any, message, size};
use crate::progress::Reporter;
use crate::report_inputs;

/// Runs the main job, or without `package` only up to the kdbs. With `check`,
/// the library that was asked must find its kernels in them.
pub(crate) fn run(
    build: &BuildOptions,
    package: Option<&PackageOptions>,
    check: bool,
    context: &Context,
) -> Result {
    let Context { output, .. } = context;
    let begun = Instant::now();
    // Planning, assembling and verifying use rayon's global pool, whose size can
    // be set only once.
    rayon::ThreadPoolBuilder::new().num_threads(processes(build.jobs)).build_global().ok();
    let asking = &build.inputs.asking;
    if check && asking.problems.is_empty() && asking.rocfft.plans.is_empty() {
        return Err(fail::usage(
            "failed to use --check: no library is asked which kernels are needed",
            "give --problems FILE or --plans FILE; for kdbs of a stored plan or of keys, use \
             `gfxpack kdb check KDB --problems FILE` afterwards",
        ));
    }
    let reporter = Reporter::new(context);
    let dist = match Dist::prepare(build, package, &reporter)? {
        Preparation::ToDo(dist) => dist,
        Preparation::NothingToDo(coverage) => {
            report_inputs::report_nothing(&coverage, output);
            return Ok(());
        }
    };
    report_inputs::report(&dist.prepared.inputs, output);
    let package_settings = dist.check_packages(&reporter)?;
    if build.dry_run {
        plan::print(&dist.prepared, &build.allow_read, false, output);
        return Ok(());
    }
    let finished = dist.run(package_settings, &reporter)?;
    summarise(&dist, &finished, build, begun, output);
    finished.outcome()?;
    if check {
        let files: Vec<PathBuf> = finished.kdbs.iter().map(|kdb| kdb.path.clone()).collect();
        let mut each = |checked: &_| kdb::check::report(checked, &files, output);
        dist.check_kdbs(&finished, &reporter, &mut each)?;
    }
    say_how_to_install(&finished.packages.packages, &build.out, output);
    Ok(())
}

/// Verifies and packages each of existing kdbs.
pub(crate) fn package(args: &PackageKdbs, context: &Context) -> Result {
    let Context { output, .. } = context;
    output.building();
    let packages = args.run(&Reporter::new(context))?.packages;
    report_packages(&packages, output);
    say_how_to_install(&packages, &args.out, output);
    Ok(())
}

fn summarise(
    dist: &Dist<'_>,
    finished: &FinishedDist,
    args: &BuildOptions,
    begun: Instant,
    output: &Output,
) {
    let (plan, summary) = (&dist.prepared.plan, &finished.summary);
    report_kdbs(&finished.kdbs, output);
    report_packages(&finished.packages.packages, output);
    let [cached, shared, here, remote] =
        [Origin::Cached, Origin::Shared, Origin::Here, Origin::Remote].map(|it| summary.count(it));
    let (cached, compiled) = (cached + shared, here + remote);
    message!(output, "build-finished", {
        "jobs": plan.jobs.len(), "cached": cached,
        "compiled": compiled, "remote": remote, "shared": shared,
        "failed": summary.failures.len(), "refused_before": summary.refused_before,
        "plan": plan.digest(),
    });
    let missing = if_any(finished.missing, |missing| format!(", {missing} missing"));
    let packages = &finished.packages.packages;
    let total: u64 = packages.iter().map(|package| package.written.size).sum();
    let packages =
        if_any(packages.len(), |count| format!("; {}, {}", counted(count, "package"), size(total)));
    let remote = if_any(remote, |remote| format!(" ({remote} remotely)"));
    let shared = if_any(shared, |shared| format!(" ({shared} of them from the shared one)"));
    output.info(&format!(
        "{compiled} compiled{remote}, {cached} from the cache{shared}{missing}{packages}: {} in {}",
        args.out.display(),
        brief(begun.elapsed())
    ));
    report_coverage(dist, finished, args, output);
}

pub(super) fn report_kdbs(kdbs: &[MadeKdb], output: &Output) {
    for kdb in kdbs {
        message!(output, "kdb", {
            "target": kdb.target, "file": display(&kdb.path), "kernels": kdb.kernels,
            "missing": ledger::missing(&kdb.absent),
        });
    }
}

fn report_packages(packages: &[MadePackage], output: &Output) {
    for MadePackage { target, package, written, .. } in packages {
        message!(output, "package", {
            "target": target, "file": display(&written.path), "name": package.name,
            "version": package.version, "package_format": package.format,
            "size": written.size, "sha256": written.sha256,
        });
    }
}

/// Prints the command that installs the packages, if there is one for their formats.
fn say_how_to_install(packages: &[MadePackage], out: &Path, output: &Output) {
    let has = |format| packages.iter().any(|one| one.package.format == format);
    let out = out.display();
    if has("deb") || has("rpm") {
        output.info(&format!("to install: gfxpack install --from {out}"));
    } else if has("wheel") {
        output.info(&format!("to install: pip install {out}/*.whl"));
    }
}

/// Writes messages about the coverage of lists of problems by the kdbs.
fn report_coverage(dist: &Dist<'_>, finished: &FinishedDist, args: &BuildOptions, output: &Output) {
    let Some(facts) = &dist.prepared.inputs.library.miopen else { return };
    if !finished.coverage.is_empty() {
        output.info(&format!("kernels that {} wants:", facts.in_words()));
    }
    for one in &finished.coverage {
        output.message("coverage", one);
        let without = if_any(one.wanted - one.with_source, |without| {
            format!("; {without} without a source here")
        });
        let list = one.list.trim_end_matches(".txt");
        let (target, built, wanted) = (&one.target, one.built, one.wanted);
        output.info(&format!("  {list}, {target}: {built} of {wanted}{without}"));
    }
    // With these, a kernel may have a source that is left out.
    let without = finished.absences.without_source();
    let is_limited = !args.inputs.license_allow.is_empty();
    if let Some(why) = facts.why_without_source(&without).filter(|_| !is_limited) {
        output.note(&why);
    }
}
