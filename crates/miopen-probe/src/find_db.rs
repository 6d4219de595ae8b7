//! A find database in which single problems are looked up.

use std::fs;
use std::io;
use std::path::Path;

/// A text find database: a line `key=values` for each problem.
#[derive(Debug)]
pub(crate) struct FindDb {
    text: Vec<u8>,
    /// Where lines begin, by their keys. Of equal keys, the first is the file's first.
    lines: Vec<usize>,
}

/// The bytes before the first `end`.
fn until(end: u8, text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == end).next().unwrap_or_default()
}

impl FindDb {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(fs::read(path)?))
    }

    fn of(text: Vec<u8>) -> Self {
        let ends = (0..text.len()).filter(|&at| text[at] == b'\n').map(|end| end + 1);
        let mut lines: Vec<usize> = [0].into_iter().chain(ends).collect();
        lines.sort_by_key(|&at| until(b'=', &text[at..]));
        Self { text, lines }
    }

    /// The line of a problem, with its end of line: as in MIOpen, the first one of its key.
    pub(crate) fn line(&self, key: &[u8]) -> Option<Vec<u8>> {
        let own = |at: usize| until(b'=', &self.text[at..]);
        let first = self.lines.partition_point(|&at| own(at) < key);
        let at = self.lines.get(first).copied().filter(|&at| own(at) == key && !key.is_empty())?;
        Some([until(b'\n', &self.text[at..]), b"\n"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_key() {
        let database = FindDb::of(b"a-1=one\nno key\n=empty\na=two\na=again\nlast=end".to_vec());
        let line = |key: &str| database.line(key.as_bytes());
        assert_eq!(line("a-1").as_deref(), Some(&b"a-1=one\n"[..]));
        assert_eq!(line("a").as_deref(), Some(&b"a=two\n"[..]), "the first of two");
        assert_eq!(line("last").as_deref(), Some(&b"last=end\n"[..]));
        assert_eq!(line("no key"), None);
        assert_eq!(line(""), None);
    }
}
