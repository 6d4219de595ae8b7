//! Checks signatures with gpgv or sqv, against the public keys of a file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gfxpack_model::{Error, Result};
use gfxpack_process::{ScratchDir, SystemTool, scratch_error, temporary_dir};

use super::gpg::{refused, refused_by_sqv};
use super::weak_keys;
use crate::finding::Finding;
use crate::read::{self, INDEX_MAX};

/// Each system has one of these, for its package manager. gpgv is preferred, since its answers are
/// documented lines.
const GPGV: SystemTool = SystemTool {
    program: "gpgv",
    provided_by: "gpgv, or sqv in its place (on Fedora and openSUSE: gnupg2)",
};
const SQV: SystemTool = SystemTool { program: "sqv", provided_by: "sqv" };

/// Public keys whose signatures are trusted, and no others.
#[derive(Debug)]
pub struct Keyring {
    /// Holds the keys and what is being checked.
    dir: ScratchDir,
    /// What is wrong with keys, by fingerprint.
    flaws: BTreeMap<String, String>,
}

impl Keyring {
    /// The keys of a file, armoured or not.
    pub fn open(file: &Path) -> Result<Self> {
        let none = |why: String| {
            let message = format!("failed to read keys from `{}`: {why}", file.display());
            Error::usage(message, "export them to a file with `gpg --armor --export KEY`")
        };
        let keys = read::bytes(file, INDEX_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::Other => none(error.to_string()),
            _ => Error::io("read", file)(error),
        })?;
        let keys = dearmoured(&keys).filter(|keys| begins_with_key(keys));
        let keys = keys.ok_or_else(|| none("it holds no OpenPGP keys".to_owned()))?;
        Self::of(&keys)
    }

    /// These keys, which are not armoured.
    pub fn of(keys: &[u8]) -> Result<Self> {
        let keyring = Self { dir: temporary_dir()?, flaws: weak_keys::flaws(keys) };
        keyring.put("keys.pgp", keys)?;
        Ok(keyring)
    }

    /// What is wrong with the detached `signature` of a file; `None` if it is
    /// good and by one of the keys.
    pub fn check_file(&self, signature: &[u8], file: &Path) -> Result<Option<Finding>> {
        let keys = self.dir.path().join("keys.pgp");
        let signature = self.put("signature", signature)?;
        let file = std::path::absolute(file).map_err(Error::io("find", file))?;
        let run = |tool: SystemTool, options: &[&str]| {
            let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
            arguments.extend([keys.as_os_str(), signature.as_os_str(), file.as_os_str()]);
            tool.capture(&arguments, Path::new("."), &[])
        };
        if !GPGV.is_installed() && SQV.is_installed() {
            return Ok(refused_by_sqv(&run(SQV, &["--keyring"])?));
        }
        // apt does not take SHA-1 either.
        let options = ["--status-fd", "1", "--weak-digest", "SHA1", "--keyring"];
        let gpgv = run(GPGV, &options)?;
        Ok(refused(&String::from_utf8_lossy(&gpgv.stdout), &gpgv.stderr, &self.flaws))
    }

    /// Like [`Keyring::check_file`], for bytes in memory.
    pub fn check_bytes(&self, signature: &[u8], bytes: &[u8]) -> Result<Option<Finding>> {
        let path = self.put("signed", bytes)?;
        self.check_file(signature, &path)
    }

    /// What was signed in a clear-signed file, or why the signature does not
    /// count.
    pub fn check_clear_signed(&self, signed: &[u8]) -> Result<Result<String, Finding>> {
        let message = match clear_signed(signed) {
            Ok(message) => message,
            Err(why) => return Ok(Err(why.into())),
        };
        // The end of the last line is not signed.
        let bytes = message.text.strip_suffix('\n').unwrap_or(&message.text).as_bytes();
        let refused = self.check_bytes(message.signature.as_bytes(), bytes)?;
        Ok(refused.map_or(Ok(message.text), Err))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).map_err(scratch_error(&path))?;
        Ok(path)
    }
}

/// The bytes of keys, since gpgv reads none in armour.
///
/// Source: RFC 9580, 6.2.
pub(super) fn dearmoured(keys: &[u8]) -> Option<Vec<u8>> {
    if !keys.trim_ascii_start().starts_with(b"-----BEGIN PGP PUBLIC KEY BLOCK-----") {
        return Some(keys.to_vec());
    }
    let mut bytes = Vec::new();
    let mut lines = std::str::from_utf8(keys).ok()?.lines().map(str::trim);
    while lines.any(|line| line.starts_with("-----BEGIN ")) {
        // Headers end with an empty line, and a checksum begins with `=`.
        let body = lines.by_ref().skip_while(|line| !line.is_empty());
        let body: String = body.take_while(|line| !line.starts_with(['=', '-'])).collect();
        bytes.extend(BASE64_STANDARD.decode(body).ok()?);
    }
    Some(bytes)
}

/// Whether the first packet is a public key.
///
/// Source: RFC 9580, 4.2.
fn begins_with_key(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(0x98..=0x9b | 0xc6))
}

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

    /// A key whose secret was thrown away.
    const PUBLIC_KEY: &str = "\
-----BEGIN PGP PUBLIC KEY BLOCK-----
Comment: none

mDMEXgvhABYJKwYBBAHaRw8BAQdAXHTYW/6Z/PNA7wvj/fCe7o1HksjpjQcnmpdH
hVEnQ9q0F1VuaXQgPHVuaXRAZXhhbXBsZS5vcmc+iJAEExYIADgWIQRi8Q7iVB3I
IPgNkJBzl9/SsR/77QUCXgvhAAIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAK
CRBzl9/SsR/77XqWAQC3HSCbZzSK1KzRuSwU6omojBzIL/5EY0kf69CNmtObtwD/
Rc7N/F9zTxwmhp+sohubT2+Isuo2LgdCUDAbAr/dSwM=
=CPAX
-----END PGP PUBLIC KEY BLOCK-----
";

    #[test]
    fn keys_may_be_armoured_and_several() {
        let one = dearmoured(PUBLIC_KEY.as_bytes()).expect("it is whole");
        assert!(begins_with_key(&one) && one.len() == 224, "{one:?}");
        assert_eq!(dearmoured(&one).as_ref(), Some(&one));
        assert!(weak_keys::flaws(&one).is_empty());
        // The digest of its signature becomes SHA-1.
        let at = one.windows(4).position(|bytes| bytes == [4, 0x13, 22, 8]).expect("a signature");
        let sha1 = [&one[..at + 3], &[2], &one[at + 4..]].concat();
        let flaws = weak_keys::flaws(&[&*one, &sha1].concat());
        let fingerprint = "62F10EE2541DC820F80D90907397DFD2B11FFBED".to_owned();
        let flaw = "is bound to its name with SHA-1 or MD5 alone".to_owned();
        assert_eq!(flaws, BTreeMap::from([(fingerprint, flaw)]));
        let twice = dearmoured(PUBLIC_KEY.repeat(2).as_bytes());
        assert_eq!(twice, Some([&*one, &one].concat()));
        assert_eq!(dearmoured(PUBLIC_KEY.replace("mDME", "m!ME").as_bytes()), None);
        assert!(!begins_with_key(b"garbage") && !begins_with_key(b""));
    }
}
