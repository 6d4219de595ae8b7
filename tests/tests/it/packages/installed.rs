//! A root directory into which packages are installed.

use std::fs;
use std::path::Path;

use gfxpack_model::package::{Content, PackageSpec};

use super::support::tree;

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
