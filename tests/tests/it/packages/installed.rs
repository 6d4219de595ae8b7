//! A root directory into which packages are installed, as root.

use std::fs;
use std::path::Path;
use std::process::Command;

use gfxpack_model::package::{Content, PackageSpec};

use super::support::{tool, tree};

/// A foreign program as root: in a user namespace for anyone who isn't.
pub(crate) fn root_tool(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return tool(program);
    }
    let mut command = tool("unshare");
    command.args(["--map-root-user", "--", program]);
    command
}

/// Asserts that the spec's files lie below `root` with their bytes and modes.
pub(crate) fn assert_installed(spec: &PackageSpec, root: &Path) {
    let tree = tree(root);
    for file in &spec.files {
        let expected = match &file.content {
            Content::Bytes(bytes) => bytes.clone(),
            Content::File(path) => fs::read(path).expect("the input reads"),
        };
        let (bytes, mode) = tree
            .get(&file.path[1..])
            .unwrap_or_else(|| panic!("`{}` is not installed", file.path))
            .as_ref()
            .expect("it is a file");
        assert!(*bytes == expected, "`{}` has other bytes", file.path);
        assert_eq!(*mode, file.mode, "mode of `{}`", file.path);
    }
}
