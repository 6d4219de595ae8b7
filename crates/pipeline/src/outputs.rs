//! Which files earlier runs made, and from what, so that a run that would make
//! the same bytes in the same place leaves them as they are.
//!
//! One small file below the cache for each place. It is believed only if the
//! recipe is the same, this very program wrote it, and the file still has the
//! SHA-256 that it was written with.

use std::path::{Path, PathBuf};

use gfxpack_compile::{state_of, touch, write_atomic};
use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use gfxpack_package::{Written, sums};
use serde::{Deserialize, Serialize};

/// What is known of the files in one directory.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// Absolute, without links.
    out: PathBuf,
    records: PathBuf,
    /// The program that runs now, as a file.
    program: Option<Digest>,
}

/// What a file was made from.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Which of the directory's files.
    slot: String,
    digest: Digest,
}

#[derive(Serialize, Deserialize)]
struct Record {
    recipe: Digest,
    /// Relative to the directory.
    file: PathBuf,
    sha256: String,
}

impl Outputs {
    /// What `cache` knows of the files in `out`, which must be there.
    pub(crate) fn of(out: &Path, cache: &Path) -> std::io::Result<Self> {
        // Another build of gfxpack may write other bytes.
        let program = std::env::current_exe().ok().and_then(|program| state_of(&program));
        Ok(Self { out: std::fs::canonicalize(out)?, records: cache.join("outputs"), program })
    }

    /// The recipe of what is known by `slot`: everything that decides its
    /// bytes, in fields.
    pub(crate) fn recipe<'f>(
        &self,
        slot: &str,
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) -> Recipe {
        let program = self.program.map_or_else(Vec::new, |program| program.as_ref().to_vec());
        let hasher = Hasher::new("gfxpack output 1").field(slot.as_bytes()).field(&program);
        let hasher = fields.into_iter().fold(hasher, Hasher::field);
        Recipe { slot: slot.to_owned(), digest: hasher.finish() }
    }

    fn record(&self, recipe: &Recipe) -> PathBuf {
        let name = Hasher::new("gfxpack place 1")
            .field(self.out.as_os_str().as_encoded_bytes())
            .field(recipe.slot.as_bytes())
            .finish();
        self.records.join(name.to_string())
    }

    /// The file, if it was made by this recipe and is as it was.
    pub(crate) fn unchanged(&self, recipe: &Recipe) -> Option<Written> {
        self.program?;
        let text = std::fs::read(self.record(recipe)).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        let path = self.out.join(&record.file);
        let is_own = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        if record.recipe != recipe.digest || !is_own {
            return None;
        }
        let written = sums::digest_file(&path).ok()?;
        (written.sha256 == record.sha256).then(|| {
            touch(&self.record(recipe));
            written
        })
    }

    /// Remembers a file that was made by this recipe. Where that is
    /// impossible, the next run makes it again.
    pub(crate) fn remember(&self, recipe: &Recipe, written: &Written) {
        let real = std::fs::canonicalize(&written.path);
        let relative =
            real.ok().and_then(|path| Some(path.strip_prefix(&self.out).ok()?.to_owned()));
        let Some((file, _)) = relative.zip(self.program) else { return };
        let record = Record { recipe: recipe.digest, file, sha256: written.sha256.clone() };
        let kept = serde_json::to_vec(&record).map_err(std::io::Error::from);
        kept.and_then(|text| write_atomic(&self.record(recipe), &[&text])).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_left_alone_only_where_the_same_would_be_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let (out, cache) = (dir.path().join("o"), dir.path().join("cache"));
        fs::create_dir_all(out.join("kdb")).unwrap();
        let file = out.join("kdb/x.kdb");
        fs::write(&file, "content").unwrap();
        let outputs = Outputs::of(&out, &cache).unwrap();
        let recipe = outputs.recipe("x kdb", [&b"made of"[..], b"this"]);
        assert!(outputs.unchanged(&recipe).is_none());
        let written = sums::digest_file(&file).unwrap();
        outputs.remember(&recipe, &written);
        let again = Outputs::of(&out, &cache).unwrap();
        assert_eq!(again.unchanged(&recipe).unwrap().sha256, written.sha256);

        for other in [
            again.recipe("x kdb", [&b"made of"[..], b"that"]),
            again.recipe("x kdb", [&b"made ofthis"[..]]),
            again.recipe("y kdb", [&b"made of"[..], b"this"]),
        ] {
            assert!(again.unchanged(&other).is_none());
        }
        let other_program = Outputs { program: Some(Digest::of(b"other")), ..again };
        let same = other_program.recipe("x kdb", [&b"made of"[..], b"this"]);
        assert!(other_program.unchanged(&same).is_none());
        fs::create_dir(dir.path().join("p")).unwrap();
        fs::create_dir(dir.path().join("p/kdb")).unwrap();
        fs::copy(&file, dir.path().join("p/kdb/x.kdb")).unwrap();
        let elsewhere = Outputs::of(&dir.path().join("p"), &cache).unwrap();
        assert!(elsewhere.unchanged(&recipe).is_none());

        fs::write(&file, "Content").unwrap();
        assert!(outputs.unchanged(&recipe).is_none(), "another content of the same size");
        fs::write(&file, "content").unwrap();
        assert!(outputs.unchanged(&recipe).is_some());
        fs::rename(&file, out.join("elsewhere")).unwrap();
        assert!(outputs.unchanged(&recipe).is_none());
        std::os::unix::fs::symlink("../elsewhere", &file).unwrap();
        assert!(outputs.unchanged(&recipe).is_none(), "a link is not what was made");
        fs::remove_file(&file).unwrap();
        fs::rename(out.join("elsewhere"), &file).unwrap();
        fs::write(outputs.record(&recipe), "damaged").unwrap();
        assert!(outputs.unchanged(&recipe).is_none());
    }
}
