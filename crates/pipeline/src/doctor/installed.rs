//! What is installed on a machine, to be checked.

use gfxpack_runtime::{Environment, Places, Target};

/// What is checked, and how.
#[derive(Debug, Clone, Copy)]
pub struct Installed<'a> {
    /// The variables that count at run time.
    pub environment: &'a Environment,
    /// Where kernels are looked for.
    pub places: &'a Places,
    /// The devices that they are for.
    pub targets: &'a [Target],
    /// The largest code object that a kdb may claim.
    pub max_object_bytes: u64,
    /// Whether every kernel of the devices' kdbs is decoded and hashed.
    pub deep: bool,
}
