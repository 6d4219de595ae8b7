//! Records which files earlier runs made from what, and which kdbs they verified.
//! A run that would write the same bytes to the same place leaves the file as it
//! is.
//!
//! There is one small file below the cache for each output and each verified
//! content. A record counts only if nothing changed that determines the output's
//! bytes, the same build of gfxpack wrote it, and the output still has the recorded
//! SHA-256.

use std::fs::File;
use std::path::{Path, PathBuf};

use gfxpack_compile::{FileDigests, touch, write_atomic};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Target};
use gfxpack_package::Written;
use object::Object;
use object::read::ReadCache;
use serde::{Deserialize, Serialize};

/// The records of the files in one directory.
#[derive(Debug)]
pub(crate) struct Outputs<'a> {
    /// The directory, absolute and without links.
    out: PathBuf,
    /// The directory as the user wrote it.
    pub(crate) given: PathBuf,
    pub(crate) records: FileRecords<'a>,
}

/// The records below the cache, and the digests of files.
#[derive(Debug)]
pub(crate) struct FileRecords<'a> {
    dir: PathBuf,
    /// Identifies the program that is running; without it nothing is recorded.
    program: Option<Vec<u8>>,
    /// Whether records of earlier runs are ignored.
    anew: bool,
    pub(crate) digests: &'a FileDigests,
}

/// A digest of all that determines an output's bytes.
#[derive(Debug, Clone)]
pub(crate) struct OutputDigest {
    /// The name of the output in its directory.
    name: String,
    digest: Digest,
}

#[derive(Serialize, Deserialize)]
struct OutputRecord {
    /// As in [`OutputDigest`].
    digest: Digest,
    /// Relative to the output directory.
    file: PathBuf,
    sha256: String,
}

impl<'a> Outputs<'a> {
    /// The records of the files in `out`, which must exist.
    pub(crate) fn in_dir(out: &Path, records: FileRecords<'a>) -> std::io::Result<Self> {
        Ok(Self { out: std::fs::canonicalize(out)?, given: out.to_owned(), records })
    }

    /// The digest of the output `name`. `fields` are everything that determines
    /// its bytes.
    pub(crate) fn digest_of<'f>(
        &self,
        name: &str,
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) -> OutputDigest {
        let program = self.records.program.as_deref().unwrap_or_default();
        let hasher = Hasher::new("gfxpack output 1").field(name.as_bytes()).field(program);
        let hasher = fields.into_iter().fold(hasher, Hasher::field);
        OutputDigest { name: name.to_owned(), digest: hasher.finish() }
    }

    fn place(&self, output: &OutputDigest) -> Digest {
        Hasher::new("gfxpack place 1")
            .field(self.out.as_os_str().as_encoded_bytes())
            .field(output.name.as_bytes())
            .finish()
    }

    /// The file, if it was made with this digest and is unchanged.
    pub(crate) fn unchanged(&self, output: &OutputDigest) -> Option<Written> {
        let record: OutputRecord = self.records.read(self.place(output))?;
        let path = self.out.join(&record.file);
        let is_own = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if record.digest != output.digest || !is_own {
            return None;
        }
        let written = self.records.described(&path).ok()?;
        let path = self.given.join(&record.file);
        (written.sha256 == record.sha256).then_some(Written { path, ..written })
    }

    /// Records a file that was made with this digest. If that fails, the next run
    /// makes it again.
    pub(crate) fn remember(&self, output: &OutputDigest, written: &Written) {
        let real = std::fs::canonicalize(&written.path);
        let relative =
            real.ok().and_then(|path| Some(path.strip_prefix(&self.out).ok()?.to_owned()));
        let Some(file) = relative else { return };
        if let Ok(sha256) = written.sha256.parse() {
            self.records.digests.note_output(&self.out.join(&file), sha256);
        }
        let record = OutputRecord { digest: output.digest, file, sha256: written.sha256.clone() };
        self.records.write(self.place(output), &record);
    }
}

impl<'a> FileRecords<'a> {
    /// The records below a cache directory; with `anew`, those of earlier runs
    /// are ignored.
    pub(crate) fn below(cache: &Path, digests: &'a FileDigests, anew: bool) -> Self {
        // Another build of gfxpack may write different bytes.
        Self { dir: cache.join("outputs"), program: build_id(), anew, digests }
    }

    /// Size and SHA-256 of a file. Only this process may change it while it runs.
    pub(crate) fn described(&self, path: &Path) -> std::io::Result<Written> {
        let meta = std::fs::metadata(path)?;
        if !meta.is_file() {
            // Reading a pipe would block.
            return Err(std::io::Error::other("it is no file"));
        }
        let size = meta.len();
        let sha256 = self.digests.digest_of_output(path)?.to_string();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Written { path: path.to_owned(), file_name, size, sha256 })
    }

    /// The number of rows of a kdb, if its content was verified for the target.
    pub(crate) fn verified_rows(&self, kdb: &Written, target: &Target) -> Option<u64> {
        self.read(self.of_verified(kdb, target))
    }

    /// Records that a kdb passed verification.
    pub(crate) fn note_verified(&self, kdb: &Written, target: &Target, rows: u64) {
        self.write(self.of_verified(kdb, target), &rows);
    }

    fn of_verified(&self, kdb: &Written, target: &Target) -> Digest {
        Hasher::new("gfxpack verified kdb 1")
            .field(self.program.as_deref().unwrap_or_default())
            .field(kdb.sha256.as_bytes())
            .field(target.to_string().as_bytes())
            .finish()
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: Digest) -> Option<T> {
        self.program.as_ref().filter(|_| !self.anew)?;
        let path = self.dir.join(name.to_string());
        let record = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        touch(&path);
        Some(record)
    }

    fn write(&self, name: Digest, record: &impl Serialize) {
        if self.program.is_some() {
            let kept = serde_json::to_vec(record).map_err(std::io::Error::from);
            kept.and_then(|text| write_atomic(&self.dir.join(name.to_string()), &[&text])).ok();
        }
    }
}

/// The build ID that the linker wrote into this program. The stat data of the
/// program's file would change with every hard link to it.
fn build_id() -> Option<Vec<u8>> {
    let program = ReadCache::new(File::open(std::env::current_exe().ok()?).ok()?);
    let program = object::File::parse(&program).ok()?;
    Some(program.build_id().ok()??.to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn verification_is_recorded_by_content_and_target() {
        let dir = tempfile::tempdir().unwrap();
        let digests = FileDigests::default();
        let records = FileRecords::below(dir.path(), &digests, false);
        let targets = ["gfx906@60", "gfx906"].map(|target| target.parse::<Target>().unwrap());
        let file = |name, content| {
            fs::write(dir.path().join(name), content).unwrap();
            records.described(&dir.path().join(name)).unwrap()
        };
        let (kdb, same, other) = (file("a", "content"), file("b", "content"), file("c", "more"));
        assert_eq!(records.verified_rows(&kdb, &targets[0]), None);
        records.note_verified(&kdb, &targets[0], 48);
        assert_eq!(records.verified_rows(&same, &targets[0]), Some(48));
        assert_eq!(records.verified_rows(&kdb, &targets[1]), None);
        assert_eq!(records.verified_rows(&other, &targets[0]), None);
        let anew = FileRecords::below(dir.path(), &digests, true);
        assert_eq!(anew.verified_rows(&kdb, &targets[0]), None);
    }

    #[test]
    fn this_program_has_a_build_id() {
        assert!(build_id().is_some_and(|id| id.len() >= 8));
    }
}
