//! The checkout's path and version.

use std::path::{Path, PathBuf};

/// The root of the checkout in which this task was started.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root").to_owned()
}

/// The version of gfxpack.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
