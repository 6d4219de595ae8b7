//! `package`: packages of kdbs that exist.

use std::collections::BTreeMap;

use gfxpack_kdb::{Reader, VerifyOptions};
use gfxpack_plan::kernel_package::Contents;

use crate::args::Package;
use crate::build::MadeKdb;
use crate::environment::Environment;
use crate::fail::{self, Outcome};
use crate::output::Output;
use crate::prepare::Library;
use crate::{packages, record};

/// Verifies and packages each kdb.
pub(crate) fn run(
    args: &Package,
    environment: &Environment,
    output: &Output,
) -> anyhow::Result<()> {
    let mut kdbs = Vec::new();
    let mut licenses = BTreeMap::new();
    for path in &args.kdbs {
        let target = packages::target_of(path)?;
        let report = gfxpack_kdb::verify(path, Some(&target), &VerifyOptions::default())?;
        if let Some(finding) = report.findings.first() {
            return Err(Outcome::Unsound(format!("`{}`: {finding}", path.display())).into());
        }
        Reader::open(path)?.for_each_entry(|entry| {
            if let Some(source) = entry.key.source_name() {
                licenses.insert(source.to_owned(), None);
            }
            Ok::<(), gfxpack_kdb::ReadError>(())
        })?;
        let missing = Vec::new();
        kdbs.push(MadeKdb { target, path: path.clone(), kernels: report.rows, missing });
    }
    let library = Library { licenses, ..Library::default() };
    let compiler = "a compiler that is not recorded".to_owned();
    let release = packages::release(&args.packaging, &library, compiler, environment, output)?;
    packages::check(&release, kdbs.iter().map(|kdb| &kdb.target), &args.packaging)?;
    std::fs::create_dir_all(&args.out).map_err(fail::io("create", &args.out))?;
    let mut packaged = Vec::new();
    for kdb in &kdbs {
        let contents = Contents {
            target: kdb.target.clone(),
            kdb: kdb.path.clone(),
            kernels: kdb.kernels,
            missing: 0,
        };
        packaged.extend(packages::write(&release, &contents, &args.packaging, &args.out, output)?);
    }
    record::write(&args.out, None, &kdbs, &packaged)
}
