//! Chooses the package to install for each device.

use gfxpack_model::{Error, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use crate::manager::PackageManager;
use crate::repository::{self, PackageInfo};

/// The packages that can be installed.
#[derive(Debug)]
pub enum PackageSource<'a> {
    /// The repositories that a package manager knows, with additional arguments
    /// for it.
    Repositories(&'a PackageManager, &'a [String]),
    /// A directory of packages.
    Files(Vec<PackageInfo>),
}

impl PackageSource<'_> {
    /// The packages for a package manager in a directory and below it. Those that
    /// can't be read are passed to `left_out`.
    pub fn below(
        dir: &Path,
        manager: &PackageManager,
        mut left_out: impl FnMut(&Path),
    ) -> Result<Self> {
        let dir = std::path::absolute(dir).map_err(Error::io("find", dir))?;
        let mut described: Vec<PackageInfo> = Vec::new();
        for path in repository::packages(&dir)? {
            if path.extension().is_none_or(|ending| ending != manager.extension) {
                continue;
            }
            match PackageInfo::read(&path)? {
                Some(package) => described.push(package),
                None => left_out(&path),
            }
        }
        Ok(Self::Files(described))
    }

    /// The arguments for the package manager, by device: one package, and, if packages
    /// come from a directory, also its dependencies there. Empty if no package is for
    /// the device. `devices` has the packages' names for each device, preferred ones
    /// first.
    pub fn for_each(&self, devices: &[Vec<String>]) -> Result<Vec<Vec<String>>> {
        let chosen = one_for_each(devices, |name| match self {
            Self::Repositories(manager, arguments) => manager.knows(name, arguments),
            Self::Files(given) => Ok(given.iter().any(|package| package.name == name)),
        })?;
        let arguments = |name: Option<String>| match (name, self) {
            (None, _) => Ok(Vec::new()),
            (Some(name), Self::Repositories(..)) => Ok(vec![name]),
            (Some(name), Self::Files(given)) => {
                let files = repository::with_dependencies(given, &name)?;
                Ok(files.iter().map(|file| file.display().to_string()).collect())
            }
        };
        chosen.into_iter().map(arguments).collect()
    }
}

/// By device: the first of its packages that exists. `devices` has the packages'
/// names for each device, preferred ones first.
///
/// A device gets only one package: MIOpen opens only one kdb for it, so a second
/// one would waste space, and could hide a larger one. `exists` is called once
/// per name.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
pub fn one_for_each<E>(
    devices: &[Vec<String>],
    mut exists: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<Option<String>>, E> {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let mut chosen = Vec::with_capacity(devices.len());
    for names in devices {
        let mut first = None;
        for name in names {
            let there = match known.entry(name) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(exists(name)?),
            };
            if there {
                first = Some(name.clone());
                break;
            }
        }
        chosen.push(first);
    }
    Ok(chosen)
}
