//! Finds a stock library of ROCm: installed, in a directory, or fetched from Debian's archive, with
//! the libraries that it needs and its own dynamic loader. Also creates empty libraries in place of
//! the GPU's libraries, so that it can be started without a GPU.
//!
//! ```
//! assert!(gfxpack_stock_library::is_stood_in("libamdhip64.so.6"));
//! assert!(!gfxpack_stock_library::is_stood_in("libc.so.6"));
//! ```

mod debian;
mod elf;
mod library;
mod needs;
mod probe;
mod product;
mod source;
mod stubs;
mod tree;

pub use elf::{ElfFile, SharedObject, Undefined};
pub use gfxpack_debian::sha256;
pub use library::Library;
pub use needs::{Needs, is_sqlite, is_stood_in};
pub use probe::{CANCELLED, DeadlineReader, ProbeDirectory, ProbeProcess, spawn};
pub use product::{DeviceFault, Product};
pub use source::LibrarySource;
pub use tree::{installed_file, library_at, pythons};
