//! Checks before kdbs are copied, merged or repaired, and reports what a repair
//! could not save. `gfxpack-kdb` does the copying.

use std::path::{Path, PathBuf};

use gfxpack_kdb::{Conflict, CopyOptions, Layout, Lost, Merged, Reader, Repaired, Written};
use gfxpack_process::open_many;

use crate::destination;
use crate::error::{self, Error, ErrorKind, Result};
use crate::text::{counted, if_any};

/// Writes the union of kdbs.
///
/// # Errors
/// If the options contradict each other, or a file can't be read or written.
pub fn merge(
    files: &[PathBuf],
    out: &Path,
    conflict: Conflict,
    options: &CopyOptions<'_>,
) -> Result<Merged> {
    check_layout(out, options.layout)?;
    let out = destination::database(out)?;
    open_many();
    Ok(gfxpack_kdb::merge(files, &out, conflict, options)?)
}

/// Rewrites a kdb.
///
/// # Errors
/// Like [`merge`].
pub fn convert(file: &Path, out: &Path, options: &CopyOptions<'_>) -> Result<Written> {
    let layout = options.layout.or_else(|| Some(Reader::open(file).ok()?.layout()));
    check_layout(out, layout)?;
    let out = destination::database(out)?;
    Ok(gfxpack_kdb::convert(file, &out, options)?)
}

/// A repair that is about to be made.
#[derive(Debug)]
pub struct Repair<'a> {
    file: &'a Path,
    out: PathBuf,
    /// A write-ahead log beside the file. It may have rows that the file lacks,
    /// and is not read.
    pub unread_log: Option<PathBuf>,
}

impl<'a> Repair<'a> {
    /// Checks that `file` can be repaired into `out`.
    ///
    /// # Errors
    /// A usage error if both are the same file, or `out` may not be a kdb.
    pub fn prepare(file: &'a Path, out: &Path, options: &CopyOptions<'_>) -> Result<Self> {
        check_layout(out, options.layout)?;
        let real = destination::database(out)?;
        if is_same(file, out) {
            return Err(error::usage(
                format!("failed to repair `{}` in place", file.display()),
                "write to another file: what can't be saved now may be saved in another way",
            ));
        }
        Ok(Self { file, out: real, unread_log: unread_log(file) })
    }

    /// Saves what is intact, and passes what is not to `lost`.
    ///
    /// # Errors
    /// If nothing of the file can be read, or `out` can't be written.
    pub fn run(&self, options: &CopyOptions<'_>, lost: impl FnMut(&Lost)) -> Result<Repaired> {
        Ok(gfxpack_kdb::repair(self.file, &self.out, options, lost)?)
    }

    /// Returns an error if something could not be saved.
    ///
    /// # Errors
    /// An error of the kind `ErrorKind::Unsound`.
    pub fn outcome(&self, repaired: &Repaired) -> Result<()> {
        let (saved, lost, pages) = (repaired.written.rows, repaired.lost, repaired.missing_pages);
        let loss = |what: String, hint| {
            let message = format!("failed to save {what} of `{}`", self.file.display());
            Err(Error::new(ErrorKind::Unsound, message, hint))
        };
        if pages > 0 {
            let known = if_any(lost, |lost| format!("{} and ", counted(lost, "kernel")));
            let what = format!("{known}whatever was in the {} cut off", counted(pages, "page"));
            return loss(what, "copy the file again, or install its package; the rest is written");
        }
        if lost > 0 {
            let what = format!("{lost} of {}", counted(saved + lost, "kernel"));
            return loss(what, "what could be saved is written; build the others again");
        }
        if let Some(log) = &self.unread_log {
            let hint = "copy both files, let SQLite bring them together with `sqlite3 COPY \
                        'pragma wal_checkpoint(truncate)'`, and repair the copy";
            return loss(format!("what only `{}` has", log.display()), hint);
        }
        if saved == 0 && !repaired.blank {
            let hint =
                "nothing in it has the shape of MIOpen's rows: check that it is a kernel database";
            return loss("a single kernel".to_owned(), hint);
        }
        Ok(())
    }
}

/// The write-ahead log of a file, if it has pages.
fn unread_log(file: &Path) -> Option<PathBuf> {
    /// Bytes before the first page.
    ///
    /// Source: SQLite, "Database File Format", section 4.1.
    const HEADER_BYTES: u64 = 32;
    let mut log = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()).into_os_string();
    log.push("-wal");
    let pages = |metadata: std::fs::Metadata| metadata.len() > HEADER_BYTES;
    std::fs::metadata(&log).is_ok_and(pages).then(|| log.into())
}

/// Rejects a layout in which MIOpen can't write to a user's kdb: it can't insert
/// through a view.
fn check_layout(out: &Path, layout: Option<Layout>) -> Result<()> {
    let is_users = out.extension().is_some_and(|extension| extension == "ukdb");
    if is_users && layout == Some(Layout::Dense) {
        return Err(error::usage(
            format!("failed to lay out `{}` densely: MIOpen writes to a user's kdb", out.display()),
            "the dense layout is for installed files: name it .kdb, or give --layout miopen",
        ));
    }
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path| std::fs::canonicalize(path).ok();
    real(a).is_some_and(|a| Some(a) == real(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(repair: &Repair<'_>, repaired: &Repaired, expected: Option<&str>) {
        let expected = expected.map(|what| format!("failed to save {what} of `gfx906_60.kdb`"));
        assert_eq!(repair.outcome(repaired).err().map(|error| error.to_string()), expected);
    }

    #[test]
    fn a_repair_reports_its_worst_loss() {
        let file = Path::new("gfx906_60.kdb");
        let log = Some(PathBuf::from("gfx906_60.kdb-wal"));
        let repair = |unread_log| Repair { file, out: PathBuf::from("out.kdb"), unread_log };
        let mut repaired = Repaired::default();
        check(&repair(None), &repaired, Some("a single kernel"));
        check(&repair(log.clone()), &repaired, Some("what only `gfx906_60.kdb-wal` has"));
        repaired.written.rows = 2;
        check(&repair(None), &repaired, None);
        repaired.lost = 1;
        check(&repair(log), &repaired, Some("1 of 3 kernels"));
        repaired.missing_pages = 4;
        let cut_off = "1 kernel and whatever was in the 4 pages cut off";
        check(&repair(None), &repaired, Some(cut_off));
    }

    #[test]
    fn a_file_is_not_repaired_into_itself() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gfx906_60.kdb");
        std::fs::write(&file, "").unwrap();
        std::fs::write(dir.path().join("gfx906_60.kdb-wal"), [0; 33]).unwrap();
        let options = CopyOptions::default();
        assert!(Repair::prepare(&file, &file, &options).is_err());
        let repair = Repair::prepare(&file, &dir.path().join("new.kdb"), &options).unwrap();
        assert!(repair.unread_log.is_some());
    }

    #[test]
    fn a_users_kdb_cannot_have_the_dense_layout() {
        let layout = Some(Layout::Dense);
        assert!(check_layout(Path::new("gfx906_60.ukdb"), layout).is_err());
        assert!(check_layout(Path::new("gfx906_60.kdb"), layout).is_ok());
        assert!(check_layout(Path::new("gfx906_60.ukdb"), None).is_ok());
    }
}
