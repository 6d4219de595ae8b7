//! Writes what the fuzzing of kdbs starts from: files that are whole, and
//! files with one thing wrong that no random change would come upon.
//!
//! `cargo run --example seeds -- DIRECTORY`

use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Blob, Row, WriteOptions, write};
use gfxpack_model::KernelKey;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name a directory")?;
    fs::create_dir_all(&dir)?;
    let small = |index: usize| vec![index as u8; 40];
    // Longer than a page, so that the blob is spread over several.
    let large = |index: usize| (0..6000).map(|i| (i * i * (index + 3) >> 3) as u8).collect();
    kdb(&dir.join("empty.kdb"), 0, Blob::Smaller, small)?;
    kdb(&dir.join("raw.kdb"), 2, Blob::Raw, small)?;
    kdb(&dir.join("bz2.kdb"), 3, Blob::Smaller, large)?;
    kdb(&dir.join("many.kdb"), 60, Blob::Smaller, small)?;
    let raw = fs::read(dir.join("raw.kdb"))?;
    fs::write(dir.join("half.kdb"), &raw[..raw.len() / 2])?;
    fs::write(dir.join("small.kdb"), "version https://git-lfs.github.com/spec/v1\n")?;
    let mut wal = raw;
    // SQLite's file format: 2 in both versions of the header is WAL.
    wal[18..20].fill(2);
    fs::write(dir.join("wal.kdb"), wal)?;
    Ok(())
}

fn kdb(
    path: &Path,
    rows: usize,
    blob: Blob,
    object: impl Fn(usize) -> Vec<u8> + Sync,
) -> Result<(), Box<dyn Error>> {
    let key = |index| KernelKey::for_source(&format!("k{index:02}.cl"), " -DX=1", "gfx906");
    let keys: Vec<KernelKey> = (0..rows).map(key).collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 6000 }).collect();
    let mut options = WriteOptions::default();
    options.blob = blob;
    write(path, &rows, &options, |index| Ok::<_, Infallible>(object(index)))?;
    Ok(())
}
