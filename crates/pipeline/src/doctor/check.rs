//! All checks of what is installed, in order.

use super::finding::Findings;
use super::installed::Installed;
use super::{databases, directories, kdbs, user_cache};

/// Checks directories, kdbs, the user's cache, and MIOpen's databases.
pub fn check_installed(installed: Installed<'_>, findings: &mut Findings<'_>) {
    directories::check(installed.places, findings);
    kdbs::check(installed, findings);
    user_cache::check(installed.places, installed.max_object_bytes, findings);
    databases::check(installed, findings);
}
