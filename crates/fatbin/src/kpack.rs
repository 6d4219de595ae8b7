//! Archives of device code beside the libraries that they are for, version 1.
//!
//! Source: ROCm/rocm-systems, `shared/kpack`, `docs/kpack-format.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use gfxpack_model::TargetId;

use crate::bytes::{Bytes, u32_at, u64_at};
use crate::code::CodeTarget;
use crate::error::{Error, layout};
use crate::msgpack::Value;

/// First bytes of an archive.
pub(crate) const MAGIC: &[u8; 4] = b"KPAK";
/// Magic, version, and where the table begins.
const HEADER: u64 = 16;
/// In a search path: the processor.
const PROCESSOR: &str = "@GFXARCH@";

/// What an archive has: by name of an object, the targets of its code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Archive(BTreeMap<String, BTreeSet<CodeTarget>>);

impl Archive {
    pub(crate) fn read(file: &File) -> Result<Self, Error> {
        let bytes = Bytes::of(file)?;
        let header = bytes.read(0, HEADER)?;
        let (version, table) = (u32_at(&header, 4), u64_at(&header, 8));
        if !header.starts_with(MAGIC) || version != 1 || table > bytes.size {
            return layout(format!("a kpack archive of version {version}"));
        }
        let table = Value::parse(&bytes.read(table, bytes.size - table)?)?;
        let number = |value: Option<&Value>| value.and_then(Value::number);
        // By ordinal: whether the object lies in the file.
        let blobs = table.get("blobs").map(Value::items).unwrap_or_default().iter();
        let is_inside = |blob: &Value| {
            let end = number(blob.get("offset")).zip(number(blob.get("size")));
            end.is_some_and(|(at, size)| at.checked_add(size).is_some_and(|end| end <= bytes.size))
        };
        let blobs: Option<Vec<bool>> = table.get("blobs").map(|_| blobs.map(is_inside).collect());
        let frames = number(table.get("zstd_offset")).map(|at| bytes.read(at, 4)).transpose()?;
        let frames = frames.map(|count| u64::from(u32_at(&count, 0)));
        let mut archive = BTreeMap::new();
        for (name, codes) in table.get("toc").map(Value::entries).unwrap_or_default() {
            let mut targets = BTreeSet::new();
            for (target, object) in codes.entries() {
                let Some(ordinal) = number(object.get("ordinal")) else { continue };
                let is_there = match (&blobs, frames) {
                    (Some(blobs), _) => blobs.get(ordinal as usize).copied().unwrap_or(false),
                    (None, Some(frames)) => ordinal < frames,
                    (None, None) => false,
                };
                if !is_there {
                    return layout(format!("object {ordinal} of the kpack archive is not in it"));
                }
                targets.extend(target.text().and_then(CodeTarget::parse));
            }
            archive.insert(name.text().unwrap_or_default().to_owned(), targets);
        }
        Ok(Self(archive))
    }

    fn has(&self, name: &str, device: &TargetId) -> bool {
        self.0.get(name).is_some_and(|targets| targets.iter().any(|target| target.serves(device)))
    }
}

/// What a library says about its archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    name: String,
    paths: Vec<String>,
}

impl Reference {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let value = Value::parse(bytes)?;
        let paths = value.get("kpack_search_paths").map(Value::items).unwrap_or_default();
        let Some(name) = value.get("kernel_name").and_then(Value::text) else {
            return layout("its reference to kpack archives has no name");
        };
        let paths = paths.iter().filter_map(Value::text).map(str::to_owned).collect();
        Ok(Self { name: name.to_owned(), paths })
    }

    /// Of the objects with these numbers, those of which no archive has code for the device.
    pub(crate) fn missing(
        &self,
        library: &Path,
        objects: &[u32],
        device: &TargetId,
        archives: &BTreeMap<PathBuf, Archive>,
    ) -> Vec<u32> {
        let directory = library.parent().unwrap_or(Path::new(""));
        let found: Vec<&Archive> = self
            .paths
            .iter()
            .map(|path| normal(&directory.join(path.replace(PROCESSOR, device.processor()))))
            .filter_map(|path| archives.get(&path))
            .collect();
        let has = |object: &u32| {
            let name = format!("{}#{object}", self.name);
            found.iter().any(|archive| archive.has(&name, device))
        };
        objects.iter().copied().filter(|object| !has(object)).collect()
    }
}

/// The path without `..`, as far as its own words tell.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&[0xa0 | text.len() as u8], text.as_bytes()].concat()
    }

    fn number(number: u64) -> Vec<u8> {
        [&[0xcf][..], &number.to_be_bytes()].concat()
    }

    fn map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let pairs = pairs.iter().map(|(name, value)| [text(name), value.clone()].concat());
        [vec![0x80 | pairs.len() as u8], pairs.collect::<Vec<_>>().concat()].concat()
    }

    /// An archive with two blobs, whose table has these objects: name, target, ordinal.
    fn archive(objects: &[(&str, &str, u64)]) -> Result<Archive, Error> {
        let blob = |at| map(&[("offset", number(at)), ("size", number(64))]);
        let blobs = [vec![0x92], blob(64), blob(128)].concat();
        let codes = |name: &str| {
            let codes = objects.iter().filter(|(it, ..)| *it == name);
            map(&codes
                .map(|(_, target, it)| (*target, map(&[("ordinal", number(*it))])))
                .collect::<Vec<_>>())
        };
        let names: BTreeSet<&str> = objects.iter().map(|(name, ..)| *name).collect();
        let toc = map(&names.iter().map(|name| (*name, codes(name))).collect::<Vec<_>>());
        let table = map(&[("blobs", blobs), ("toc", toc)]);
        let file = tempfile::tempfile().expect("a file");
        let header = [&MAGIC[..], &1_u32.to_le_bytes(), &192_u64.to_le_bytes()].concat();
        file.write_all_at(&header, 0).expect("written");
        file.write_all_at(&table, 192).expect("written");
        Archive::read(&file)
    }

    #[test]
    fn objects_that_no_archive_has_are_named() {
        let paths = [vec![0x91], text("../k/x_@GFXARCH@.kpack")].concat();
        let reference = map(&[("kernel_name", text("lib/x.so")), ("kpack_search_paths", paths)]);
        let reference = Reference::parse(&reference).expect("a reference");
        let check = |objects: &[(&str, &str, u64)], device: &str, expected: &[u32]| {
            let device: TargetId = device.parse().expect("a target");
            let path = PathBuf::from(format!("a/k/x_{}.kpack", device.processor()));
            let archives = [(path, archive(objects).expect("sound"))].into();
            let missing = reference.missing(Path::new("a/lib/x.so"), &[0, 1], &device, &archives);
            assert_eq!(missing, expected, "{device}");
        };
        let both = [("lib/x.so#0", "gfx90a:xnack-", 0), ("lib/x.so#1", "gfx90a", 1)];
        check(&both, "gfx90a:xnack-", &[]);
        check(&both, "gfx90a:xnack+", &[0]);
        check(&both[1..], "gfx90a:xnack-", &[0]);
        check(&both, "gfx1030", &[0, 1]);
        // An object that is not in the file.
        let wrong = archive(&[("lib/x.so#0", "gfx90a", 2)]);
        assert!(matches!(wrong, Err(Error::Layout(_))), "{wrong:?}");
    }
}
