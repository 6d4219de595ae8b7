//! The protocol between gfxpack and its probe: lines of fields separated by
//! tabs, in which tabs, newlines and backslashes are escaped.
//!
//! ```
//! use gfxpack_model::probe_line::{fields, line};
//! assert_eq!(line(&["failed", "a\tb"]), b"failed\ta\\tb\n");
//! assert_eq!(fields(b"failed\ta\\tb\n"), [&b"failed"[..], b"a\tb"]);
//! ```

/// A line, with its final newline.
pub fn line(fields: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut line = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            line.push(b'\t');
        }
        for &byte in field.as_ref() {
            match byte {
                b'\t' => line.extend(b"\\t"),
                b'\n' => line.extend(b"\\n"),
                b'\\' => line.extend(b"\\\\"),
                byte => line.push(byte),
            }
        }
    }
    line.push(b'\n');
    line
}

/// The fields of a line, with or without its final newline.
pub fn fields(line: &[u8]) -> Vec<Vec<u8>> {
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
    fn fields_parse_back() {
        let fields = [&b"key"[..], b"", b" -DA=\"\t\\n\n\\\" ", &[0xff, 0, b'\r']];
        let line = line(&fields);
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(super::fields(&line), fields);
    }
}
