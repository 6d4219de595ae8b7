//! Takes the lines with a mark from a text that is read in pieces, whatever was put around them.

use memchr::{memchr_iter, memchr2, memmem, memrchr2};

use super::text::{Text, begin, unwrapped, without_written_escapes};
use super::{BEGIN, MAX_LINE_BYTES};

/// The lines with a mark of a text that is read in pieces of any size: in UTF-8 or UTF-16, with any
/// line ends, coloured, in JSON. Memory is bounded by the longest line, of which
/// [`MAX_LINE_BYTES`] are kept. All readers of logs and lists take their lines from here.
#[derive(Debug, Default)]
pub struct Lines {
    mark: &'static [u8],
    text: Text,
    /// Number of newlines so far.
    count: u64,
    /// The beginning of an incomplete line.
    carry: Vec<u8>,
    /// Whether that line was longer than the kept part.
    cut: bool,
    /// Whether there is text after the last newline.
    is_open: bool,
    /// Whether the text begins as JSON does, which may hide the mark.
    is_json: bool,
    seen: Seen,
}

/// What a text has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Seen {
    /// Nothing but blanks and NUL bytes.
    #[default]
    Nothing,
    /// Text.
    Text,
    /// Messages of MIOpen.
    Messages,
}

impl Lines {
    /// All lines but empty ones.
    pub fn all() -> Self {
        Self::default()
    }

    /// Lines that contain these bytes.
    pub fn with(mark: &'static [u8]) -> Self {
        Self { mark, ..Self::default() }
    }

    /// What the text so far has.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// Reads the next piece. Calls `each` for every line with the mark that
    /// ends in it: with its number, its text without line end, and whether the
    /// text was cut at [`MAX_LINE_BYTES`]. A carriage return ends a line too,
    /// but only newlines are counted.
    pub fn push(&mut self, piece: &[u8], each: &mut impl FnMut(u64, &[u8], bool)) {
        let mut text = std::mem::take(&mut self.text);
        self.clean_piece(&text.clean(piece), each);
        self.text = text;
    }

    fn clean_piece(&mut self, piece: &[u8], each: &mut impl FnMut(u64, &[u8], bool)) {
        let Some(last) = piece.last() else { return };
        self.is_open = *last != b'\n';
        let is_blank = |b: &u8| b.is_ascii_whitespace() || b"\0\xef\xbb\xbf".contains(b);
        if self.seen == Seen::Nothing
            && let Some(first) = piece.iter().find(|b| !is_blank(b))
        {
            self.is_json = *first == b'{';
            self.seen = Seen::Text;
        }
        if self.seen == Seen::Text && memmem::find(piece, BEGIN).is_some() {
            self.seen = Seen::Messages;
        }
        let mut rest = piece;
        if !self.carry.is_empty() || self.cut {
            let end = memchr2(b'\n', b'\r', rest);
            self.carry(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            self.end_carried(each);
            self.count += u64::from(rest[end] == b'\n');
            rest = &rest[end + 1..];
        }
        let whole = memrchr2(b'\n', b'\r', rest).map_or(0, |end| end + 1);
        let (lines, tail) = rest.split_at(whole);
        self.whole_lines(lines, each);
        self.carry(tail);
    }

    /// Calls `each` for the last line, which may lack its newline. Returns the
    /// number of lines.
    pub fn finish(mut self, each: &mut impl FnMut(u64, &[u8], bool)) -> u64 {
        let held = self.text.finish();
        self.clean_piece(&held, each);
        self.end_carried(each);
        self.count + u64::from(self.is_open)
    }

    fn carry(&mut self, bytes: &[u8]) {
        let bytes = if self.carry.is_empty() { begin(bytes) } else { bytes };
        let room = MAX_LINE_BYTES - self.carry.len();
        self.carry.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.cut |= bytes.len() > room;
    }

    /// The mark in lines that may be JSON.
    fn raw_mark(&self) -> &'static [u8] {
        if self.is_json { b"" } else { self.mark }
    }

    fn end_carried(&mut self, each: &mut impl FnMut(u64, &[u8], bool)) {
        if memmem::find(&self.carry, self.raw_mark()).is_some() {
            give(self.mark, self.count + 1, &self.carry, self.cut, each);
        }
        self.carry.clear();
        self.cut = false;
    }

    fn whole_lines(&mut self, lines: &[u8], each: &mut impl FnMut(u64, &[u8], bool)) {
        let newlines = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
        let finder = memmem::Finder::new(self.raw_mark());
        let mut rest = lines;
        while let Some(at) = finder.find(rest).filter(|_| !rest.is_empty()) {
            let start = memrchr2(b'\n', b'\r', &rest[..at]).map_or(0, |end| end + 1);
            let end = at + memchr2(b'\n', b'\r', &rest[at..]).expect("lines that end");
            self.count += newlines(&rest[..start]);
            give(self.mark, self.count + 1, &rest[start..end], false, each);
            self.count += u64::from(rest[end] == b'\n');
            rest = &rest[end + 1..];
        }
        self.count += newlines(rest);
    }
}

/// Calls `each` for a line, if it has the mark, or for the lines that it holds in JSON or in quotes.
fn give(mark: &[u8], number: u64, line: &[u8], cut: bool, each: &mut impl FnMut(u64, &[u8], bool)) {
    let line = begin(line);
    let mut kept = &line[..line.len().min(MAX_LINE_BYTES)];
    let cut = cut || kept.len() < line.len();
    while let Some((text, after)) = unwrapped(kept, mark) {
        // Each is shorter than this line, and nested ones have twice as many backslashes.
        text.split(|byte| b"\r\n".contains(byte))
            .for_each(|part| give(mark, number, part, cut, each));
        kept = after;
    }
    if !kept.is_empty() && memmem::find(kept, mark).is_some() {
        each(number, &without_written_escapes(kept), cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], mark: &'static [u8], size: usize) -> (Vec<(u64, String)>, u64) {
        let mut given = Vec::new();
        let mut each = |number: u64, line: &[u8], cut: bool| {
            assert!(!cut);
            given.push((number, String::from_utf8_lossy(line).into_owned()));
        };
        let mut lines = Lines::with(mark);
        text.chunks(size).for_each(|piece| lines.push(piece, &mut each));
        let count = lines.finish(&mut each);
        (given, count)
    }

    #[track_caller]
    fn check(text: &[u8], mark: &'static [u8], expected: &[(u64, &str)]) {
        for size in 1..=text.len() {
            let given = lines(text, mark, size).0;
            let given: Vec<_> = given.iter().map(|(number, line)| (*number, &**line)).collect();
            assert_eq!(given, expected, "{} in pieces of {size}", text.escape_ascii());
        }
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn all_lines_are_found_whatever_the_pieces() {
        let text = b"a\n\n  b \r\nc";
        check(text, b"", &[(1, "a"), (3, "  b "), (4, "c")]);
        assert_eq!(lines(text, b"", 2).1, 4);
        assert_eq!(
            (lines(b"", b"", 1).1, lines(b"\n", b"", 1).1, lines(b"a", b"", 1).1),
            (0, 1, 1)
        );
        // Only newlines are counted: progress bars are in one line.
        check(b" 10%\r 20%\rM x\r\r\nM y\rz\n", b"M", &[(1, "M x"), (2, "M y")]);
    }

    #[test]
    fn encodings_are_removed() {
        let text = "a \u{4e0a}\u{1f600}\r\nb";
        let expected = [(1, "a \u{4e0a}\u{1f600}"), (2, "b")];
        for mark in ["\u{feff}", ""] {
            let marked = format!("{mark}{text}");
            check(marked.as_bytes(), b"", &expected);
            check(&utf16(&marked, u16::to_le_bytes), b"", &expected);
            check(&utf16(&marked, u16::to_be_bytes), b"", &expected);
        }
        // A log that was emptied while a program wrote it, and files that were joined.
        check(b"\0\0\0a\n\0\0b\n\xef\xbb\xbfc", b"", &[(1, "a"), (2, "b"), (3, "c")]);
        check(b"a\0\0b\xff", b"", &[(1, "a\0\0b\u{fffd}")]);
    }

    #[test]
    fn colours_and_links_are_removed() {
        check(b"\x1b[1;33mM\x1b[0m x\x1b[K\n", b"M x", &[(1, "M x")]);
        check(
            b"\x1b]0;title\x07\x1b(BM \x1b]8;;http://a/\x1b\\x\x1b]8;;\x1b\\",
            b"M",
            &[(1, "M x")],
        );
        check(b"\x1b]0;no end\nM\x1b[31\nM", b"M", &[(2, "M"), (3, "M")]);
        for written in ["#033[33mM#033[0m", "^[[33mM^[[0m", "\\x1b[1mM\\x1b[K", "\\e[mM"] {
            check(written.as_bytes(), b"M", &[(1, "M")]);
        }
        check(b"[33m M [0] ^[x", b"M", &[(1, "[33m M [0] ^[x")]);
    }

    #[test]
    fn json_and_quotes_are_removed() {
        let text = r#"M "x"; y"#;
        for (line, expected) in [
            (r#"{"log":"M \"x\"; y\n","stream":"stderr","time":"2026"}"#, text),
            (r#"{"time": "2026", "log": "\u001b[33mM \"x\"; y\u001b[0m"}"#, text),
            (r#"{"MESSAGE":[27,91,51,51,109,77,32,120],"_PID":"7"}"#, "M x"),
            (r#"{"jsonPayload":{"message":"M \"x\"; y"}}"#, text),
            (r#"{"log":"{\"msg\":\"M \\\"x\\\"; y\"}\n"}"#, text),
            (r#"2026 {"unknown":{"deep":["M \"x\"; y"]}}"#, text),
            (r#"time=2026 level=info msg="M \"x\"; y""#, text),
            (r#"["M \"x\"; y", "z"]"#, text),
            (r#"2026,"M ""x""; y",7"#, text),
            // Cut by a log service.
            (r#"{"log":"M \"x\"; y"#, text),
            (r#"a "b" M "x"; y"#, r#"a "b" M "x"; y"#),
            (r#"7" M "x"; y"#, r#"7" M "x"; y"#),
        ] {
            check(line.as_bytes(), b"M", &[(1, expected)]);
        }
        check(br#"{"log":"a\r\nM b\nM c\n"}"#, b"M", &[(1, "M b"), (1, "M c")]);
        check(b"{\"log\":\"a\"}\n{\"x\":1}", b"", &[(1, "a"), (2, "{\"x\":1}")]);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut lines = Lines::with(b"M");
        let mut cut = Vec::new();
        let mut each = |number: u64, line: &[u8], is_cut: bool| {
            cut.push((number, line.len(), is_cut));
        };
        lines.push(&[0; 99], &mut each);
        for _ in 0..64 {
            lines.push(&[b'M'; 1 << 16], &mut each);
            assert!(lines.carry.len() <= MAX_LINE_BYTES);
        }
        lines.push(b"\nM\n", &mut each);
        assert_eq!(cut, [(1, MAX_LINE_BYTES, true), (2, 1, false)]);
    }
}
