//! Makes repositories from directories of packages: writes and updates the
//! indexes for apt, dnf and zypper.

mod address;
mod apt;
mod files;
mod index;
mod package_info;
mod rpm;
mod setup;

pub use address::{Address, KEY_FILE, SetupFiles};
pub use apt::Suite;
pub use files::packages;
pub use index::{Indexed, index};
pub use package_info::{PackageInfo, with_dependencies};

pub(crate) use files::files;
