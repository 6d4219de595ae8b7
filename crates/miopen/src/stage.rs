//! Stages databases for the library: a directory of links to those for one target, and of copies in
//! the form that it reads.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use gfxpack_model::{Digest, Error, Result, Target};
use gfxpack_stock_library::sha256;
use gfxpack_tuning::{DatabaseKind, DatabaseName, DatabaseOwner, sqlite_lines};

use crate::library::MIOPEN;

/// A database that was passed to the library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseFile {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

/// The databases of a directory for a target.
#[derive(Debug)]
pub(crate) struct StagedDatabases {
    /// The library's directory while it searches.
    pub(crate) directory: PathBuf,
    /// The same with the find database.
    pub(crate) complete: PathBuf,
    pub(crate) find_db: Option<PathBuf>,
    /// The files that were used, sorted.
    pub(crate) files: Vec<DatabaseFile>,
    /// Whether there are heuristic models, which some versions can't read.
    pub(crate) has_models: bool,
}

/// A file of the directory for the target.
struct Candidate {
    path: PathBuf,
    /// Without the extension of a compressed file.
    name: String,
    /// `None` for a heuristic model.
    kind: Option<DatabaseKind>,
}

impl StagedDatabases {
    /// Stages the databases of `from` for the target, below `to`; `None` if there are none.
    ///
    /// Only databases for exactly the target's compute units are used. A performance database in
    /// SQLite, as MIOpen's sources have it, is also converted to text, as MIOpen's build does.
    pub(crate) fn lay_out(
        from: &Path,
        target: &Target,
        models: bool,
        to: &Path,
    ) -> Result<Option<Self>> {
        let candidates =
            candidates(from, target, models).map_err(|source| unreadable(from, source))?;
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut staged = Self {
            directory: to.join("searching"),
            complete: to.join("complete"),
            find_db: None,
            files: Vec::new(),
            has_models: candidates.iter().any(|candidate| candidate.kind.is_none()),
        };
        for directory in [&staged.directory, &staged.complete] {
            fs::create_dir_all(directory).map_err(MIOPEN.scratch(directory))?;
        }
        let text = format!("{}.db.txt", target.db_basename());
        let has_text = candidates.iter().any(|candidate| candidate.name == text);
        let sqlite = format!("{}.db", target.db_basename());
        for candidate in &candidates {
            let path = staged.take(candidate)?;
            if !has_text && candidate.name == sqlite {
                staged.convert(&path, &text)?;
            }
        }
        staged.files.sort();
        Ok(Some(staged))
    }

    /// Adds a file to the directories. Returns its path, decompressed.
    fn take(&mut self, candidate: &Candidate) -> Result<PathBuf> {
        let path = &candidate.path;
        let unreadable = |source: io::Error| unreadable(path, source);
        let compressed = path.extension().is_some_and(|extension| extension == "bz2");
        let complete = self.complete.join(&candidate.name);
        if compressed {
            let mut input = MultiBzDecoder::new(File::open(path).map_err(unreadable)?);
            let mut output = File::create(&complete).map_err(MIOPEN.scratch(&complete))?;
            io::copy(&mut input, &mut output).map_err(unreadable)?;
        } else {
            let real = path.canonicalize().map_err(unreadable)?;
            symlink(real, &complete).map_err(MIOPEN.scratch(&complete))?;
        }
        if candidate.kind == Some(DatabaseKind::Find) {
            // The step `hit` looks single problems up; a library would read the whole file.
            self.find_db = Some(complete.clone());
        } else {
            let searching = self.directory.join(&candidate.name);
            symlink(&complete, &searching).map_err(MIOPEN.scratch(&searching))?;
        }
        let sha256 = sha256(path).map_err(unreadable)?;
        self.files.push(DatabaseFile { path: path.clone(), sha256 });
        Ok(complete)
    }

    /// Converts a performance database in SQLite to text.
    fn convert(&self, sqlite: &Path, name: &str) -> Result {
        let path = self.complete.join(name);
        let mut output = BufWriter::new(File::create(&path).map_err(MIOPEN.scratch(&path))?);
        let mut written = Ok(());
        sqlite_lines(sqlite, |line| {
            if written.is_ok() {
                written = writeln!(output, "{line}");
            }
        })
        .map_err(|source| unreadable(sqlite, source))?;
        written.and_then(|()| output.flush()).map_err(MIOPEN.scratch(&path))?;
        let searching = self.directory.join(name);
        symlink(&path, &searching).map_err(MIOPEN.scratch(&searching))
    }
}

/// Creates a directory with links to all files of another one, and to these.
pub(crate) fn link_together(from: Option<&Path>, files: &[PathBuf], to: &Path) -> Result {
    fs::create_dir_all(to).map_err(MIOPEN.scratch(to))?;
    let mut all: Vec<PathBuf> = files.to_vec();
    if let Some(from) = from {
        for entry in fs::read_dir(from).map_err(MIOPEN.scratch(from))? {
            all.push(entry.map_err(MIOPEN.scratch(from))?.path());
        }
    }
    for path in all {
        let real = path.canonicalize().map_err(|source| unreadable(&path, source))?;
        let link = to.join(path.file_name().unwrap_or_default());
        symlink(real, &link).map_err(MIOPEN.scratch(&link))?;
    }
    Ok(())
}

/// The error for a database that can't be read.
pub(crate) fn unreadable(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    let message = format!("failed to read the database `{}`", path.display());
    let hint = "check that it is undamaged, and that this user may read it";
    Error::internal(message, hint).caused_by(source)
}

/// The files of the directory for the target, by name.
fn candidates(from: &Path, target: &Target, models: bool) -> io::Result<Vec<Candidate>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let name = file_name.strip_suffix(".bz2").unwrap_or(file_name).to_owned();
        let kind = match DatabaseName::from_path(Path::new(&name)) {
            Some(database) if is_read(&database, target) => Some(database.kind),
            None if models && is_model(&name, target) => None,
            _ => continue,
        };
        candidates.push(Candidate { path, name, kind });
    }
    // A decompressed file comes before the compressed one.
    candidates.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    candidates.dedup_by(|later, first| later.name == first.name);
    Ok(candidates)
}

/// Whether a library on such a device may read the database.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetPerfDbPathFile` in execution_context.hpp:
/// the nearest count of compute units is looked for in SQLite only, which no
/// package's MIOpen reads.
fn is_read(database: &DatabaseName, target: &Target) -> bool {
    let same_device = database.target.id().db_id() == target.id().db_id();
    let for_hip = database.kind == DatabaseKind::Perf || database.suffix == "HIP";
    database.owner == DatabaseOwner::System
        && for_hip
        && same_device
        && database.target.compute_units() == target.compute_units()
}

/// Whether the file is a heuristic model for the device, or for all devices.
///
/// Source: ROCm/MIOpen 2d1fd997a, `src/conv/heuristics/ai_heuristics.cpp`.
fn is_model(name: &str, target: &Target) -> bool {
    let Some(stem) = name.strip_suffix(".model") else { return false };
    let device = stem.split(['_', '.']).next().unwrap_or_default();
    !device.starts_with("gfx") || device == target.id().processor()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Read as _;

    use super::*;

    fn names(directory: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_library_gets_the_databases_that_it_reads_for_the_device() {
        let from = tempfile::tempdir().unwrap();
        for name in [
            "gfx90a68.db.txt",
            "gfx90a6e.db.txt",
            "gfx90a68.HIP.fdb.txt",
            "gfx90a68.OpenCL.fdb.txt",
            "gfx90a.tn.model",
            "gfx908_ConvAsm1x1U_encoder.ktn.model",
            "gfx90a68.kdb",
            "notes.txt",
        ] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let to = tempfile::tempdir().unwrap();
        let target: Target = "gfx90a@104".parse().unwrap();
        let staged =
            StagedDatabases::lay_out(from.path(), &target, true, to.path()).unwrap().unwrap();
        assert_eq!(names(&staged.directory), set(&["gfx90a68.db.txt", "gfx90a.tn.model"]));
        assert_eq!(
            names(&staged.complete),
            set(&["gfx90a68.db.txt", "gfx90a.tn.model", "gfx90a68.HIP.fdb.txt"])
        );
        assert_eq!(staged.find_db, Some(staged.complete.join("gfx90a68.HIP.fdb.txt")));
        assert_eq!(staged.files.len(), 3);
        assert_eq!(staged.files[1].sha256, Digest::of(b"gfx90a68.HIP.fdb.txt"));
        let to = tempfile::tempdir().unwrap();
        let staged =
            StagedDatabases::lay_out(from.path(), &target, false, to.path()).unwrap().unwrap();
        assert_eq!(names(&staged.directory), set(&["gfx90a68.db.txt"]));
        let other: Target = "gfx1100@48".parse().unwrap();
        assert!(StagedDatabases::lay_out(from.path(), &other, true, to.path()).unwrap().is_none());
    }

    #[test]
    fn compressed_databases_are_decompressed() {
        let from = tempfile::tempdir().unwrap();
        let mut packed = Vec::new();
        bzip2::read::BzEncoder::new(&b"key=values\n"[..], bzip2::Compression::best())
            .read_to_end(&mut packed)
            .unwrap();
        fs::write(from.path().join("gfx906_60.HIP.fdb.txt.bz2"), packed).unwrap();
        let to = tempfile::tempdir().unwrap();
        let target: Target = "gfx906_60".parse().unwrap();
        let staged =
            StagedDatabases::lay_out(from.path(), &target, true, to.path()).unwrap().unwrap();
        assert_eq!(fs::read(staged.find_db.unwrap()).unwrap(), b"key=values\n");
    }
}
