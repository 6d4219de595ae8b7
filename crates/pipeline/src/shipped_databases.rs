//! Chooses which performance and find databases and heuristic models are shipped
//! in which package.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gfxpack_model::Target;
use gfxpack_tuning::{DatabaseName, DatabaseOwner, ModelName};

use crate::error::{self, Result};
use crate::progress::{Event, Progress};
use crate::text::joined;

/// Databases by the target of their package.
#[derive(Debug, Default)]
pub(crate) struct ShippedDatabases {
    by_target: BTreeMap<Target, BTreeMap<String, PathBuf>>,
}

impl ShippedDatabases {
    /// Assigns each database to the package of its device: the one with exactly
    /// its compute units if there is one, else the device-wide one. From a
    /// directory, only databases for one of the targets are taken; a file must be
    /// for one. Every database is checked.
    ///
    /// # Errors
    /// If a name is not that of a system database, no package is for the device,
    /// two files have the same name, or a database has errors.
    pub(crate) fn find(
        paths: &[PathBuf],
        targets: &[Target],
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut shipped = Self::default();
        for path in paths {
            if path.is_dir() {
                let before = shipped.len();
                for file in databases_in(path)? {
                    shipped.add(&file, targets, progress, true)?;
                }
                if shipped.len() == before {
                    return Err(error::usage(
                        format!(
                            "failed to find a database for {} in `{}`",
                            joined(targets),
                            path.display()
                        ),
                        "they are named as gfx906_60.db.txt and gfx906_60.HIP.fdb.txt, each with the \
                         compute units of its device",
                    ));
                }
            } else {
                shipped.add(path, targets, progress, false)?;
            }
        }
        shipped.warn_of_parts(progress);
        Ok(shipped)
    }

    /// Adds a model, which is for its processor with any number of compute units: to
    /// the device-wide package, or, if there is none, to the only package.
    fn add_model(
        &mut self,
        path: &Path,
        model: &ModelName,
        targets: &[Target],
        progress: &dyn Progress,
        is_listed: bool,
    ) -> Result<()> {
        let shown = path.display();
        let processor = model.target.id().processor();
        let alike: Vec<&Target> =
            targets.iter().filter(|target| target.id().processor() == processor).collect();
        let wide = alike.iter().find(|target| target.compute_units().is_none());
        let target = match (wide, &alike[..]) {
            (Some(wide), _) => *wide,
            (None, [only]) => *only,
            (None, []) if is_listed => return Ok(()),
            (None, []) => {
                return Err(error::usage(
                    format!("failed to ship `{shown}`: there is no package for {processor}"),
                    format!("build for that device too: --target {processor}"),
                ));
            }
            (None, _) => {
                let what = format!("`{shown}`: several packages are for {processor}");
                let hint = format!(
                    "two packages can't hold one file: give --target {processor} too, \
                     whose package is for any number of compute units"
                );
                if is_listed {
                    progress.warning(&format!("left out {what}; {hint}"));
                    return Ok(());
                }
                return Err(error::usage(format!("failed to ship {what}"), hint));
            }
        };
        gfxpack_tuning::check_model(path).map_err(|why| {
            let hint = "take it from MIOpen's sources or an installed MIOpen again";
            error::usage(format!("failed to ship `{shown}`: {why}"), hint)
        })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.insert(target, name, path, "they have one name: give one of them")
    }

    /// Adds a checked file; `hint` is for the error if its name is taken.
    fn insert(&mut self, target: &Target, name: String, path: &Path, hint: &str) -> Result<()> {
        let absolute = std::path::absolute(path).map_err(error::io("find", path))?;
        match self.by_target.entry(target.clone()).or_default().insert(name, absolute) {
            None => Ok(()),
            Some(other) => {
                let (other, path) = (other.display(), path.display());
                Err(error::usage(format!("failed to ship both `{other}` and `{path}`"), hint))
            }
        }
    }

    /// Warns about models of which parts are missing: MIOpen loads some models
    /// together.
    fn warn_of_parts(&self, progress: &dyn Progress) {
        for files in self.by_target.values() {
            for (name, path) in files {
                let with = ModelName::from_path(path).map(|model| model.with).unwrap_or_default();
                for missing in with.iter().filter(|other| !files.contains_key(*other)) {
                    progress.warning(&format!(
                        "MIOpen can't use `{name}` without `{missing}`, which is missing"
                    ));
                }
            }
        }
    }

    /// The files in a target's package, by name.
    pub(crate) fn files_for(&self, target: &Target) -> Vec<(String, PathBuf)> {
        let files = self.by_target.get(target).into_iter().flatten();
        files.map(|(name, path)| (name.clone(), path.clone())).collect()
    }

    fn len(&self) -> usize {
        self.by_target.values().map(BTreeMap::len).sum()
    }

    /// Adds a database or model. If it was only listed from a directory
    /// (`is_listed`), it is skipped if no package is for it.
    fn add(
        &mut self,
        path: &Path,
        targets: &[Target],
        progress: &dyn Progress,
        is_listed: bool,
    ) -> Result<()> {
        let shown = path.display();
        let refused = |message: String, hint: String| {
            if is_listed { Ok(()) } else { Err(error::usage(message, hint)) }
        };
        if let Some(model) = ModelName::from_path(path) {
            return self.add_model(path, &model, targets, progress, is_listed);
        }
        let Some(name) = DatabaseName::from_path(path) else {
            std::fs::metadata(path).map_err(error::io("read", path))?;
            return Err(error::usage(
                format!("failed to ship `{shown}`: its name is no tuning database's"),
                "name it as MIOpen looks for it, as gfx906_60.db.txt or gfx906_60.HIP.fdb.txt",
            ));
        };
        if name.owner == DatabaseOwner::User {
            return refused(
                format!("failed to ship `{shown}`: it is a user's database"),
                format!(
                    "make it one of the system's: `gfxpack perfdb merge {shown} -o {}`",
                    name.of_system().file_name()
                ),
            );
        }
        let Some(target) = package_for(&name.target, targets) else {
            return refused(
                format!("failed to ship `{shown}`: there is no package for {}", name.target),
                format!("build for that device too: --target {}", name.target),
            );
        };
        check(path, target, progress)?;
        let hint = "merge them with `gfxpack perfdb merge`, the one whose entries win last";
        self.insert(target, name.file_name(), path, hint)
    }
}

/// The target of the package for a device's database. It is only one, since two
/// packages can't install the same file.
fn package_for<'t>(device: &Target, targets: &'t [Target]) -> Option<&'t Target> {
    let alike = |target: &&Target| target.id().db_id() == device.id().db_id();
    let exact = |target: &&Target| target.compute_units() == device.compute_units();
    let of_device = || targets.iter().filter(alike);
    of_device().find(exact).or_else(|| of_device().find(|target| target.compute_units().is_none()))
}

/// The databases and models in a directory, sorted.
fn databases_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(error::io("read", dir))? {
        let path = entry.map_err(error::io("read", dir))?.path();
        if path.is_file()
            && (DatabaseName::from_path(&path).is_some() || ModelName::from_path(&path).is_some())
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Checks a database that will be packaged, before hours of compiling.
fn check(file: &Path, target: &Target, progress: &dyn Progress) -> Result<()> {
    let linted = gfxpack_tuning::lint(file, Some(target), |finding| {
        progress.event(Event::TuningFinding(file, &finding));
    })?;
    if linted.errors > 0 {
        let name = file.display();
        return Err(error::usage(
            format!("failed to ship `{name}`: {} errors", linted.errors),
            format!(
                "`gfxpack perfdb lint {name}` lists them; `perfdb merge --keep-going` leaves out \
                 what MIOpen can't read"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_has_one_package() {
        let check = |device: &str, targets: &[&str], expected: Option<&str>| {
            let parse = |text: &str| text.parse::<Target>().expect(text);
            let targets: Vec<Target> = targets.iter().map(|text| parse(text)).collect();
            let found = package_for(&parse(device), &targets);
            assert_eq!(found, expected.map(parse).as_ref(), "{device} {targets:?}");
        };
        check("gfx90a68", &["gfx90a", "gfx90a@104"], Some("gfx90a@104"));
        check("gfx90a68", &["gfx90a"], Some("gfx90a"));
        check("gfx90a68", &["gfx90a@110", "gfx906"], None);
        check("gfx90a68", &["gfx90a:xnack+"], None);
        check("gfx90a_xnack68", &["gfx90a:xnack+"], Some("gfx90a:xnack+"));
        check("gfx906_60", &["gfx906_60"], Some("gfx906_60"));
    }
}
