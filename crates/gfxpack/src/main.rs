//! The gfxpack command line.
fn main() {}
