//! Decodes ASCII armor: binary data as text.
//!
//! Source: RFC 9580, section 6. The checksum is optional there, and adds nothing
//! to the check of a signature.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The data of the only block in the text, which must be of this kind.
pub(super) fn decode(text: &str, kind: &str) -> Option<Vec<u8>> {
    let mut lines = text.trim().lines().map(str::trim_end);
    if lines.next()? != format!("-----BEGIN PGP {kind}-----") {
        return None;
    }
    // Skip headers, which end with an empty line.
    for line in lines.by_ref() {
        if line.is_empty() {
            break;
        }
        line.split_once(": ")?;
    }
    let end = format!("-----END PGP {kind}-----");
    let mut base64 = String::with_capacity(text.len());
    let mut ended = false;
    let mut checked = false;
    for line in lines {
        if ended {
            return None;
        }
        if line == end {
            ended = true;
        } else if line.starts_with('=') && line.len() == 5 {
            checked = true;
        } else if checked {
            return None;
        } else {
            base64.push_str(line);
        }
    }
    if ended { STANDARD.decode(base64).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn a_text_must_be_one_complete_block() {
        let check = |text: &str, expected: Option<&[u8]>| {
            assert_eq!(decode(text, "X").as_deref(), expected, "{text:?}");
        };
        check("-----BEGIN PGP X-----\n\naGVs\nbG8=\n-----END PGP X-----\n", Some(b"hello"));
        check(
            "-----BEGIN PGP X-----\nVersion: 1\n\naGVsbG8=\n=ab/c\n-----END PGP X-----",
            Some(b"hello"),
        );
        check("-----BEGIN PGP X-----\r\n\r\naGVsbG8=\r\n-----END PGP X-----\r\n", Some(b"hello"));
        for none in [
            "-----BEGIN PGP X-----\n\naGVsbG8=\n",
            "-----BEGIN PGP Y-----\n\naGVsbG8=\n-----END PGP Y-----\n",
            "-----BEGIN PGP X-----\naGVsbG8=\n-----END PGP X-----\n",
            "-----BEGIN PGP X-----\n\naGVs*G8=\n-----END PGP X-----\n",
            "-----BEGIN PGP X-----\n\naGVsbG8=\n-----END PGP X-----\nmore",
            "-----BEGIN PGP X-----\n\naGVs\n=ab/c\nbG8=\n-----END PGP X-----",
            "",
        ] {
            check(none, None);
        }
    }
}
