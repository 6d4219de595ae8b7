//! What gfxpack and this program say to each other: lines of fields separated
//! by tabs, in which tabs, ends of line and backslashes are escaped.
//!
//! First come the settings ([`crate::settings`]), over the socket that is
//! standard input. The answer is one line:
//!
//! | line | meaning |
//! | --- | --- |
//! | `ready VERSION MIOPEN` | this program's version, and the library's |
//! | `missing SYMBOL` | the library does not have this function |
//! | `failed REASON` | anything else |
//!
//! Then gfxpack sends sockets over the first, and a worker serves each.
//! A request is `ask STEM MISSES STEPS PROBLEM`: the process to fork from (0
//! is the warm one, others are those of the settings' `stem` lines), what
//! follows on a kernel that no real database has (`stop`: the library goes on
//! without; `go-on`: the stand-in answers), what to do ([`crate::steps`]),
//! separated by commas, and a convolution ([`crate::convolution`]). The answer
//! has any number of notes:
//!
//! | note | meaning |
//! | --- | --- |
//! | `step NAME DIRECTION` | what follows belongs to this step |
//! | `key NUMBER NAME ARGUMENTS` | a key is called by this number until `end` |
//! | `asked NUMBER` | the stand-in answered for this key |
//! | `found NUMBER`, `missed NUMBER` | a real database holds the key, or none does |
//! | `function NUMBER NAME` | a function of the key's object was loaded |
//! | `lacks NUMBER NAME` | the key's object does not have that function |
//! | `compile WHAT` | a compiler was started and refused |
//! | `unanswered WHAT` | a stand-in has no answer |
//! | `refused CALL STATUS` | a call of the library failed |
//! | `unrecorded DIRECTION` | the find database does not have the problem |
//!
//! (`function` and `lacks` have `-` where the key is not known) and ends with
//! one of `end done`, `end exited STATUS`, `end killed SIGNAL`,
//! `end overdue`, `end full` (more notes than there is room for) and
//! `end failed REASON`.

use std::io::{self, Write};

use crate::line::line;

/// Writes a line.
pub(crate) fn write_line(to: &mut impl Write, fields: &[impl AsRef<[u8]>]) -> io::Result<()> {
    to.write_all(&line(fields))
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The fields of a line.
pub(crate) fn read_line(line: &[u8]) -> Vec<Vec<u8>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.split(|&byte| byte == b'\t').map(unescape).collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = field.iter().copied();
    let mut plain = Vec::with_capacity(field.len());
    while let Some(byte) = bytes.next() {
        plain.push(match (byte, (byte == b'\\').then(|| bytes.next()).flatten()) {
            (_, Some(b't')) => b'\t',
            (_, Some(b'n')) => b'\n',
            (_, Some(other)) => other,
            (byte, None) => byte,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were() {
        let fields =
            [&b"key"[..], b"", b" -DA=\"\t\\n\n\\\" ", &[0xff, 0, b'\r']].map(<[u8]>::to_vec);
        let mut line = Vec::new();
        write_line(&mut line, &fields).unwrap();
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(read_line(&line), fields);
    }
}
