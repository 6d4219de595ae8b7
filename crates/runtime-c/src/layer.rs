//! Where kernels come from, as numbers.

/// Where a kernel came from, or could have come from.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Nowhere: the lookup was a miss.
    None = 0,
    /// This process's memory.
    Memory = 1,
    /// An installed kdb.
    System = 2,
    /// The user's kdb.
    User = 3,
    /// The caller's compiler, just now.
    Compiled = 4,
}

impl From<gfxpack_runtime::Layer> for Layer {
    fn from(layer: gfxpack_runtime::Layer) -> Self {
        match layer {
            gfxpack_runtime::Layer::Memory => Self::Memory,
            gfxpack_runtime::Layer::System => Self::System,
            gfxpack_runtime::Layer::User => Self::User,
            _ => Self::None,
        }
    }
}
