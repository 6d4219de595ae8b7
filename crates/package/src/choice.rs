//! Which one package is installed for each device.

use std::collections::BTreeMap;
use std::path::Path;

use gfxpack_process::{FileError, SystemToolError};

use crate::manager::PackageManager;
use crate::repository::{self, PackageInfo, RepositoryError};

/// Where packages are taken from.
#[derive(Debug)]
pub enum Offered<'a> {
    /// The repositories that a package manager knows; more arguments for it.
    Repositories(&'a PackageManager, &'a [String]),
    /// A directory of packages.
    Files(Vec<PackageInfo>),
}

impl Offered<'_> {
    /// The packages below a directory that are for a package manager. Those
    /// that can't be read are handed to `left_out`.
    ///
    /// # Errors
    /// Where the directory can't be read, or the manager's tools do not start.
    pub fn below(
        dir: &Path,
        manager: &PackageManager,
        mut left_out: impl FnMut(&Path),
    ) -> Result<Self, RepositoryError> {
        let dir = std::path::absolute(dir).map_err(FileError::io("find", dir))?;
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

    /// What to give the package manager for each device: one package, from a
    /// directory with what it depends on there; nothing if there is no package for it.
    /// `devices` has the names of packages for each, the preferred first.
    ///
    /// # Errors
    /// Where the manager's tools do not start.
    pub fn for_each(&self, devices: &[Vec<String>]) -> Result<Vec<Vec<String>>, SystemToolError> {
        let chosen = one_for_each(devices, |name| match self {
            Self::Repositories(manager, words) => manager.knows(name, words),
            Self::Files(given) => Ok(given.iter().any(|package| package.name == name)),
        })?;
        let words = |name: Option<String>| match (name, self) {
            (None, _) => Ok(Vec::new()),
            (Some(name), Self::Repositories(..)) => Ok(vec![name]),
            (Some(name), Self::Files(given)) => {
                let files = repository::with_dependencies(given, &name)?;
                Ok(files.iter().map(|file| file.display().to_string()).collect())
            }
        };
        chosen.into_iter().map(words).collect()
    }
}

/// For each device, the first of its packages that exists; `None` if none
/// does. `devices` has the names for each, the preferred first.
///
/// One package serves a device: MIOpen opens one kdb for it, so a second would
/// take up space, and could keep it from a larger one. Each name is asked for
/// once, however many devices have it.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
///
/// # Errors
/// What `exists` fails with.
pub fn one_for_each<E>(
    devices: &[Vec<String>],
    mut exists: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<Option<String>>, E> {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let mut chosen = Vec::with_capacity(devices.len());
    for names in devices {
        let mut first = None;
        for name in names {
            let there = match known.get(name.as_str()) {
                Some(there) => *there,
                None => {
                    let there = exists(name)?;
                    known.insert(name, there);
                    there
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_gets_the_exact_package_or_else_the_device_wide_one() {
        let devices = [["a-60", "a"], ["a-64", "a"], ["a-60", "a"], ["b-40", "b"]]
            .map(|names| names.map(str::to_owned).to_vec());
        let mut asked = Vec::new();
        let chosen = one_for_each(&devices, |name| {
            asked.push(name.to_owned());
            Ok::<_, ()>(["a", "a-60"].contains(&name))
        });
        let names = ["a-60", "a", "a-60"].map(|name| Some(name.to_owned()));
        assert_eq!(chosen.unwrap(), [&names[..], &[None]].concat());
        assert_eq!(asked, ["a-60", "a-64", "a", "b-40", "b"]);
        assert_eq!(one_for_each(&devices, |_| Err("broken")), Err("broken"));
    }
}
