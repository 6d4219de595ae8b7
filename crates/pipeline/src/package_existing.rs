//! Packages existing kdbs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gfxpack_model::{KernelFileFormat, Target};
use gfxpack_plan::kernel_package::Release;
use gfxpack_process::temporary_dir;

use crate::build::MadeKdb;
use crate::environment::ENVIRONMENT;
use crate::error::{self, Error, ErrorKind, Result};
use crate::kernel_files;
use crate::kernel_library::KernelLibrary;
use crate::options::PackageKdbs;
use crate::outputs::{FileRecords, Outputs};
use crate::packages::{self, PackageSettings};
use crate::progress::Progress;
use crate::shipped_databases::ShippedDatabases;
use crate::text::counted;
use crate::write_packages::MadePackages;
use crate::{ledger, record};

impl PackageKdbs {
    /// Verifies and packages each kdb. Missing kernels, the compiler and the
    /// licences are read from what the build wrote beside the kdb.
    ///
    /// # Errors
    /// If a kdb is damaged, empty, or known to lack kernels, the options don't
    /// fit, or a package can't be written.
    pub fn run(&self, progress: &dyn Progress) -> Result<MadePackages> {
        let options = &self.packaging;
        let cache = &self.cache;
        ENVIRONMENT.epoch()?;
        cache.dir.limit()?;
        let temporary = temporary_dir()?;
        let dir = cache.dir.directory().unwrap_or_else(|_| temporary.path().to_owned());
        let digests = cache.file_digests(&dir);
        let records = FileRecords::below(&dir, &digests, cache.verify_all);
        let mut by_target: BTreeMap<Target, &Path> = BTreeMap::new();
        let (mut kdbs, mut releases): (Vec<MadeKdb>, Vec<Release>) = (Vec::new(), Vec::new());
        let mut options = Cow::Borrowed(options);
        let mut all = KernelLibrary::default();
        for path in &self.kdbs {
            let (format, target) = kernel_files::format_and_target(path)?;
            if let Some(other) = by_target.insert(target.clone(), path) {
                return Err(error::usage(
                    format!(
                        "failed to package both `{}` and `{}`: both are for {target}",
                        other.display(),
                        path.display()
                    ),
                    "package them in two runs with different --out",
                ));
            }
            let kdb = self.checked(path, target, format, &records)?;
            let mut library = kdb.inputs.library();
            if library.licenses.is_empty() {
                let names = kernel_files::source_names(format, path)?;
                library.licenses = names.into_iter().map(|name| (name, BTreeSet::new())).collect();
            }
            let release = packages::release(&options, &library)?;
            if kdbs.is_empty() {
                options =
                    Cow::Owned(packages::with_formats(&options, &release, &library, progress));
                all = library.clone();
            }
            all.licenses.append(&mut library.licenses.clone());
            releases.push(packages::of_kdb(&release, &options, &library, &kdb));
            kdbs.push(kdb);
        }
        packages::report_gaps(&options, &all, progress);
        let targets: Vec<Target> = kdbs.iter().map(|kdb| kdb.target.clone()).collect();
        for release in &releases {
            packages::check(release, &targets, &options)?;
        }
        let shipped = ShippedDatabases::find(&options.with_perfdb, &targets, progress)?;
        std::fs::create_dir_all(&self.out).map_err(error::io("create", &self.out))?;
        let signer = packages::signer(&options)?;
        let signer = signer.as_ref();
        let outputs = Outputs::in_dir(&self.out, records).map_err(error::io("find", &self.out))?;
        let settings = PackageSettings { options: options.into_owned(), shipped };
        let made = settings.write(&kdbs, &releases, &[], signer, &outputs, progress)?;
        record::write(&kdbs, &made, None, signer, &outputs, progress)?;
        Ok(made)
    }

    /// Verifies a kdb, and returns it with what is known about its inputs.
    fn checked(
        &self,
        path: &Path,
        target: Target,
        format: KernelFileFormat,
        records: &FileRecords<'_>,
    ) -> Result<MadeKdb> {
        let before = records.described(path).ok();
        let rows = match before.and_then(|file| records.verified_rows(&file, &target)) {
            Some(rows) => rows,
            None => kernel_files::verified(format, path, &target)?,
        };
        let file = records.described(path).map_err(error::io("read", path))?;
        records.note_verified(&file, &target, rows);
        if rows == 0 {
            return Err(error::usage(
                format!("failed to package `{}`: it has no kernels", path.display()),
                "such a package would only take the place of one that has some",
            ));
        }
        let entry = record::of_kdb(path, &file.sha256)?;
        let absent = entry.as_ref().map(|entry| entry.absent.clone()).unwrap_or_default();
        let missing = ledger::missing(&absent);
        if missing > 0 && !self.allow_partial {
            return Err(Error::new(
                ErrorKind::Incomplete,
                format!(
                    "failed to package `{}`: it lacks {}",
                    path.display(),
                    counted(missing, "kernel")
                ),
                "kernels.jsonl in the directory above lists them; --allow-partial packages the kdb without them",
            ));
        }
        let inputs = entry.map(|entry| entry.inputs).unwrap_or_default();
        Ok(MadeKdb { target, path: path.to_owned(), kernels: rows, absent, inputs })
    }
}
