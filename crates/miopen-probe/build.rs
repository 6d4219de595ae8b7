//! Exports the stand-ins from the program, so that libraries that it loads find them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-rdynamic");
}
