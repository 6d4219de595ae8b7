//! Removes from a text what programs between its writer and its reader added: encodings, colours,
//! JSON, quotes.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memmem};
use serde_json::Value;

/// The names under which programs keep a line in JSON, or an object with it: docker, journald,
/// loggers, log services.
const FIELDS: &str =
    "log message MESSAGE msg text line event body textPayload jsonPayload @message";
/// The beginning of a line of a harvest, which is no text in JSON.
const KEY: &[u8] = b"{\"kernel_name\"";
/// How programs write the character ESC, up to the bracket after it.
const WRITTEN_ESCAPES: [&[u8]; 6] = [b"#033", b"^[", b"\\x1b", b"\\033", b"\\e", b"\\u001b"];
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A text that is read in pieces. It becomes UTF-8 if it is UTF-16, and loses the escape sequences
/// of terminals.
#[derive(Debug, Default)]
pub(crate) struct Text {
    encoding: Encoding,
    /// Bytes that are understood together with the next ones.
    held: Vec<u8>,
    escape: Escape,
}

/// The encoding, as the first bytes show it.
#[derive(Debug, Default, Clone, Copy)]
enum Encoding {
    #[default]
    Unknown,
    Utf8,
    /// With what makes a unit of two bytes.
    Utf16(fn([u8; 2]) -> u16),
}

/// Where in an escape sequence a text is.
///
/// Source: ECMA-48, 5.4 and 5.6.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// `ESC (`: sets of characters.
    Intermediate,
    /// `ESC [`: colours, movements.
    Control,
    /// `ESC ]`: titles, links.
    String,
}

impl Text {
    /// The text of the next piece.
    pub(crate) fn clean<'p>(&mut self, piece: &'p [u8]) -> Cow<'p, [u8]> {
        let text = self.decode(piece);
        self.without_escapes(text)
    }

    /// What was held back, at the end of the text.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if matches!(self.encoding, Encoding::Unknown) {
            std::mem::take(&mut self.held)
        } else {
            Vec::new()
        }
    }

    fn decode<'p>(&mut self, piece: &'p [u8]) -> Cow<'p, [u8]> {
        if matches!(self.encoding, Encoding::Utf8) {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        let unit = match (self.encoding, &self.held[..]) {
            (Encoding::Utf16(unit), _) => unit,
            // A byte-order mark, or two characters of ASCII.
            (_, [0xff, 0xfe, ..] | [1..=0x7f, 0, 1..=0x7f, 0, ..]) => u16::from_le_bytes,
            (_, [0xfe, 0xff, ..] | [0, 1..=0x7f, 0, 1..=0x7f, ..]) => u16::from_be_bytes,
            (_, held) if held.len() < 4 => return Cow::Borrowed(&[]),
            _ => {
                self.encoding = Encoding::Utf8;
                return Cow::Owned(std::mem::take(&mut self.held));
            }
        };
        self.encoding = Encoding::Utf16(unit);
        let pairs = self.held.chunks_exact(2);
        let mut units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
        // The first half of a character.
        units.pop_if(|last| (0xd800..0xdc00).contains(last));
        self.held.drain(..2 * units.len());
        Cow::Owned(String::from_utf16_lossy(&units).into_bytes())
    }

    fn without_escapes<'p>(&mut self, text: Cow<'p, [u8]>) -> Cow<'p, [u8]> {
        if self.escape == Escape::None && memchr(0x1b, &text).is_none() {
            return text;
        }
        let mut kept = Vec::with_capacity(text.len());
        for byte in text.iter() {
            let is_end = b"\r\n".contains(byte);
            let is_text = match self.escape {
                Escape::None => *byte != 0x1b,
                Escape::Begun => byte.is_ascii_alphabetic() && !b"PX".contains(byte),
                _ => false,
            };
            if is_end || is_text {
                kept.push(*byte);
            }
            self.escape = match (self.escape, *byte) {
                _ if is_end => Escape::None,
                (_, 0x1b) => Escape::Begun,
                (Escape::Begun, b'[') => Escape::Control,
                (Escape::Begun, b']' | b'P' | b'X' | b'^' | b'_') => Escape::String,
                (Escape::Begun, 0x20..=0x2f) => Escape::Intermediate,
                (Escape::Control, 0x40..=0x7e)
                | (Escape::String, 0x07)
                | (Escape::Begun | Escape::Intermediate, _) => Escape::None,
                (within, _) => within,
            };
        }
        Cow::Owned(kept)
    }
}

/// The line without what does not count at its beginning: a byte-order mark, and NUL bytes, which
/// are where a log was emptied while a program wrote it.
pub(crate) fn begin(mut line: &[u8]) -> &[u8] {
    loop {
        match line.strip_prefix(b"\0").or_else(|| line.strip_prefix(BYTE_ORDER_MARK)) {
            Some(rest) => line = rest,
            None => return line,
        }
    }
}

/// The text that a line of JSON holds, or the first string in quotes with the mark in it, without
/// escape sequences, and what is after it; `None` for other lines.
pub(crate) fn unwrapped<'l>(line: &'l [u8], mark: &[u8]) -> Option<(Vec<u8>, &'l [u8])> {
    let is_object = line.starts_with(b"{") && !line.starts_with(KEY);
    let object = is_object.then(|| serde_json::from_slice(line).ok()).flatten();
    let text = object.and_then(|object| field(&object, mark)).map(|text| (text, &[][..]));
    let (text, after) = text.or_else(|| quoted(line, mark))?;
    Some((Text::default().without_escapes(Cow::Owned(text)).into_owned(), after))
}

fn field(value: &Value, mark: &[u8]) -> Option<Vec<u8>> {
    let text = match value {
        Value::String(text) => text.as_bytes().to_vec(),
        // So journald writes what has control characters.
        Value::Array(bytes) => {
            let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
            bytes.iter().map(byte).collect::<Option<_>>()?
        }
        _ => return FIELDS.split(' ').find_map(|name| field(value.get(name)?, mark)),
    };
    memmem::find(&text, mark).map(|_| text)
}

/// The first string in double quotes in which the mark is, as JSON, logfmt, lists and tables have
/// it, and what is after it.
fn quoted<'l>(line: &'l [u8], mark: &[u8]) -> Option<(Vec<u8>, &'l [u8])> {
    let at = memmem::find(line, mark).filter(|_| !mark.is_empty())?;
    let (mut open, mut is_escaped, mut is_table) = (None, false, false);
    for (position, byte) in line.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            // So tables write a quote.
            b'"' if position > at && line[position + 1..].starts_with(b"\"") => {
                (is_escaped, is_table) = (true, true);
            }
            b'"' if position > at => {
                // A name in quotes after the mark is no end.
                let after = line.get(position + 1);
                let ends = after.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
                let text = unescaped(&line[open? + 1..position], is_table).filter(|_| ends);
                return text.map(|text| (text, &line[position + 1..]));
            }
            b'"' => open = if open.is_some() { None } else { Some(position) },
            _ if position >= at && open.is_none() => return None,
            _ => {}
        }
    }
    // The line is cut.
    unescaped(&line[open? + 1..], is_table).map(|text| (text, &[][..]))
}

fn unescaped(text: &[u8], is_table: bool) -> Option<Vec<u8>> {
    if is_table {
        return Some(str::from_utf8(text).ok()?.replace("\"\"", "\"").into_bytes());
    }
    let string = serde_json::from_slice::<String>(&[b"\"", text, b"\""].concat());
    string.ok().map(String::into_bytes)
}

/// The line without colours that are written in characters.
pub(crate) fn without_written_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    let written =
        |text: &[u8]| WRITTEN_ESCAPES.iter().find(|one| text.ends_with(one)).map(|one| one.len());
    if !memchr_iter(b'[', line).any(|at| written(&line[..at]).is_some()) {
        return Cow::Borrowed(line);
    }
    let (mut kept, mut rest) = (Vec::new(), line);
    while let [byte, after @ ..] = rest {
        let length = written(&kept).filter(|_| *byte == b'[');
        let end = length.and_then(|_| after.iter().position(|b| !b";0123456789".contains(b)));
        match (length, end.filter(|end| b"mK".contains(&after[*end]))) {
            (Some(length), Some(end)) => {
                kept.truncate(kept.len() - length);
                rest = &after[end + 1..];
            }
            _ => {
                kept.push(*byte);
                rest = after;
            }
        }
    }
    Cow::Owned(kept)
}
