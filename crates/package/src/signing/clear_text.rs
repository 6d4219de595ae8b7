//! Extracts the text of clear-signed files.

/// The text of a clear-signed file, without checking the signature. Fails if
/// there is anything outside of the signed text, since readers of such files may
/// take it for signed.
///
/// Source: RFC 9580, 7; apt's `OpenMaybeClearSignedFile`.
pub(crate) fn clear_text(signed: &[u8]) -> Result<Vec<u8>, String> {
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
    let mut lines = text.lines().skip(1);
    for line in lines.by_ref().map(str::trim_end).take_while(|line| !line.is_empty()) {
        if !line.starts_with("Hash: ") {
            return Err(format!("it has the header `{line}`"));
        }
    }
    let body = lines.take_while(|line| !line.starts_with("-----"));
    let plain = body.flat_map(|line| [line.strip_prefix("- ").unwrap_or(line), "\n"]);
    Ok(plain.collect::<String>().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_outside_of_the_signed_text_is_refused() {
        let signed = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSuite: a\n- -x\n\n\
                      -----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n";
        assert_eq!(clear_text(signed.as_bytes()), Ok(b"Suite: a\n-x\n\n".to_vec()));
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
            assert!(clear_text(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
