//! Asks the stock libMIOpen which kernels it would compile for a GPU that is not present.
//!
//! ```
//! let mut names = gfxpack_miopen::network_names();
//! assert!(names.any(|network| network.name == "resnet18"));
//! ```

mod ask;
mod check;
mod driver;
mod failure;
mod library;
mod networks;
mod probe;
mod problem;
mod problems;
mod setup;
mod sources;
mod stage;

pub use ask::{AskOptions, AskReport, AskedKey, ProblemFailure, Uses, ask};
pub use check::{CheckReport, Outcome, check};
pub use failure::Failure;
pub use gfxpack_stock_library::{Library, LibrarySource, installed_file, library_at, pythons};
pub use library::{MIOPEN, cache_version, installed_cache_version};
pub use networks::{NetworkName, network_names, network_problems};
pub use problem::{Convolution, DataType, Directions, Layout, MAX_SIZE, Problem};
pub use problems::{MAX_PROBLEMS, ProblemFile, Problems, read_problems};
pub use sources::{Sources, is_left_out_by_debian};
pub use stage::DatabaseFile;
