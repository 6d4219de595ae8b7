//! Parses text and signatures of a clear-signed message.
//!
//! Source: RFC 9580, section 7. Text before or after the message is refused,
//! since it is not signed.

use super::armor;

const BEGIN: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";

/// A parsed message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its lines, each with a line end, without trailing blanks.
    pub(super) text: String,
    /// The signature packets.
    pub(super) signatures: Vec<u8>,
}

impl Message {
    /// The signed bytes: lines separated by CR and LF.
    pub(super) fn signed(&self) -> Vec<u8> {
        let lines: Vec<&str> = self.text.lines().collect();
        lines.join("\r\n").into_bytes()
    }
}

pub(super) fn parse(message: &str) -> Result<Message, &'static str> {
    let mut rest = message;
    if line(&mut rest) != Some(BEGIN) {
        return Err("it does not begin with a signed message");
    }
    loop {
        match line(&mut rest) {
            Some("") => break,
            Some(header) if header.starts_with("Hash: ") => {}
            _ => return Err("its headers are not those of a signed message"),
        }
    }
    let mut text = String::with_capacity(message.len());
    let signature = loop {
        let before = rest;
        let line = line(&mut rest).ok_or("it has no signature")?;
        if line == SIGNATURE {
            break before;
        }
        let plain = match line.strip_prefix("- ") {
            Some(plain) => plain,
            // The blank of an escaped empty line was stripped.
            None if line == "-" => "",
            None if line.starts_with('-') => return Err("a line of it begins with a dash"),
            None => line,
        };
        if plain.contains('\r') {
            return Err("a line of it has more than one end");
        }
        text.push_str(plain);
        text.push('\n');
    };
    let signatures = armor::decode(signature, "SIGNATURE").ok_or("its signature is damaged")?;
    Ok(Message { text, signatures })
}

/// Splits off a line, without trailing blanks and the line end.
fn line<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let line = rest.split_inclusive('\n').next()?;
    *rest = &rest[line.len()..];
    Some(line.trim_end_matches([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "-----BEGIN PGP SIGNATURE-----\n\naGVsbG8=\n-----END PGP SIGNATURE-----\n";

    #[test]
    fn dashes_are_escaped_and_blanks_at_ends_do_not_count() {
        let head = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\nHash: SHA512\n\n";
        let message = format!("{head}Origin: Debian  \t\n- -----x\n\n- \nlast \r\n{TAIL}");
        let message = parse(&message).unwrap();
        assert_eq!(message.text, "Origin: Debian\n-----x\n\n\nlast\n");
        assert_eq!(message.signed(), b"Origin: Debian\r\n-----x\r\n\r\n\r\nlast");
        assert_eq!(message.signatures, b"hello");
    }

    #[test]
    fn text_outside_of_the_message_is_refused() {
        let head = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n";
        for refused in [
            format!("Origin: Evil\n\n{head}Origin: Debian\n{TAIL}"),
            format!("{head}Origin: Debian\n{TAIL}Origin: Evil\n"),
            format!("{head}Origin: Debian\n-----BEGIN PGP SIGNED MESSAGE-----\n\nx\n{TAIL}"),
            format!("{head}Origin: Debian\n"),
            format!("{head}Origin\r: Debian\n{TAIL}"),
            format!("-----BEGIN PGP SIGNED MESSAGE-----\nOrigin: Evil\n\nOrigin: Debian\n{TAIL}"),
            format!("-----BEGIN PGP SIGNED MESSAGE-----\n{TAIL}"),
            "-----BEGIN PGP SIGNED MESSAGE-----".to_owned(),
            String::new(),
        ] {
            assert!(parse(&refused).is_err(), "{refused}");
        }
    }
}
