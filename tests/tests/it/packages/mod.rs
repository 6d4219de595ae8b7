//! Checks the packages with the programs that must accept them: dpkg, lintian, rpm, tar, sha256sum,
//! skopeo, umoci, pacman, bsdtar, and Python's.

mod arch;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../../crates/package/tests/packages/archives.rs"]
mod archives;
#[expect(dead_code, reason = "the rest is for the crate's own tests")]
#[path = "../../../../crates/package/tests/packages/child.rs"]
mod child;
mod deb;
mod foreign;
mod installed;
mod large;
mod oci;
mod rpm;
#[path = "../../../../crates/package/tests/packages/support.rs"]
mod support;
mod tarball;
mod wheel;
