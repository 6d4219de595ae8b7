//! A stored object's file: a header line of JSON, the object, and its purpose.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;

use gfxpack_model::{Digest, KernelKey, TargetId};
use serde::{Deserialize, Serialize};

/// A header line is far shorter; a longer one is damage.
const MAX_HEADER: u64 = 64 * 1024;

/// What the store knows of an object without reading its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectInfo {
    /// Its key.
    pub key: Digest,
    /// SHA-256 of the object's bytes.
    pub sha256: Digest,
    /// Bytes.
    pub size: u64,
    /// The size in bytes of the purpose, which follows the object.
    pub about: u64,
}

/// The purpose of an object, stored behind it for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPurpose {
    /// A key that asked for it.
    pub key: KernelKey,
    /// The target.
    pub target_id: TargetId,
    /// The compiler's arguments.
    pub arguments: Vec<Arc<str>>,
}

impl ObjectInfo {
    /// For an object, with the bytes to write before and after it.
    pub(super) fn for_object(
        key: Digest,
        bytes: &[u8],
        about: &ObjectPurpose,
    ) -> (Self, Vec<u8>, Vec<u8>) {
        let about = serde_json::to_vec(about).expect("plain data");
        let (size, length) = (bytes.len() as u64, about.len() as u64);
        let info = Self { key, sha256: Digest::of(bytes), size, about: length };
        let mut header = serde_json::to_vec(&info).expect("plain data");
        header.push(b'\n');
        (info, header, about)
    }

    /// The size in bytes of the file, if its header has that length.
    fn length(&self, header: u64) -> Option<u64> {
        header.checked_add(self.size)?.checked_add(self.about)
    }
}

/// The parts of a stored file.
pub(crate) struct Entry<'a> {
    pub(crate) info: ObjectInfo,
    pub(crate) object: &'a [u8],
    /// The purpose, as stored.
    pub(crate) about: ObjectPurpose,
}

impl<'a> Entry<'a> {
    /// `None` if the bytes are no whole file.
    pub(super) fn split(bytes: &'a [u8]) -> Option<Self> {
        let (info, header) = read_header(&mut &*bytes).ok()??;
        if info.length(header) != Some(bytes.len() as u64) {
            return None;
        }
        let (object, about) = bytes[header as usize..].split_at_checked(info.size as usize)?;
        Some(Self { info, object, about: serde_json::from_slice(about).ok()? })
    }

    /// The same, but also `None` if the object is not the one that was stored, or has another key.
    pub(crate) fn parse(bytes: &'a [u8], key: Digest) -> Option<Self> {
        let is_whole = |entry: &Self| Digest::of(entry.object) == entry.info.sha256;
        Self::split(bytes).filter(|entry| entry.info.key == key && is_whole(entry))
    }
}

/// The content of the header line; `None` if it is damaged or the file has not the length that it
/// states.
pub(super) fn read_info(file: &File) -> io::Result<Option<ObjectInfo>> {
    let length = file.metadata()?.len();
    let read = read_header(&mut BufReader::new(file))?;
    Ok(read.filter(|(info, header)| info.length(*header) == Some(length)).map(|(info, _)| info))
}

/// The bytes of a stored file; empty if it has not the length that its header states, since a
/// damaged file may have any size.
pub(super) fn read_entry(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if read_info(&file)?.is_some() {
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The content of the header line, and its length with the line break; `None` if it is damaged.
fn read_header(file: &mut impl BufRead) -> io::Result<Option<(ObjectInfo, u64)>> {
    let mut line = Vec::new();
    file.take(MAX_HEADER).read_until(b'\n', &mut line)?;
    let info = serde_json::from_slice(line.strip_suffix(b"\n").unwrap_or_default()).ok();
    Ok(info.map(|info| (info, line.len() as u64)))
}
