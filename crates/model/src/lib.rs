//! Types that all other crates share: GPU targets and processors, kernel keys,
//! languages, digests, ids, code objects, command lines, names of kernel files,
//! packages and their install directories.
//!
//! This crate uses no file system, process, environment or clock, and depends
//! on no other crate of gfxpack. The feature `serde` implements serde's traits
//! for these types.
//!
//! ```
//! let target: gfxpack_model::Target = "gfx90a@104".parse()?;
//! assert_eq!(target.kdb_file_name(), "gfx90a68.kdb"); // MIOpen counts in hexadecimal here.
//! # Ok::<(), gfxpack_model::TargetError>(())
//! ```

pub mod code_object;
pub mod compiler;
pub mod date;
pub mod digest;
mod error;
mod ids;
mod install_layout;
mod kernel_file_format;
mod key;
#[cfg(feature = "serde")]
pub mod key_record;
pub mod package;
pub mod package_name;
pub mod probe_line;
pub mod processors;
pub mod relative_path;
#[cfg(feature = "serde")]
mod serialized;
mod target;

pub use digest::Digest;
pub use error::{Error, ErrorKind, Result, in_full, io_hint, is_no_such_path, with_causes};
pub use ids::{JobId, KdbId, SourceId, ToolchainId};
pub use install_layout::InstallLayout;
pub use kernel_file_format::{KernelFileFormat, target_of_kdb};
pub use key::{KernelKey, KeyError, Language};
pub use target::{Target, TargetError, TargetId};
