//! Chooses which version's user cache to use: MIOpen has one directory for each
//! version.

use std::path::Path;

use crate::explain::entries;
use crate::version;

/// The version whose user cache to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheVersion {
    /// The name of its directory; `None` if no version has a cache, and no MIOpen is installed.
    pub directory: Option<String>,
    /// If it is the newest of those with a cache: how many there are.
    pub newest_of: Option<usize>,
}

impl CacheVersion {
    /// Chooses the version. `cache` is the directory above those of the
    /// versions (`~/.cache/miopen`), `named` the user's choice, and `installed`
    /// returns the directory name of the installed MIOpen.
    pub fn choose(
        cache: &Path,
        named: Option<&str>,
        installed: impl FnOnce() -> Option<String>,
    ) -> Self {
        let versions = cached_versions(cache);
        if let Some(named) = named {
            // MIOpen's own directory names end in a full stop if there is no
            // tweak.
            let exact = versions.iter().find(|version| *version == named);
            let found = exact.or_else(|| {
                versions.iter().find(|version| version.strip_suffix('.') == Some(named))
            });
            let directory = Some(found.map_or(named, String::as_str).to_owned());
            return Self { directory, newest_of: None };
        }
        let newest_of = Some(versions.len()).filter(|count| *count > 0);
        Self { directory: versions.into_iter().next().or_else(installed), newest_of }
    }
}

/// The versions with a kernel cache, the newest first; none if the directory
/// can't be read.
fn cached_versions(cache: &Path) -> Vec<String> {
    let has_kernels = |directory: &Path| {
        entries(directory).any(|file| file.extension().is_some_and(|kind| kind == "ukdb"))
    };
    let mut versions: Vec<String> = entries(cache)
        .filter(|directory| has_kernels(directory))
        .filter_map(|directory| directory.file_name()?.to_str().map(str::to_owned))
        .filter(|name| version::is_version(name))
        .collect();
    versions.sort_by_cached_key(|name| std::cmp::Reverse(version::numbers(name)));
    versions
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_given_the_newest_or_the_installed_version_is_chosen_but_never_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let choose = |named: Option<&str>, installed: Option<&str>| {
            let chosen = CacheVersion::choose(dir.path(), named, || installed.map(str::to_owned));
            chosen.directory
        };
        assert_eq!(choose(None, None), None);
        assert_eq!(choose(None, Some("3.4.0.")).as_deref(), Some("3.4.0."));
        assert_eq!(choose(Some("3.3.0"), Some("3.4.0.")).as_deref(), Some("3.3.0"));
        for version in ["3.3.0.", "3.10.0.d12", "0.1.0"] {
            fs::create_dir(dir.path().join(version)).unwrap();
            fs::write(dir.path().join(version).join("gfx906_60.ukdb"), "").unwrap();
        }
        assert_eq!(choose(None, Some("3.4.0.")).as_deref(), Some("3.10.0.d12"));
        assert_eq!(choose(Some("3.3.0"), None).as_deref(), Some("3.3.0."));
    }
}
