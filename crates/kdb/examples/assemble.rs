//! Assembles a kdb of many rows from the objects of another kdb, for
//! `cargo xtask bench kdb`. Prints seconds, bytes and peak memory as JSON.
//!
//! `assemble KDB ROWS OUT bz2|raw|codec|disk`: `codec` only compresses, on one
//! core; `disk` only writes the objects to a file, one after the other.

use std::convert::Infallible;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use gfxpack_kdb::{Blob, ReadError, Reader, Row, WriteOptions};
use gfxpack_model::KernelKey;

/// Objects of a real kdb, repeated; the last bytes make each one different.
struct Rows {
    keys: Vec<KernelKey>,
    objects: Vec<Vec<u8>>,
}

impl Rows {
    fn read(kdb: &Path, count: usize) -> Result<Self, Box<dyn Error>> {
        let reader = Reader::open(kdb)?;
        let mut known = Vec::new();
        reader.for_each_row(|entry| {
            known.push(entry.key);
            Ok::<(), ReadError>(())
        })?;
        known.sort();
        let mut objects = Vec::new();
        for key in &known {
            objects.push(reader.get(key)?.ok_or("a listed key is not found")?);
        }
        let key = |row: usize| KernelKey {
            kernel_name: format!("row{row:06}.cl.o"),
            kernel_args: known[row % known.len()].kernel_args.clone(),
        };
        Ok(Self { keys: (0..count).map(key).collect(), objects })
    }

    fn object(&self, row: usize) -> Vec<u8> {
        let mut bytes = self.objects[row % self.objects.len()].clone();
        bytes.extend((row as u64).to_le_bytes());
        bytes
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kdb, count, out, mode] = &args[..] else {
        return Err("usage: assemble KDB ROWS OUT bz2|raw|codec|disk".into());
    };
    let rows = Rows::read(Path::new(kdb), count.parse()?)?;
    let started = Instant::now();
    let bytes = match mode.as_str() {
        "bz2" => assemble(&rows, Path::new(out), Blob::Smaller)?,
        "raw" => assemble(&rows, Path::new(out), Blob::Raw)?,
        "codec" => {
            let mut bytes = 0;
            for row in 0..rows.keys.len() {
                let object = rows.object(row);
                let mut encoder =
                    bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(&object)?;
                bytes += encoder.finish()?.len() as u64;
            }
            bytes
        }
        "disk" => {
            let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
            let mut bytes = 0;
            for row in 0..rows.keys.len() {
                let object = rows.object(row);
                file.write_all(&object)?;
                bytes += object.len() as u64;
            }
            file.into_inner()?.sync_all()?;
            bytes
        }
        other => return Err(format!("no such mode: {other}").into()),
    };
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB")).unwrap_or("0");
    let line = format!("{{\"seconds\":{seconds},\"bytes\":{bytes},\"peak_kib\":{peak}}}\n");
    std::io::stdout().write_all(line.as_bytes())?;
    Ok(())
}

fn assemble(rows: &Rows, out: &Path, blob: Blob) -> Result<u64, Box<dyn Error>> {
    let size = |row: usize| rows.objects[row % rows.objects.len()].len() as u64 + 8;
    let list: Vec<Row<'_>> =
        rows.keys.iter().enumerate().map(|(row, key)| Row { key, size: size(row) }).collect();
    let mut options = WriteOptions::default();
    options.blob = blob;
    let written =
        gfxpack_kdb::write(out, &list, &options, |row| Ok::<_, Infallible>(rows.object(row)))?;
    Ok(written.file_bytes)
}
