//! Formats paths and options for scripts that others run.

use std::path::{Path, PathBuf};

use gfxpack_toolchain::Search;

use crate::error::{self, Result};

/// A path as text.
pub(crate) fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        error::usage(
            format!("failed to write `{}` into a script: it is not UTF-8", path.display()),
            "choose another directory",
        )
    })
}

/// The options that choose the same toolchains, and the same directories which
/// compilers may read, from any working directory. Links are not resolved: the
/// path of the link may identify the toolchain.
pub(crate) fn compiler_options(toolchain: &Search, allow_read: &[PathBuf]) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    for (option, paths) in [
        ("--hipcc", &toolchain.hipcc[..]),
        ("--clang", &toolchain.clang),
        ("--device-libs", &toolchain.device_libs),
        ("--rocm-path", &toolchain.rocm_path),
        ("--allow-read", allow_read),
    ] {
        for path in paths {
            let path = std::path::absolute(path).map_err(error::io("find", path))?;
            arguments.extend([option.to_owned(), text(&path)?]);
        }
    }
    Ok(arguments)
}
