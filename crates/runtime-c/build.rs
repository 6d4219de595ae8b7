//! Gives the shared library the name by which programs ask the loader for it.

/// The binary interface's number: raised when a program that was linked with
/// an older library could no longer use a newer one.
const SONAME: &str = "libgfxpack_runtime.so.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    if release() {
        // What is packaged carries no table of hidden symbols.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--strip-all");
    }
}

#[expect(clippy::disallowed_methods, reason = "how cargo tells a build script the profile")]
fn release() -> bool {
    std::env::var("PROFILE").is_ok_and(|profile| profile == "release")
}
