//! Why shards do not fit together.

use gfxpack_model::Digest;
use gfxpack_plan::shard::{Shard, ranges};

/// Why shards can't be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Nothing is there.
    #[error("failed to find a shard's manifest")]
    None,
    /// A shard of another plan.
    #[error("failed to merge `{path}`: it is of plan {found}, not of {expected}")]
    OtherPlan {
        /// The manifest.
        path: String,
        /// The plan that it is of.
        found: Digest,
        /// The plan that is merged.
        expected: Digest,
    },
    /// Shards of two ways to part the plan.
    #[error("failed to merge `{path}`: it is shard {shard}, and `{first}` is {other}, {reason}")]
    OtherParting {
        /// The manifest.
        path: String,
        /// The shard.
        shard: Shard,
        /// The first of them.
        first: String,
        /// The first one's shard.
        other: Shard,
        /// How they differ.
        reason: &'static str,
    },
    /// The same shard in two places.
    #[error("failed to merge shard {shard} twice: `{first}` and `{second}`")]
    Twice {
        /// The shard.
        shard: Shard,
        /// The first of them.
        first: String,
        /// The second.
        second: String,
    },
    /// Not all are there.
    #[error("failed to find {} of {count} shards: {}", .missing.len(), ranges(.missing))]
    Missing {
        /// Which are missing.
        missing: Vec<u32>,
        /// How many there are.
        count: u32,
    },
    /// A manifest with a job that the plan does not have.
    #[error("failed to merge `{path}`: it has job `{job}`, which the plan has not")]
    ForeignJob {
        /// The manifest.
        path: String,
        /// The job.
        job: Digest,
    },
    /// A job in two shards.
    #[error("failed to merge `{first}` and `{second}`: both have `{key}`")]
    Overlap {
        /// The kernel.
        key: String,
        /// The first of them.
        first: String,
        /// The second.
        second: String,
    },
    /// Two shards made two things of one job.
    #[error(
        "failed to merge two different objects of `{key}`: {} in `{first}`, {} in `{second}`",
        .objects[0], .objects[1]
    )]
    Differ {
        /// The kernel.
        key: String,
        /// The first of them.
        first: String,
        /// The second.
        second: String,
        /// Digests of the two objects.
        objects: Box<[Digest; 2]>,
    },
    /// No shard has a job that its shard should have.
    #[error("failed to find {count} of the plan's jobs in any shard, `{key}` the first")]
    NoShard {
        /// How many there are.
        count: usize,
        /// The kernel.
        key: String,
    },
    /// A shard has jobs that its machine failed.
    #[error("failed to merge shard {shard}: its machine lost {lost} of its jobs")]
    Lost {
        /// The shard.
        shard: Shard,
        /// How many jobs.
        lost: usize,
    },
    /// An object is not what the manifest says.
    #[error("failed to merge shard {shard}: the object of `{key}` in `{dir}` is damaged or gone")]
    Damaged {
        /// The shard.
        shard: Shard,
        /// The kernel.
        key: String,
        /// The directory of the shard.
        dir: String,
    },
}

impl MergeError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::None => "give directories that `gfxpack build --shard` wrote into".to_owned(),
            Self::OtherPlan { .. } => {
                "build that shard from this plan; what both have in common is not compiled again"
                    .to_owned()
            }
            Self::OtherParting { .. } => {
                "run all shards with the same I/N and the same --costs, or give only the \
                 directories that belong together"
                    .to_owned()
            }
            Self::Twice { .. } => "give each shard once".to_owned(),
            Self::Missing { missing, count } => format!(
                "run `gfxpack build --shard I/{count}` for {}; --allow-partial merges without them",
                ranges(missing)
            ),
            Self::ForeignJob { .. } | Self::Overlap { .. } | Self::NoShard { .. } => {
                "remove that shard's manifest and run it again: what is compiled is kept".to_owned()
            }
            Self::Differ { .. } => {
                "the machines differ in something that no digest covers, as the headers of the C++ \
                 library, or the compiler does not repeat itself: docs/toolchains.md"
                    .to_owned()
            }
            Self::Lost { shard, .. } => format!(
                "run `gfxpack build --shard {shard}` again; --allow-partial merges without them"
            ),
            Self::Damaged { shard, .. } => {
                format!("run `gfxpack build --shard {shard}` again: it compiles what is damaged")
            }
        }
    }

    /// Whether the input is at fault, and not what lies on a disk.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Damaged { .. } | Self::Differ { .. })
    }
}
