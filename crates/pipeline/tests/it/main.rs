//! The main job from a key to a row, with a stand-in for the compiler.

mod build;
mod inputs;
mod project;
mod record;
