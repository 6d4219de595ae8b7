//! Checks numbers in the headers of a tar.

/// Whether every tar can read the number in a field: digits in base 8, or a
/// number in base 256 of at most 63 bits.
///
/// Source: GNU tar 1.34, src/list.c, `from_header`; POSIX.1-2017, pax, "ustar
/// Interchange Format".
pub(super) fn is_number(field: &[u8]) -> bool {
    if let [0x80, rest @ ..] = field {
        let (high, low) = rest.split_at(rest.len().saturating_sub(8));
        return high.iter().all(|byte| *byte == 0) && low.first().is_some_and(|byte| *byte < 0x80);
    }
    let field = field.strip_prefix(b"\0").unwrap_or(field);
    let start = field.iter().take_while(|byte| **byte == b' ').count();
    let digits = field[start..].iter().take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    // An empty field means 0; a field of spaces is invalid.
    match field.get(start + digits) {
        Some(end) => matches!(end, 0 | b' '),
        None => digits > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn numbers_are_in_base_8_or_256() {
        for number in [
            &b"0000644\0"[..],
            b" 644 \0\0\0",
            b"00000644",
            b"\x80\0\0\0\0\0\0\x01",
            b"\0\0\0\0\0\0\0\0",
        ] {
            assert!(is_number(number), "{number:?}");
        }
        let large = [&[0x80, 0, 0, 0][..], &[0x7f; 8]].concat();
        assert!(is_number(&large));
        for other in [
            &b"        "[..],
            b"0000648\0",
            b"-000644\0",
            b"x000644\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x80\x01\0\0\0\0\0\0\0\0\0\0",
            b"\x80\0\0\0\x80\0\0\0\0\0\0\0",
        ] {
            assert!(!is_number(other), "{other:?}");
        }
    }
}
