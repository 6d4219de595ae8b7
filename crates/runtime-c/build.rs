//! Gives the shared library the name by which programs ask the loader for it.

/// The binary interface's number: raised when a program that was linked with
/// an older library could no longer use a newer one.
const SONAME: &str = "libgfxpack_runtime.so.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
}
