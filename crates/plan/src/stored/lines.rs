//! The lines of a stored plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use gfxpack_model::compiler::Program;
use gfxpack_model::{
    Digest, Error, JobId, KernelFileFormat, Language, SourceId, Target, TargetId, ToolchainId,
};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plan::{PlanToolchain, Source, StagedFile};

/// The version of the format that is written and read.
pub const FORMAT: u32 = 2;

/// The common part of a plan's jobs; `A` is data of the program that stores the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header<A> {
    /// [`FORMAT`].
    pub format: u32,
    /// The program that wrote it, with its version.
    pub generator: String,
    /// The plan's digest, as [`crate::plan::Plan::digest`] returns it.
    pub digest: Digest,
    /// The number of jobs.
    pub jobs: usize,
    /// SHA-256 of the jobs' lines.
    pub jobs_sha256: Digest,
    /// The compilers.
    pub toolchains: Vec<StoredToolchain>,
    /// The sources; the content of their files is stored beside, by digest.
    pub sources: Vec<Source>,
    /// What is staged besides each source, as some of its commands need it.
    pub beside: Vec<Beside>,
    /// Arguments and properties that many jobs share.
    pub groups: Vec<Group>,
    /// One per target.
    pub kdbs: Vec<StoredKdb>,
    /// Additional data about the plan.
    pub about: A,
}

/// What is staged besides a source's closure: what only headers of the system name, or options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// Files of the source's directories, with the digests of their content.
    pub files: Vec<StagedFile>,
    /// Directories that must exist.
    pub dirs: BTreeSet<String>,
    /// Directories that are links, with the directories that they lead to: themselves, if those are
    /// not among the sources.
    pub links: BTreeMap<String, String>,
}

impl<A: Serialize + DeserializeOwned> Header<A> {
    /// The stored text, which ends with its own SHA-256.
    pub fn to_text(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.pop();
        text.extend(ending(&text));
        Ok(text)
    }

    /// Parses a header, of the plan with this `name`.
    pub fn from_text(text: &[u8], name: &str) -> Result<Self, Error> {
        // Another format may have other fields.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let wrong = |reason: &dyn fmt::Display| {
            Error::usage(format!("failed to read the plan `{name}`: {reason}"), AGAIN)
        };
        let version: Version = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
        if version.format != FORMAT {
            let format = version.format;
            return Err(Error::usage(
                format!("failed to read plan format {format}: only format {FORMAT} is known"),
                "use the gfxpack that wrote it, or make the plan anew",
            ));
        }
        let (before, end) = text.split_at(text.len().saturating_sub(ending(b"").len()));
        if end != ending(before) {
            return Err(wrong(&"its header is not what was written"));
        }
        serde_json::from_slice(text).map_err(|error| wrong(&error))
    }
}

/// The end of a header, after its fields.
fn ending(before: &[u8]) -> Vec<u8> {
    format!(",\"sha256\":\"{}\"}}\n", Digest::of(before)).into_bytes()
}

/// A compiler, with all files that its digest covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToolchain {
    /// The properties that the plan depends on.
    #[serde(flatten)]
    pub toolchain: PlanToolchain,
    /// Every file with the SHA-256 of its content.
    pub closure: Vec<(String, Digest)>,
}

/// The common properties of jobs that differ only in the options of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// The keys' kernel name.
    pub kernel_name: String,
    /// The source's language.
    pub language: Language,
    /// The target that objects must be for.
    pub target_id: TargetId,
    /// Index into [`Header::sources`].
    pub source: SourceId,
    /// Index into [`Header::toolchains`].
    pub toolchain: ToolchainId,
    /// The program of the toolchain.
    pub program: Program,
    /// Arguments before the key's options.
    pub before: Vec<String>,
    /// Arguments after the key's options.
    pub after: Vec<String>,
}

/// One kdb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredKdb {
    /// The devices that it serves.
    pub target: Target,
    /// The format of its file.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub format: KernelFileFormat,
    /// Index into [`Header::toolchains`].
    pub toolchain: ToolchainId,
    /// Its rows, in canonical order.
    pub rows: Vec<Rows>,
}

/// Consecutive rows of a kdb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Rows {
    /// From this job on, this many jobs under their own keys.
    Run(JobId, usize),
    /// This job under another key than its own: name and arguments.
    Other(JobId, String, String),
}

/// What to do about a damaged plan.
const AGAIN: &str = "copy it again, or make it anew with `gfxpack plan --out`";

/// The error of a plan of which a part contradicts another one.
pub(super) fn damaged(reason: impl fmt::Display) -> Error {
    Error::usage(format!("the plan is damaged: {reason}"), AGAIN)
}
