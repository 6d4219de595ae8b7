//! The main job from a key to a row, with a shell script as the compiler.

mod build;
mod inputs;
mod prepare;
mod project;
mod record;
