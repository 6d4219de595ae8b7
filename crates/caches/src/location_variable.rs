//! The variables that move a cache.

/// A variable that names the place of a cache, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocationVariable {
    /// `TRITON_CACHE_DIR`.
    pub name: &'static str,
    /// Its value, below the directory that the user chose.
    pub below: &'static str,
    /// Whether the value is a file, whose directory must exist.
    pub is_file: bool,
}

impl LocationVariable {
    pub(crate) const fn dir(name: &'static str, below: &'static str) -> Self {
        Self { name, below, is_file: false }
    }

    pub(crate) const fn file(name: &'static str, below: &'static str) -> Self {
        Self { name, below, is_file: true }
    }

    /// The directory that must exist, below the one that the user chose.
    #[must_use]
    pub fn directory(&self) -> &'static str {
        match self.below.rsplit_once('/') {
            Some((directory, _)) if self.is_file => directory,
            _ => self.below,
        }
    }
}
