//! The main job from a key to a row and its record, with a shell script as the compiler: what the
//! suites with real compilers do not show.

mod project;
mod record;
