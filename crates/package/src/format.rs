//! The formats that packages are written in.

use crate::compress::Compression;

/// A package format, with what there is to choose of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Debian's.
    Deb {
        /// Compression of the contents.
        compression: Compression,
        /// Whether to list the files' MD5 digests, as Debian's packages do.
        ///
        /// Without the list dpkg makes one of its own from what it unpacks, so
        /// `dpkg --verify` says the same; nothing then tells what was shipped.
        /// Source: `process_archive` of dpkg (since 1.16.3).
        md5sums: bool,
    },
    /// rpm's.
    Rpm {
        /// Compression of the payload.
        compression: Compression,
    },
    /// A tarball that installs with `tar -C / -xf`.
    Tar {
        /// Compression of the whole.
        compression: Compression,
        /// The directory below which the copyright is added: [`Format::DOC`].
        doc: &'static str,
    },
    /// Python's.
    Wheel,
    /// An image for containers.
    Oci,
    /// pacman's.
    Arch,
}

impl Format {
    /// Where packages have their copyright on Linux.
    pub const DOC: &str = "/usr/share/doc";
    /// A .deb that every dpkg and lintian reads.
    pub const DEB: Self = Self::Deb { compression: Compression::Xz { level: 1 }, md5sums: true };
    /// An .rpm.
    pub const RPM: Self = Self::Rpm { compression: Compression::Zst { level: 3 } };
    /// A tarball for Linux that everything reads.
    pub const TAR: Self = Self::Tar { compression: Compression::Gz { level: 6 }, doc: Self::DOC };

    /// How it is compressed.
    #[must_use]
    pub fn compression(self) -> Compression {
        match self {
            Self::Deb { compression, .. }
            | Self::Rpm { compression }
            | Self::Tar { compression, .. } => compression,
            // What every reader of images takes; zstd is younger. Zip's is that of gzip.
            Self::Wheel | Self::Oci => Compression::Gz { level: 6 },
            // What the ending of the file says.
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
