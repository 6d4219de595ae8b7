//! Turns a package spec into archives: .deb, .rpm, pacman's,
//! tarballs, wheels, images, and the
//! checksums and bills of material beside them. Signs those, makes
//! repositories of them, and verifies it all.
//!
//! Every writer here promises the same three things. The bytes depend on the
//! spec, the contents and the options only: not on the clock, the directory,
//! the umask, the locale or the number of threads. The payload is streamed, so
//! memory does not grow with it. And the output appears under its name whole,
//! or not at all.
//!
//! This crate knows no kernels and no SQLite: what it packs are files.
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
mod digests;
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
mod rpm;
pub mod sbom;
mod signature;
pub mod signing;
pub mod sums;
mod tar;
mod tarball;
#[cfg(test)]
mod test_support;
mod text;
mod url;
pub mod verify;
mod wheel;
mod write;

pub use choice::{Offered, one_for_each};
pub use compress::{Compression, compressed};
pub use error::Error;
pub use finding::{Finding, Remedy};
pub use format::Format;
pub use manager::PackageManager;
pub use output::Written;
pub use signature::Sign;
pub use text::{escaped, rfc2822, size};
