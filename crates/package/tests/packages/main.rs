//! Holds the packages against the programs that must take them: dpkg, lintian,
//! rpm, tar and sha256sum.

mod child;
mod deb;
mod faults;
mod read;
mod rpm;
mod same_bytes;
mod support;
mod tarball;
