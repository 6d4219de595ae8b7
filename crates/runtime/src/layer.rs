//! The layers of a lookup.

/// A source of kernels other than the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Layer {
    /// This process's memory.
    Memory,
    /// An installed kdb.
    System,
    /// The user's kdb.
    User,
}

impl Layer {
    /// The layer in machine-readable output: `system`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::System => "system",
            Self::User => "user",
        }
    }
}
