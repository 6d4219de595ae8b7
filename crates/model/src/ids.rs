//! Numbers that identify a build's jobs, sources, toolchains and kdbs.

/// Each is an index into a list, as its own type, so that they can't be mixed
/// up. With serde each is a plain number.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub usize);
    )*};
}

ids! {
    /// Index of a job in a plan.
    JobId
    /// Index of a source in a build.
    SourceId
    /// Index of a compiler in a build.
    ToolchainId
    /// Index of a kdb in a plan.
    KdbId
}
