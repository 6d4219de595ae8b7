//! Compresses the texts of all licences: they have 4 MB.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use spdx::text::{EXCEPTION_TEXTS, LICENSE_TEXTS};

/// Writes every identifier and its text, each with a zero byte after it.
#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by the environment")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    let file = File::create(Path::new(&out).join("licenses")).expect("failed to write `licenses`");
    let mut packed = DeflateEncoder::new(file, Compression::best());
    for (id, text) in LICENSE_TEXTS.iter().chain(EXCEPTION_TEXTS) {
        write!(packed, "{id}\0{text}\0").expect("failed to write `licenses`");
    }
    packed.finish().expect("failed to write `licenses`");
}
