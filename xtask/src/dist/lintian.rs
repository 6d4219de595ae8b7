//! Checks packages against Debian's policy.

use std::path::Path;

use xshell::{Shell, cmd};

use crate::print::print;
use crate::setup::is_on_path;

/// Reports a package that was built, and checks it with lintian.
pub(super) fn judged(sh: &Shell, package: &Path) -> anyhow::Result<()> {
    print(&package.display().to_string());
    if is_on_path(sh, "lintian") {
        cmd!(sh, "lintian --allow-root --fail-on error,warning {package}").run()?;
    } else {
        print("lintian is missing: the package is not held to Debian's policy");
    }
    Ok(())
}
