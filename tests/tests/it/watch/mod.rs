//! Watched programs, among them compilers: their records agree with strace, and they can't do more
//! than they may. That compilers make the same objects without a record, the battery shows.

mod bounds;
mod compilers;
mod imports;
mod kernels;
mod records;
mod support;

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

/// A directory with a file, a link to it and a directory in it.
fn place() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("there"), "text").unwrap();
    symlink("there", dir.path().join("link")).unwrap();
    fs::create_dir(dir.path().join("below")).unwrap();
    dir
}
