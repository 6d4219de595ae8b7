//! A find database in which single problems are looked up. The file is not read into memory; only
//! the positions of its lines are stored.

use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A text find database: a line `key=values` for each problem.
#[derive(Debug)]
pub(crate) struct FindDb {
    file: File,
    /// Hash of the key, and position of its line; sorted.
    lines: Vec<(u64, u64)>,
}

fn hash(key: &[u8]) -> u64 {
    // The hash is the same in every process, since its keys are constant.
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

impl FindDb {
    /// # Errors
    /// The system's error, if the file can't be read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
        let (mut lines, mut line, mut at) = (Vec::new(), Vec::new(), 0);
        loop {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line)?;
            if bytes == 0 {
                break;
            }
            if let Some(end) = line.iter().position(|&byte| byte == b'=').filter(|&end| end > 0) {
                lines.push((hash(&line[..end]), at));
            }
            at += bytes as u64;
        }
        // As in MIOpen, the first line of a key counts.
        lines.sort_unstable();
        Ok(Self { file: reader.into_inner(), lines })
    }

    /// The line of a problem, with its end of line.
    ///
    /// # Errors
    /// The system's error, if the file can't be read.
    pub(crate) fn line(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let wanted = hash(key);
        let first = self.lines.partition_point(|(hash, _)| *hash < wanted);
        for (hash, at) in &self.lines[first..] {
            if *hash != wanted {
                break;
            }
            let line = self.read_line(*at)?;
            if line.strip_prefix(key).is_some_and(|rest| rest.starts_with(b"=")) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    fn read_line(&self, mut at: u64) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut part = [0; 4096];
        loop {
            // Processes share the file's position, so it is not used.
            let bytes = self.file.read_at(&mut part, at)?;
            let end = part[..bytes].iter().position(|&byte| byte == b'\n');
            line.extend_from_slice(&part[..end.unwrap_or(bytes)]);
            if end.is_some() || bytes == 0 {
                line.push(b'\n');
                return Ok(line);
            }
            at += bytes as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_key() {
        let path = std::env::temp_dir().join(format!("gfxpack-find-db-{}", std::process::id()));
        let long = format!("long={}\n", "x".repeat(10_000));
        std::fs::write(&path, format!("a-1=one\nno key\n=empty\n{long}a=two\na=again\nlast=end"))
            .unwrap();
        let database = FindDb::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let line = |key: &str| {
            database.line(key.as_bytes()).unwrap().map(|line| String::from_utf8(line).unwrap())
        };
        assert_eq!(line("a-1").as_deref(), Some("a-1=one\n"));
        assert_eq!(line("a").as_deref(), Some("a=two\n"), "the first of two");
        assert_eq!(line("long"), Some(long));
        assert_eq!(line("last").as_deref(), Some("last=end\n"));
        assert_eq!(line("no key"), None);
        assert_eq!(line(""), None);
    }
}
