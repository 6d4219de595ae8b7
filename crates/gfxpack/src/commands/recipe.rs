//! `recipe`: writes the fields about kernels for packages that maintainers make
//! themselves.

use std::path::Path;

use gfxpack_pipeline::{recipes, text::counted};

use crate::args::Recipe;
use crate::fail::{self, Result};
use crate::output::{Output, message};

/// Writes variables for debhelper, or prints dependencies for rpm.
///
/// # Errors
/// If there is no source package or it has no kernels, or a file can't be read or
/// written.
pub(crate) fn run(args: &Recipe, output: &Output) -> Result {
    match args {
        Recipe::Debhelper => {
            for package in recipes::debhelper(Path::new("."))? {
                let file = format!("debian/{}.substvars", package.name);
                message!(output, "substvars", {
                    "package": package.name, "kernel_files": package.kernel_files, "file": file,
                });
                let files = counted(package.kernel_files as u64, "file");
                output.info(&format!("{file}: {files} with kernels"));
            }
        }
        Recipe::Rpm { kind, root, package, package_version } => {
            let names = std::io::read_to_string(std::io::stdin());
            let names = names.map_err(fail::io("read", Path::new("/dev/stdin")))?;
            let paths: Vec<&Path> = names.lines().map(Path::new).collect();
            for line in recipes::rpm(kind, root, &paths, package, package_version)? {
                output.raw(&line);
            }
        }
    }
    Ok(())
}
