//! Sorted temporary files of keys, and their merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::Path;

use gfxpack_model::key_record::Counts;

use crate::table::Row;

/// The keys of one library share most of their text, so the lowest level is
/// enough.
const ZSTD_LEVEL: i32 = 1;
/// How many files to read side by side; each takes a descriptor and a window.
const MAX_RUNS: usize = 32;

/// Sorted keys in an unnamed temporary file.
#[derive(Debug)]
pub(crate) struct Run(File);

impl Run {
    /// Writes all rows of a merge.
    pub(crate) fn write(directory: &Path, mut merge: Merge) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        let mut out = zstd::stream::write::Encoder::new(BufWriter::new(&file), ZSTD_LEVEL)?;
        while let Some(row) = merge.next()? {
            put(&mut out, &row)?;
        }
        out.finish()?.flush()?;
        (&file).rewind()?;
        Ok(Self(file))
    }

    fn read(self) -> io::Result<RunReader> {
        Ok(RunReader(BufReader::new(zstd::stream::read::Decoder::new(self.0)?)))
    }
}

fn put(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let Counts { seen, hits, misses, saved, kdbs, ukdbs } = row.counts;
    let too_long = |_| io::Error::other("a key of 4 GiB");
    out.write_all(&u32::try_from(row.key.len()).map_err(too_long)?.to_le_bytes())?;
    out.write_all(&u32::try_from(row.targets.len()).map_err(too_long)?.to_le_bytes())?;
    out.write_all(&row.key)?;
    for number in [seen, hits, misses, saved, kdbs, ukdbs] {
        out.write_all(&number.to_le_bytes())?;
    }
    row.targets.iter().try_for_each(|target| out.write_all(&target.to_le_bytes()))
}

struct RunReader(BufReader<zstd::stream::read::Decoder<'static, BufReader<File>>>);

impl RunReader {
    fn row(&mut self) -> io::Result<Option<Row>> {
        let mut length = [0; 4];
        if self.0.read(&mut length[..1])? == 0 {
            return Ok(None);
        }
        self.0.read_exact(&mut length[1..])?;
        let mut key = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut length)?;
        let mut targets = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut key)?;
        let mut numbers = [0; 6];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            self.0.read_exact(&mut bytes)?;
            *number = u64::from_le_bytes(bytes);
        }
        for target in &mut targets {
            self.0.read_exact(&mut length)?;
            *target = u32::from_le_bytes(length);
        }
        let [seen, hits, misses, saved, kdbs, ukdbs] = numbers;
        let counts = Counts { seen, hits, misses, saved, kdbs, ukdbs };
        Ok(Some(Row { key: key.into(), counts, targets }))
    }
}

impl Iterator for RunReader {
    type Item = io::Result<Row>;

    fn next(&mut self) -> Option<io::Result<Row>> {
        self.row().transpose()
    }
}

/// Rows sorted by key.
type Source = Box<dyn Iterator<Item = io::Result<Row>> + Send>;

/// Merges the rows of sorted sources, without duplicate keys.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// The first row of each source, with the source's number; the lowest key comes first.
    heads: BinaryHeap<Reverse<(Row, usize)>>,
}

impl Merge {
    /// Merges rows in memory and in files.
    pub(crate) fn new(memory: Vec<Vec<Row>>, runs: Vec<Run>) -> io::Result<Self> {
        let rows = |rows: Vec<Row>| -> Source { Box::new(rows.into_iter().map(Ok)) };
        let mut sources: Vec<Source> = memory.into_iter().map(rows).collect();
        for run in runs {
            sources.push(Box::new(run.read()?));
        }
        let mut heads = BinaryHeap::new();
        for (number, source) in sources.iter_mut().enumerate() {
            if let Some(row) = source.next().transpose()? {
                heads.push(Reverse((row, number)));
            }
        }
        Ok(Self { sources, heads })
    }

    /// The next key, with its data from all sources.
    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        let Some(mut row) = self.pop()? else { return Ok(None) };
        while self.heads.peek().is_some_and(|Reverse((head, _))| head.key == row.key) {
            if let Some(same) = self.pop()? {
                row.add(&same);
            }
        }
        Ok(Some(row))
    }

    fn pop(&mut self) -> io::Result<Option<Row>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((_, source)) = *head;
        match self.sources[source].next().transpose()? {
            Some(next) => Ok(Some(std::mem::replace(&mut head.0.0, next))),
            None => Ok(Some(PeekMut::pop(head).0.0)),
        }
    }
}

/// Adds a run. Merges all into one if there are too many.
pub(crate) fn push(runs: &mut Vec<Run>, run: Run, directory: &Path) -> io::Result<()> {
    runs.push(run);
    if runs.len() > MAX_RUNS {
        let merge = Merge::new(Vec::new(), std::mem::take(runs))?;
        runs.push(Run::write(directory, merge)?);
    }
    Ok(())
}
