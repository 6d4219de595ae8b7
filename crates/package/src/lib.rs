//! Turns a package spec into archives (.deb, .rpm, pacman's, tarballs, wheels,
//! images), and writes the checksums and bills of material beside them. Signs
//! these files, makes repositories from them, and verifies all of it.
//!
//! Every writer makes the same three promises. The bytes depend only on the spec,
//! the contents and the options: not on the clock, the directory, the umask, the
//! locale or the number of threads. The payload is streamed, so memory does not
//! grow with it. And the output appears under its name when it is complete, or
//! not at all.
//!
//! This crate knows nothing about kernels or SQLite: it packs files.
//!
//! ```
//! use gfxpack_package::{Compression, compressed};
//!
//! let packed = compressed(b"kernels", Compression::Gz { level: 9 })?;
//! assert_eq!(packed, compressed(b"kernels", Compression::Gz { level: 9 })?);
//! # Ok::<(), std::io::Error>(())
//! ```

mod arch;
mod check;
mod choice;
mod compress;
mod contents;
mod deb;
pub mod deb822;
mod error;
mod finding;
mod format;
mod gzip;
mod manager;
mod oci;
mod output;
pub mod read;
pub mod recipe;
mod repomd;
pub mod repository;
pub mod rewrite;
mod rpm;
pub mod sbom;
pub mod signing;
pub mod sums;
mod tarball;
#[cfg(test)]
mod test_support;
mod text;
pub mod verify;
mod wheel;
mod write;

pub use check::before_release;
pub use choice::{PackageSource, one_for_each};
pub use compress::{Compression, compressed};
pub use finding::{Finding, Remedy};
pub use format::{FORMATS, Format};
pub use manager::PackageManager;
pub use output::Written;
pub use signing::Sign;
pub use text::{seconds_of, size};
