//! Lines of fields, in which bytes that separate them are escaped.

/// A line with its end.
pub(crate) fn line(fields: &[impl AsRef<[u8]>]) -> Vec<u8> {
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
