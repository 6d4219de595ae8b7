//! Takes clear-signed files apart.

/// A clear-signed file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClearSigned<'a> {
    /// What is signed, and a newline: lines without the blanks at their ends.
    pub(crate) text: String,
    /// The armoured signature.
    pub(crate) signature: &'a str,
}

/// The parts of a clear-signed file. Fails if there is anything outside of the
/// signed text, since readers of such files may take it for signed.
///
/// Source: RFC 9580, 7; apt's `SplitClearSignedFile`.
pub(crate) fn clear_signed(signed: &[u8]) -> Result<ClearSigned<'_>, String> {
    const MARKS: [&str; 3] = [
        "-----BEGIN PGP SIGNED MESSAGE-----",
        "-----BEGIN PGP SIGNATURE-----",
        "-----END PGP SIGNATURE-----",
    ];
    let text = std::str::from_utf8(signed).map_err(|_| "it is no signed text".to_owned())?;
    let marks = text.lines().map(str::trim_end).filter(|line| line.starts_with("-----"));
    if !marks.eq(MARKS) || !text.starts_with(MARKS[0]) || !text.trim_end().ends_with(MARKS[2]) {
        return Err("it is no signed text, or has more in it than that".to_owned());
    }
    let signature = text.find(&format!("\n{}", MARKS[1])).map_or("", |at| &text[at + 1..]);
    let mut lines = text.lines().skip(1).map(|line| line.trim_end_matches([' ', '\t', '\r']));
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        if !line.starts_with("Hash: ") {
            return Err(format!("it has the header `{line}`"));
        }
    }
    let body = lines.take_while(|line| !line.starts_with("-----"));
    let text = body.flat_map(|line| match line {
        // The blank of an escaped empty line was stripped.
        "-" => ["", "\n"],
        line => [line.strip_prefix("- ").unwrap_or(line), "\n"],
    });
    Ok(ClearSigned { text: text.collect(), signature })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_outside_of_the_signed_text_is_refused() {
        let signed = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSuite: a \t\r\n- -x\n- \n\n\
                      -----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n";
        let parts = clear_signed(signed.as_bytes()).expect("it is whole");
        assert_eq!(parts.text, "Suite: a\n-x\n\n\n");
        assert!(parts.signature.starts_with("-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END"));
        let after = signed.split_once('\n').expect("lines").1;
        for wrong in [
            format!("Suite: b\n{signed}"),
            format!("\n{signed}"),
            format!("{signed}Suite: b\n"),
            format!("{signed}{signed}"),
            format!("-----BEGIN PGP MESSAGE-----\n{after}"),
            signed.replace("Hash: SHA256", "NotDashEscaped: yes"),
            signed.replace("- -x", "-----BEGIN PGP SIGNATURE-----"),
            "Suite: a\n".to_owned(),
            String::new(),
        ] {
            assert!(clear_signed(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
