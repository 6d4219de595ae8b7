//! Whose user cache is asked: one directory for each version of MIOpen.

use std::path::Path;

use crate::prune::cached_versions;

/// The version whose user cache is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheVersion {
    /// The one that was named, as its directory is called.
    Named(String),
    /// The newest that has a cache.
    Newest {
        /// As its directory is called.
        version: String,
        /// How many have one.
        of: usize,
    },
    /// None has a cache; this MIOpen is installed, and would make one.
    Installed(String),
    /// None has a cache, and no MIOpen is installed.
    None,
}

impl CacheVersion {
    /// Chooses it. `cache` is the directory above those of versions
    /// (`~/.cache/miopen`), `named` what the user named, and `installed` tells
    /// the directory of the MIOpen that is installed.
    #[must_use]
    pub fn choose(
        cache: &Path,
        named: Option<&str>,
        installed: impl FnOnce() -> Option<String>,
    ) -> Self {
        let there = cached_versions(cache);
        if let Some(named) = named {
            // MIOpen's own directories end in a full stop where it has no tweak.
            let exact = there.iter().find(|version| *version == named);
            let found = exact
                .or_else(|| there.iter().find(|version| version.strip_suffix('.') == Some(named)));
            return Self::Named(found.map_or(named, String::as_str).to_owned());
        }
        match there.first() {
            Some(newest) => Self::Newest { version: newest.clone(), of: there.len() },
            None => installed().map_or(Self::None, Self::Installed),
        }
    }

    /// The name of its directory; none where no version is known.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Named(version) | Self::Newest { version, .. } | Self::Installed(version) => {
                Some(version)
            }
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_version_is_named_or_the_newest_or_the_installed_one_and_never_our_own() {
        let dir = tempfile::tempdir().unwrap();
        let choose = |named: Option<&str>, installed: Option<&str>| {
            let chosen = CacheVersion::choose(dir.path(), named, || installed.map(str::to_owned));
            chosen.directory().map(str::to_owned)
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
