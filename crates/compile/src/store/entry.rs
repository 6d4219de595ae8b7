//! A stored object's file: a header line of JSON, the object, and what it was
//! made for.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

use gfxpack_model::args::Args;
use gfxpack_model::{Digest, KernelKey, TargetId};
use gfxpack_plan::plan::Job;
use gfxpack_process::watch::Answers;
use serde::{Deserialize, Serialize};

use super::dependencies::Dependencies;
use super::places::answers_path;

/// A header line is far shorter; a longer one is damage.
const MAX_HEADER: u64 = 64 * 1024;

/// What the store knows of an object without reading its bytes.
// What is damaged must not read as if it depended on nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectInfo {
    /// The job that made it.
    pub(super) job: Digest,
    /// SHA-256 of the object's bytes.
    pub sha256: Digest,
    /// Bytes.
    pub size: u64,
    /// The sets of its compiler's accesses to files that belong to neither source
    /// nor toolchain: the C++ library's headers, and those that were not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Digest>,
    /// Names what its driver would have run, if that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commands: Option<Digest>,
    /// Names of the directories that its compiler read since the user had
    /// admitted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) admitted: Vec<Digest>,
    /// Bytes of what stands behind the object.
    #[serde(default)]
    about: u64,
}

/// What stands behind an object in its file, for people: what it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPurpose {
    /// A key that wanted it.
    pub key: KernelKey,
    /// The target that it is for.
    pub target_id: TargetId,
    /// The compiler's arguments.
    pub arguments: Args,
}

impl ObjectPurpose {
    /// What the store keeps of a job.
    #[must_use]
    pub fn from_job(job: &Job) -> Self {
        let (key, arguments) = (KernelKey::clone(&job.key), job.arguments.clone());
        Self { key, target_id: job.target_id.clone(), arguments }
    }
}

impl ObjectInfo {
    /// For an object, and the bytes of what stands before and behind it.
    pub(super) fn for_object(
        job: Digest,
        bytes: &[u8],
        about: &ObjectPurpose,
        answers: Vec<Digest>,
        dependencies: &Dependencies,
    ) -> (Self, Vec<u8>, Vec<u8>) {
        let about = serde_json::to_vec(about).expect("plain data");
        let info = Self {
            job,
            sha256: Digest::of(bytes),
            size: bytes.len() as u64,
            answers,
            commands: dependencies.commands,
            admitted: dependencies.admitted.clone(),
            about: about.len() as u64,
        };
        let mut header = serde_json::to_vec(&info).expect("plain data");
        header.push(b'\n');
        (info, header, about)
    }

    /// The sets of file accesses that it depends on, and the names of their files.
    pub(crate) fn answer_files(&self) -> impl Iterator<Item = (Digest, String)> {
        let file = |name| answers_path(name).to_str().expect("hexadecimal").to_owned();
        self.answers.iter().map(move |name| (*name, file(*name)))
    }

    /// Whether it is for one build alone, since it is not known what it depends on.
    pub(crate) fn is_for_one_build(&self) -> bool {
        let never = Dependencies::for_one_build(Answers::default()).system.to_kept().name;
        self.answers.contains(&never)
    }

    /// Bytes of the file with a header of that length.
    fn length(&self, header: u64) -> Option<u64> {
        header.checked_add(self.size)?.checked_add(self.about)
    }
}

/// A stored file taken apart.
pub(crate) struct Entry<'a> {
    pub(crate) info: ObjectInfo,
    pub(crate) object: &'a [u8],
    /// What it says that its object was made for.
    pub(crate) about: ObjectPurpose,
}

impl<'a> Entry<'a> {
    /// `None` where the bytes are not those of a whole file.
    pub(super) fn split(bytes: &'a [u8]) -> Option<Self> {
        let (info, header) = read_header(&mut &*bytes).ok()??;
        if info.length(header) != Some(bytes.len() as u64) {
            return None;
        }
        let (object, about) = bytes[header as usize..].split_at_checked(info.size as usize)?;
        Some(Self { info, object, about: serde_json::from_slice(about).ok()? })
    }

    /// Likewise, and where the object is another one than was stored, or another
    /// job's.
    pub(crate) fn parse(bytes: &'a [u8], job: Digest) -> Option<Self> {
        let is_whole = |entry: &Self| Digest::of(entry.object) == entry.info.sha256;
        Self::split(bytes).filter(|entry| entry.info.job == job && is_whole(entry))
    }
}

/// What the header line says; `None` where it is damaged, or the file is not as
/// long as it says.
pub(super) fn read_info(file: &File) -> io::Result<Option<ObjectInfo>> {
    let length = file.metadata()?.len();
    let read = read_header(&mut BufReader::new(file))?;
    Ok(read.filter(|(info, header)| info.length(*header) == Some(length)).map(|(info, _)| info))
}

/// The bytes of a stored file; none if its length is not what its header says,
/// since a damaged file may have any size.
pub(super) fn read_entry(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if read_info(&file)?.is_some() {
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The header line's content and its length with the line break; `None` where
/// it is damaged.
fn read_header(file: &mut impl BufRead) -> io::Result<Option<(ObjectInfo, u64)>> {
    let mut line = Vec::new();
    file.take(MAX_HEADER).read_until(b'\n', &mut line)?;
    let info = serde_json::from_slice(line.strip_suffix(b"\n").unwrap_or_default()).ok();
    Ok(info.map(|info| (info, line.len() as u64)))
}
