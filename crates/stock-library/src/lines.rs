//! What is said to a probe, and what it answers: lines of fields separated by
//! tabs, in which tabs, ends of line and backslashes are escaped.

use std::io::{self, Write};

/// Writes a line of fields.
///
/// # Errors
/// The writer's.
pub fn write_line(to: &mut impl Write, fields: &[&[u8]]) -> io::Result<()> {
    let mut line = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        for &byte in *field {
            match byte {
                b'\t' => line.extend(b"\\t"),
                b'\n' => line.extend(b"\\n"),
                b'\\' => line.extend(b"\\\\"),
                byte => line.push(byte),
            }
        }
    }
    line.push(b'\n');
    to.write_all(&line)
}

/// The fields of a line.
#[must_use]
pub fn read_line(line: &[u8]) -> Vec<Vec<u8>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.split(|&byte| byte == b'\t').map(unescape).collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    if !field.contains(&b'\\') {
        return field.to_vec();
    }
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
        let fields = [&b"key"[..], b"", b" -DA=\"\t\\n\n\\\" ", &[0xff, 0, b'\r']];
        let mut line = Vec::new();
        write_line(&mut line, &fields).unwrap();
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(read_line(&line), fields);
    }
}
