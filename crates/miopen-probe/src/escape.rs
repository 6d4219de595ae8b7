//! Fields of a line, in which bytes that separate them are escaped.

/// Appends a field, escaped.
pub(crate) fn escape(field: &[u8], line: &mut Vec<u8>) {
    for &byte in field {
        match byte {
            b'\t' => line.extend(b"\\t"),
            b'\n' => line.extend(b"\\n"),
            b'\\' => line.extend(b"\\\\"),
            byte => line.push(byte),
        }
    }
}
