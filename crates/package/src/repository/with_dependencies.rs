//! A package of a directory, with those there that it depends on.

use std::path::PathBuf;

use gfxpack_process::SystemToolError;

use super::package_info::PackageInfo;

/// The files of the package of that name and of all that it depends on, as far
/// as they are among `packages`; the newest of each name.
///
/// # Errors
/// Where dpkg or rpm can't compare versions.
pub fn with_dependencies(
    packages: &[PackageInfo],
    name: &str,
) -> Result<Vec<PathBuf>, SystemToolError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        let mut newest: Option<&PackageInfo> = None;
        for one in packages.iter().filter(|one| one.name == name) {
            let newer = match newest {
                Some(other) => one.is_newer_than(other)?,
                None => true,
            };
            newest = if newer { Some(one) } else { newest };
        }
        if let Some(package) = newest
            && !found.contains(&package.path)
        {
            found.push(package.path.clone());
            pending.extend(package.depends.iter().map(String::as_str));
        }
    }
    Ok(found)
}
