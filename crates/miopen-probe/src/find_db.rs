//! A find database in which single problems are looked up.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// A text find database: the line `key=values` of each problem, by its key.
#[derive(Debug)]
pub(crate) struct FindDb(HashMap<Vec<u8>, Vec<u8>>);

impl FindDb {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::read(path)?))
    }

    fn of(text: &[u8]) -> Self {
        let mut lines = HashMap::new();
        for line in text.split(|&byte| byte == b'\n') {
            if let Some(end) = line.iter().position(|&byte| byte == b'=').filter(|end| *end > 0) {
                // As in MIOpen, the first one of its key counts.
                lines.entry(line[..end].to_vec()).or_insert_with(|| [line, b"\n"].concat());
            }
        }
        Self(lines)
    }

    /// The line of a problem, with its end of line.
    pub(crate) fn line(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_key() {
        let database = FindDb::of(b"a-1=one\nno key\n=empty\na=two\na=again\nlast=end");
        let line = |key: &str| database.line(key.as_bytes());
        assert_eq!(line("a-1"), Some(&b"a-1=one\n"[..]));
        assert_eq!(line("a"), Some(&b"a=two\n"[..]), "the first of two");
        assert_eq!(line("last"), Some(&b"last=end\n"[..]));
        assert_eq!(line("no key"), None);
        assert_eq!(line(""), None);
    }
}
