//! kdbs, which MIOpen and gfxpack's runtime read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{
    Blob, Conflict, CopyOptions, ReadError, Reader, Row, VerifyOptions, WriteOptions,
};
use gfxpack_model::Target;

use super::{FormatOperations, Rows, Verified};
use crate::error::Result;

/// The format of kdbs.
pub(super) struct Kdb;

impl FormatOperations for Kdb {
    fn write(&self, path: &Path, rows: &Rows<'_>) -> Result<u64> {
        let mut order: Vec<usize> = (0..rows.keys.len()).collect();
        order.sort_by_key(|row| rows.keys[*row].0);
        let sized = order.iter().map(|&row| Row { key: rows.keys[row].0, size: rows.keys[row].1 });
        let sized: Vec<Row<'_>> = sized.collect();
        let object = |position: usize| (rows.object)(order[position]);
        let mut options = WriteOptions::default();
        options.progress = Some(rows.progress);
        options.blob = rows.blob;
        options.miopen_version = rows.miopen_version;
        Ok(gfxpack_kdb::write(path, &sized, &options, object)?.rows)
    }

    fn merge(&self, files: &[PathBuf], out: &Path) -> Result<()> {
        gfxpack_kdb::merge(files, out, Conflict::Error, &CopyOptions::default())?;
        Ok(())
    }

    fn verify(&self, path: &Path, target: Option<&Target>) -> Result<Verified> {
        let report = gfxpack_kdb::verify(path, target, &VerifyOptions::default())?;
        Ok(Verified {
            rows: report.rows,
            findings: report.findings.iter().map(ToString::to_string).collect(),
            total_findings: report.total_findings(),
        })
    }

    fn source_names(&self, path: &Path) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        Reader::open(path)?.for_each_key(|key| {
            names.extend(key.source_name().map(str::to_owned));
            Ok::<(), ReadError>(())
        })?;
        Ok(names)
    }

    fn identity(&self, blob: Blob) -> String {
        format!("{blob:?}")
    }
}
