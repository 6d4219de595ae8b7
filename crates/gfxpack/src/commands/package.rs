//! `package`: packages of kdbs that exist.

use std::collections::BTreeMap;
use std::path::Path;

use gfxpack_compile::Cancel;
use gfxpack_model::Target;
use gfxpack_plan::kernel_package::Release;

use crate::args::{MaxObject, Package};
use crate::build::MadeKdb;
use crate::commands::kdb;
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::Output;
use crate::perfdb::Shipped;
use crate::prepare::Licenses;
use crate::signing::Signer;
use crate::{packages, record, writers};

/// Verifies and packages each kdb. What the build that made it wrote beside
/// it says what is missing, which compiler it was, and the licences.
pub(crate) fn run(
    args: &Package,
    environment: &Environment,
    cancel: &Cancel,
    output: &Output,
) -> anyhow::Result<()> {
    let mut by_target: BTreeMap<Target, &Path> = BTreeMap::new();
    let mut kdbs: Vec<(MadeKdb, Release)> = Vec::new();
    for path in &args.kdbs {
        let target = packages::target_of(path)?;
        if let Some(other) = by_target.insert(target.clone(), path) {
            return Err(fail::usage(
                format!(
                    "failed to package both `{}` and `{}`: both are for {target}",
                    other.display(),
                    path.display()
                ),
                "package them in two runs with different --out",
            ));
        }
        let kdb = checked(path, target, args)?;
        let mut library = kdb.origin.library();
        if library.licenses.is_empty() {
            library.licenses = sources_without_licence(path, args.max_object)?;
        }
        let release = packages::release(&args.packaging, &library, environment, output)?;
        kdbs.push((kdb, release));
    }
    for (_, release) in &kdbs {
        let targets = kdbs.iter().map(|(kdb, _)| &kdb.target);
        packages::check(release, targets, &args.packaging)?;
    }
    let targets: Vec<Target> = kdbs.iter().map(|(kdb, _)| kdb.target.clone()).collect();
    let shipped = Shipped::find(&args.packaging.with_perfdb, &targets, output)?;
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    output.building();
    let signer = match (&args.packaging.sign_key, kdbs.first()) {
        (Some(key), Some((_, release))) => Some(Signer::new(key, release.source_date_epoch)?),
        _ => None,
    };
    let planned = packages::plan(&kdbs, &shipped, &args.packaging)?;
    let signer = signer.as_ref();
    let made = writers::write(&planned, &args.packaging, signer, &args.out, None, cancel, output)?;
    record::write(
        &args.out,
        &kdbs.iter().map(|(kdb, _)| kdb).collect::<Vec<_>>(),
        &made,
        signer,
        output,
    )?;
    writers::tell(&made.packages, output);
    Ok(())
}

/// The kdb, verified, with what is known of its making.
fn checked(path: &Path, target: Target, args: &Package) -> anyhow::Result<MadeKdb> {
    let report = gfxpack_kdb::verify(path, Some(&target), &kdb::verify_options(args.max_object))?;
    if let Some(finding) = report.findings.first() {
        return Err(Outcome::Unsound(format!("`{}`: {finding}", path.display())).into());
    }
    if report.rows == 0 {
        return Err(fail::usage(
            format!("failed to package `{}`: it has no kernels", path.display()),
            "such a package would only take the place of one that has some",
        ));
    }
    let entry = record::of_kdb(path)?;
    let missing = entry.as_ref().map(record::Entry::missing).unwrap_or_default();
    if !missing.is_empty() && !args.allow_partial {
        let file = path.display().to_string();
        return Err(Outcome::Partial { file, missing: missing.len() }.into());
    }
    let origin = entry.map(|entry| entry.origin).unwrap_or_default();
    Ok(MadeKdb { target, path: path.to_owned(), kernels: report.rows, missing, origin })
}

fn sources_without_licence(path: &Path, max_object: MaxObject) -> anyhow::Result<Licenses> {
    let mut licenses = Licenses::new();
    kdb::open(path, max_object)?.for_each_row(|entry| {
        if let Some(source) = entry.key.source_name() {
            licenses.entry(source.to_owned()).or_default();
        }
        Ok::<(), gfxpack_kdb::ReadError>(())
    })?;
    Ok(licenses)
}
