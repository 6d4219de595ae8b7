//! The formats that packages are written in.

use crate::compress::Compression;

/// A package format with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A package for dpkg, as in Debian.
    Deb {
        /// Compression of the contents.
        compression: Compression,
    },
    /// A package for rpm.
    Rpm {
        /// Compression of the payload.
        compression: Compression,
    },
    /// A tarball that installs with `tar -C / -xf`.
    Tar {
        /// Compression of the whole archive.
        compression: Compression,
    },
    /// A wheel for Python.
    Wheel,
    /// An image for containers.
    Oci,
    /// A package for pacman.
    Arch,
}

impl Format {
    /// A .deb that every dpkg and lintian reads.
    pub const DEB: Self = Self::Deb { compression: Compression::Xz { level: 1 } };
    /// An .rpm.
    pub const RPM: Self = Self::Rpm { compression: Compression::Zst { level: 3 } };
    /// A tarball that everything reads.
    pub const TAR: Self = Self::Tar { compression: Compression::Gz { level: 6 } };

    /// The compression of the format.
    #[must_use]
    pub fn compression(self) -> Compression {
        match self {
            Self::Deb { compression } | Self::Rpm { compression } | Self::Tar { compression } => {
                compression
            }
            // Every reader of images takes gzip; zstd is newer. Zip's compression is the
            // same as gzip's.
            Self::Wheel | Self::Oci => Compression::Gz { level: 6 },
            // As the file name says.
            Self::Arch => Compression::Zst { level: 3 },
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deb { .. } => "deb",
            Self::Rpm { .. } => "rpm",
            Self::Tar { .. } => "tar",
            Self::Wheel => "wheel",
            Self::Oci => "oci",
            Self::Arch => "arch",
        }
    }
}
