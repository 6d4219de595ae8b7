//! Finds the lines with a mark in a text that is read in pieces.

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::line_fault::MAX_LINE_BYTES;

/// Finds the lines with a mark in a text that is read in pieces of any size.
/// Memory is bounded by the longest line, of which [`MAX_LINE_BYTES`] are kept.
#[derive(Debug)]
pub struct Lines {
    mark: &'static [u8],
    /// Number of complete lines so far.
    count: u64,
    /// The beginning of an incomplete line.
    pub(super) carry: Vec<u8>,
    /// Whether that line was longer than the kept part.
    cut: bool,
}

impl Lines {
    /// All lines.
    #[must_use]
    pub fn all() -> Self {
        Self::with(b"")
    }

    /// Lines that contain these bytes.
    #[must_use]
    pub fn with(mark: &'static [u8]) -> Self {
        Self { mark, count: 0, carry: Vec::new(), cut: false }
    }

    /// Reads the next piece. Calls `each` for every line with the mark that
    /// ends in it: with its number, its text without newline, and whether the
    /// text was cut at [`MAX_LINE_BYTES`].
    pub fn push(&mut self, piece: &[u8], each: &mut impl FnMut(u64, &[u8], bool)) {
        let mut rest = piece;
        if !self.carry.is_empty() || self.cut {
            let end = memchr(b'\n', rest);
            self.carry(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            self.end_carried(each);
            rest = &rest[end + 1..];
        }
        let whole = memrchr(b'\n', rest).map_or(0, |end| end + 1);
        let (lines, tail) = rest.split_at(whole);
        self.whole_lines(lines, each);
        self.carry(tail);
    }

    /// Calls `each` for the last line, which may lack its newline. Returns the
    /// number of lines.
    pub fn finish(mut self, each: &mut impl FnMut(u64, &[u8], bool)) -> u64 {
        if !self.carry.is_empty() {
            self.end_carried(each);
        }
        self.count
    }

    fn carry(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES - self.carry.len();
        self.carry.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.cut |= bytes.len() > room;
    }

    fn end_carried(&mut self, each: &mut impl FnMut(u64, &[u8], bool)) {
        self.count += 1;
        if memmem::find(&self.carry, self.mark).is_some() {
            each(self.count, &self.carry, self.cut);
        }
        self.carry.clear();
        self.cut = false;
    }

    fn whole_lines(&mut self, lines: &[u8], each: &mut impl FnMut(u64, &[u8], bool)) {
        let newlines = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
        let finder = memmem::Finder::new(self.mark);
        let mut rest = lines;
        while let Some(mark) = finder.find(rest).filter(|_| !rest.is_empty()) {
            let start = memrchr(b'\n', &rest[..mark]).map_or(0, |end| end + 1);
            let end = mark + memchr(b'\n', &rest[mark..]).expect("lines that end");
            self.count += newlines(&rest[..start]) + 1;
            let line = &rest[start..end];
            let kept = &line[..line.len().min(MAX_LINE_BYTES)];
            if mark + self.mark.len() - start <= kept.len() {
                each(self.count, kept, kept.len() < line.len());
            }
            rest = &rest[end + 1..];
        }
        self.count += newlines(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_found_whatever_the_pieces() {
        let text = b"a\n\n  b \r\nc";
        for size in 1..=text.len() {
            let mut given: Vec<(u64, Vec<u8>)> = Vec::new();
            let mut each = |number: u64, line: &[u8], cut: bool| {
                assert!(!cut);
                given.push((number, line.to_vec()));
            };
            let mut lines = Lines::all();
            text.chunks(size).for_each(|piece| lines.push(piece, &mut each));
            assert_eq!(lines.finish(&mut each), 4);
            // Empty lines may be left out.
            given.retain(|(_, line)| !line.is_empty());
            let expected = [(1, b"a".to_vec()), (3, b"  b \r".to_vec()), (4, b"c".to_vec())];
            assert_eq!(given, expected, "pieces of {size}");
        }
    }
}
