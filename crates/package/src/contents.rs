//! A package's files: their order, their sizes, and a way of reading them that
//! detects changes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use gfxpack_model::package::{Content, PackageSpec};
use gfxpack_model::{Error, Result};

use crate::error::reading;

/// Number of bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// A file to be put into an archive.
pub(crate) struct Item<'a> {
    /// Permission bits.
    pub(crate) mode: u32,
    /// Size in bytes, as written into headers.
    pub(crate) size: u64,
    source: Source<'a>,
}

enum Source<'a> {
    Bytes(Cow<'a, [u8]>),
    File(&'a Path, Stamp),
}

/// The state of a file: its size, and when it was changed.
type Stamp = (u64, SystemTime);

/// A package's files by absolute path. Parents sort before their contents.
pub(crate) struct Contents<'a> {
    items: BTreeMap<String, Item<'a>>,
}

/// Files by absolute path, `None` for a directory. Parents come before their contents.
pub(crate) type Entries<'c> = BTreeMap<&'c str, Option<&'c Item<'c>>>;

impl<'a> Contents<'a> {
    /// Reads the metadata of every file of the spec.
    ///
    /// # Errors
    /// If a path occurs twice, or as both file and directory, or an input is
    /// missing or not a regular file.
    pub(crate) fn from_spec(spec: &'a PackageSpec) -> Result<Self> {
        let mut contents = Self { items: BTreeMap::new() };
        for file in &spec.files {
            let source = match &file.content {
                Content::Bytes(bytes) => Source::Bytes(Cow::Borrowed(bytes)),
                Content::File(path) => Source::File(path, stamp(path, std::fs::metadata(path))?),
            };
            contents.insert(&file.path, file.mode, source)?;
        }
        Ok(contents)
    }

    /// Adds a file that the writer generates.
    pub(crate) fn add(&mut self, path: &str, bytes: impl Into<Cow<'a, [u8]>>) -> Result {
        self.insert(path, 0o644, Source::Bytes(bytes.into()))
    }

    fn insert(&mut self, path: &str, mode: u32, source: Source<'a>) -> Result {
        let size = match &source {
            Source::Bytes(bytes) => bytes.len() as u64,
            Source::File(_, (size, _)) => *size,
        };
        // A path clashes with itself, its parents, and what is below it.
        let below = format!("{path}/");
        let below = self.items.range(below.clone()..).next().filter(|(p, _)| p.starts_with(&below));
        let clash = ancestors(path)
            .chain([path])
            .find_map(|path| self.items.get_key_value(path))
            .or(below)
            .map(|(other, _)| other.clone());
        if let Some(other) = clash {
            let (first, second) =
                if other.as_str() <= path { (&*other, path) } else { (path, &*other) };
            return Err(Error::usage(
                format!("failed to pack both `{first}` and `{second}`"),
                "drop one of the two; the writers add the copyright and the changelog themselves",
            ));
        }
        self.items.insert(path.to_owned(), Item { mode, size, source });
        Ok(())
    }

    /// The files, sorted by the bytes of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Item<'a>)> {
        self.items.iter().map(|(path, item)| (path.as_str(), item))
    }

    /// The files and these directories.
    pub(crate) fn with_directories<'c>(&'c self, directories: BTreeSet<&'c str>) -> Entries<'c> {
        let directories = directories.into_iter().map(|path| (path, None));
        directories.chain(self.iter().map(|(path, item)| (path, Some(item)))).collect()
    }

    /// All directories that contain files, without the root, parents first.
    pub(crate) fn directories(&self) -> BTreeSet<&str> {
        self.items.keys().flat_map(|path| ancestors(path)).collect()
    }
}

impl Item<'_> {
    /// Writes the file's bytes to `out`.
    ///
    /// # Errors
    /// An [`Error`] if the file can't be read, or has changed since its metadata was read; errors
    /// of `out`.
    pub(crate) fn copy_to(&self, out: &mut impl Write) -> io::Result<()> {
        let (path, before) = match &self.source {
            Source::Bytes(bytes) => return out.write_all(bytes),
            Source::File(path, stamp) => (*path, stamp),
        };
        let mut file = File::open(path).map_err(reading(path))?;
        let mut buffer = vec![0; CHUNK.min(self.size as usize + 1)];
        let mut copied = 0;
        // Bytes beyond the expected size are not written.
        while copied <= self.size {
            let filled = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(filled) => filled,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(reading(path)(e).into()),
            };
            copied += filled as u64;
            if copied <= self.size {
                out.write_all(&buffer[..filled])?;
            }
        }
        if copied == self.size && stamp(path, file.metadata())? == *before {
            return Ok(());
        }
        let error = Error::usage(
            format!("failed to pack `{}`: it changed while it was being read", path.display()),
            "let whatever writes to the file finish, then package again",
        );
        Err(error.into())
    }
}

fn stamp(path: &Path, metadata: io::Result<Metadata>) -> Result<Stamp> {
    let metadata = metadata.map_err(reading(path))?;
    if !metadata.is_file() {
        let message = format!("failed to pack `{}`: it is no regular file", path.display());
        return Err(Error::usage(message, "name a regular file as the source"));
    }
    Ok((metadata.len(), metadata.modified().map_err(reading(path))?))
}

/// The directories above an absolute path, beginning at the top, without the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use gfxpack_model::package::PackageFile;

    use super::*;
    use crate::test_support::empty_spec;

    fn spec(paths: &[&str]) -> PackageSpec {
        let file =
            |path: &&str| PackageFile::readable(*path, Content::Bytes(path.as_bytes().to_vec()));
        PackageSpec { files: paths.iter().map(file).collect(), ..empty_spec() }
    }

    #[test]
    fn parents_come_before_their_contents() {
        let spec = spec(&["/b/c/x", "/b/c-d/x", "/a"]);
        let contents = Contents::from_spec(&spec).expect("no clash");
        let paths: Vec<&str> = contents.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["/a", "/b/c-d/x", "/b/c/x"]);
        let dirs: Vec<&str> = contents.directories().into_iter().collect();
        assert_eq!(dirs, ["/b", "/b/c", "/b/c-d"]);
    }

    #[test]
    fn clashing_paths_are_refused() {
        for (paths, first, second) in [
            (["/a/b", "/a/b"], "/a/b", "/a/b"),
            (["/a/b", "/a/b/c"], "/a/b", "/a/b/c"),
            (["/a/b/c", "/a/b"], "/a/b", "/a/b/c"),
            (["/a/b/c/d/e", "/a/b"], "/a/b", "/a/b/c/d/e"),
        ] {
            let error = Contents::from_spec(&spec(&paths)).map(drop).expect_err("they clash");
            assert_eq!(error.to_string(), format!("failed to pack both `{first}` and `{second}`"));
        }
        let spec = spec(&["/a/b", "/a/b-c", "/a/bc/d"]);
        assert!(Contents::from_spec(&spec).is_ok(), "common beginnings are no clash");
    }

    /// A writer that changes the file being packed after the first write.
    struct ChangingWriter<'a>(&'a dyn Fn(), bool);

    impl Write for ChangingWriter<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !std::mem::replace(&mut self.1, true) {
                (self.0)();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("input");
        let write = |size: usize| std::fs::write(&path, vec![1; size]).expect("written");
        let append = || {
            let mut file = File::options().append(true).open(&path).expect("opened");
            file.write_all(b"more").expect("written");
        };
        let overwrite = || {
            use std::os::unix::fs::FileExt as _;
            let file = File::options().write(true).open(&path).expect("opened");
            file.write_all_at(b"other", 0).expect("written");
            let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
            file.set_modified(later).expect("stamped");
        };
        let pack = |change: &dyn Fn()| {
            write(CHUNK * 3);
            let mut spec = spec(&[]);
            spec.files.push(PackageFile::readable("/f", Content::File(path.clone())));
            let contents = Contents::from_spec(&spec).expect("the input is there");
            let (_, item) = contents.iter().next().expect("one file");
            item.copy_to(&mut ChangingWriter(change, false))
        };
        assert!(pack(&|| ()).is_ok());
        for change in [&append as &dyn Fn(), &overwrite, &|| write(CHUNK + 5), &|| write(0)] {
            let error = pack(change).expect_err("it changed");
            assert!(error.to_string().ends_with("/input`: it changed while it was being read"));
        }
    }
}
