//! Numbers by which a build's jobs, sources, toolchains and kdbs are known.

/// Each is the place in a list, as a type of its own, so that none is taken
/// for another; serde takes it for the plain number.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub usize);
    )*};
}

ids! {
    /// A job's place among those of a plan.
    JobId
    /// A source's place among those of a build.
    SourceId
    /// A compiler's place among those of a build.
    ToolchainId
    /// A kdb's place among those of a plan.
    KdbId
}
