//! What is wrong or suspicious on a machine that runs kernels, and what to do
//! about it. Each check adds to [`Findings`]; call them in the order in which
//! a reader should see the results.

mod compilers;
mod databases;
mod device_code;
mod devices;
mod directories;
mod finding;
mod installed;
mod kdb;
mod kdbs;
mod libraries;
mod user_cache;
mod variables;

pub use compilers::check_compilers;
pub use device_code::check_device_code;
pub use devices::{check_devices, check_target};
pub use finding::{Finding, Findings, Level};
pub use installed::InstalledFiles;
pub use libraries::{check_libraries, check_rocfft};
pub use variables::check_variables;

/// Checks directories, kdbs, the user's cache, and MIOpen's databases.
pub fn check_installed(installed: InstalledFiles<'_>, findings: &mut Findings<'_>) {
    directories::check(installed.directories, findings);
    kdbs::check(installed, findings);
    user_cache::check(installed.directories, findings);
    databases::check(installed, findings);
}
