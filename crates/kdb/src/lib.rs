//! The kernel database (kdb) from which MIOpen loads compiled kernels: an
//! SQLite file with one row per kernel key. This crate writes, reads and checks
//! it.
//!
//! `docs/kdb-format.md` describes the bytes. This crate knows the table, bzip2,
//! MD5 and row order. It knows nothing of compilers, packages, or system
//! directories.
//!
//! [`Reader`] looks up, lists and streams, and never writes beside the file.
//! [`UserKdb`] is the user's own cache, and the only file that is written to
//! while others use it.
//!
//! The feature `tools`, which is on by default, is for whole files. [`write()`]
//! builds one from keys in canonical order, and equal input gives equal bytes.
//! [`merge()`] copies rows; [`diff()`] compares files. [`verify()`] checks
//! everything that can be wrong with a file, and reports it. [`Reader::info`]
//! counts.
//!
//! ```
//! # #[cfg(feature = "tools")] {
//! use gfxpack_kdb::{Reader, Row, WriteOptions, write};
//! use gfxpack_model::KernelKey;
//!
//! let key = KernelKey { kernel_name: "conv.cl.o".into(), kernel_args: " -mcpu=gfx906".into() };
//! let object = b"a code object".to_vec();
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("gfx906.kdb");
//! let rows = [Row { key: &key, size: object.len() as u64 }];
//! write(&file, &rows, &WriteOptions::default(), |_| std::io::Result::Ok(object.clone()))?;
//! assert_eq!(Reader::open(&file)?.get(&key)?, Some(object));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
#[cfg(feature = "tools")]
mod cursor;
#[cfg(feature = "tools")]
mod diff;
mod encode;
mod error;
mod header;
#[cfg(feature = "tools")]
mod info;
#[cfg(feature = "tools")]
mod merge;
mod open;
#[cfg(feature = "tools")]
mod parallel;
mod read;
mod row;
mod schema;
mod user;
#[cfg(feature = "tools")]
mod verify;
#[cfg(feature = "tools")]
mod write;

#[cfg(feature = "tools")]
pub use diff::{Change, Differences, diff};
pub use encode::Blob;
pub use error::{KdbErrorKind, ReadError};
pub use header::{Header, Journal, MiopenVersion};
#[cfg(feature = "tools")]
pub use info::Info;
#[cfg(feature = "tools")]
pub use merge::{Conflict, CopyOptions, Merged, merge};
pub use read::{KernelRow, Reader};
pub use row::RowInfo;
pub use schema::{MAX_KEY_BYTES, MAX_OBJECT_BYTES, MIN_FILE_BYTES};
pub use user::{UserKdb, UserOptions, damage::DamagedKdb, snapshot::KdbSnapshot};
#[cfg(feature = "tools")]
pub use verify::{
    VerifyOptions,
    report::{Finding, FindingClass, Report},
    verify,
};
#[cfg(feature = "tools")]
pub use write::{Row, WriteOptions, Written, write};
