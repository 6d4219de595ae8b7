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

/// Every format in its usual form, by the name that users choose it by, with what it is for where
/// that says too little.
pub static FORMATS: [(&str, &str, Format); 8] = [
    ("deb", "", Format::DEB),
    ("rpm", "", Format::RPM),
    ("tar.gz", "", Format::TAR),
    ("tar.zst", "", Format::Tar { compression: Compression::Zst { level: 3 } }),
    ("tar.xz", "", Format::Tar { compression: Compression::Xz { level: 6 } }),
    ("wheel", "For the MIOpen that PyTorch's wheels bring; it has no --layout", Format::Wheel),
    ("oci", "An image for containers with nothing but the kernels", Format::Oci),
    ("arch", "For pacman: .pkg.tar.zst", Format::Arch),
];

impl Format {
    /// A .deb that every dpkg and lintian reads.
    pub const DEB: Self = Self::Deb { compression: Compression::Xz { level: 1 } };
    /// An .rpm.
    pub const RPM: Self = Self::Rpm { compression: Compression::Zst { level: 3 } };
    /// A tarball that everything reads.
    pub const TAR: Self = Self::Tar { compression: Compression::Gz { level: 6 } };

    /// The compression of the format.
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

    /// The same format with this compression, if that can be chosen for it.
    #[must_use]
    pub fn compressed(self, by: Option<Compression>) -> Self {
        match (self, by) {
            (Self::Deb { .. }, Some(compression)) => Self::Deb { compression },
            (Self::Rpm { .. }, Some(compression)) => Self::Rpm { compression },
            _ => self,
        }
    }

    /// Whether packages can depend on others.
    pub fn has_dependencies(self) -> bool {
        matches!(self, Self::Deb { .. } | Self::Rpm { .. } | Self::Arch)
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
