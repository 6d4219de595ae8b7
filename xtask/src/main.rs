//! A checkout's front door.
fn main() {}
