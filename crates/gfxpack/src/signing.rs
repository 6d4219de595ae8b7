//! Signs with the user's gpg, and checks signatures against a key file.
//!
//! gpg and not a library: keys stay where they are kept, on a card or with an
//! agent too, and what package managers check was made by what they know.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gfxpack_package::Sign;

use crate::fail;
use crate::finding::Finding;
use crate::repository;
use crate::tools::{self, Tool};

const GPG: Tool = Tool { program: "gpg", from: "gnupg (gnupg2 on Fedora and openSUSE)" };
const GPGCONF: Tool = Tool { program: "gpgconf", from: "gpgconf (gnupg2 on Fedora and openSUSE)" };

/// What gpg writes besides the keys that it imports.
const ROOM: usize = 64 << 10;

/// One secret key.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    /// Fingerprint of the key.
    key: String,
    /// The one of its parts that signs, as gpg takes it.
    signing: String,
    /// OpenPGP's number of the algorithm.
    algorithm: u8,
    /// When signatures say they were made.
    time: u64,
}

impl Signer {
    /// The key of that name, ID or fingerprint. Signatures bear the time
    /// `epoch`, or the key's own where that is later, so that they are the
    /// same every time.
    ///
    /// That time is what gpg takes for the present, so whether the key is
    /// still valid is found out here. Names match as gpg matches them, which
    /// several keys may: what signs and what is exported must be one key.
    pub(crate) fn new(key: &str, epoch: u64) -> anyhow::Result<Self> {
        let words = ["--batch", "--with-colons", "--list-secret-keys", "--", key];
        let (status, listed, said) = tools::capture(GPG, &words, Path::new("."), &[])?;
        let keys = secret_keys(&String::from_utf8_lossy(&listed));
        let whole = match keys.as_slice() {
            [whole] if status.success() => whole,
            [] | [_] => {
                return Err(fail::usage(
                    format!(
                        "failed to find the secret key `{key}`: {}",
                        last_line(&said, "gpg lists none")
                    ),
                    "`gpg --list-secret-keys` lists them; GNUPGHOME says where they are",
                ));
            }
            several => {
                let all: Vec<&str> = several.iter().map(|key| &*key[0].fingerprint).collect();
                return Err(fail::usage(
                    format!("failed to choose: {} secret keys match `{key}`", several.len()),
                    format!("give the fingerprint of one: {}", all.join(", ")),
                ));
            }
        };
        let primary = &whole[0].fingerprint;
        let part = signing_part(whole, key).map_err(|why| {
            let hint = match why {
                "it has expired" => format!(
                    "choose another key, or `gpg --quick-set-expire {primary} 1y` lets it live on \
                     (with `'*'` after it, its subkeys)"
                ),
                _ => "choose another key: `gpg --list-secret-keys` lists them".to_owned(),
            };
            fail::usage(format!("failed to sign with the key `{key}`: {why}"), hint)
        })?;
        let created = whole.iter().map(|part| part.created).max().unwrap_or(0);
        Ok(Self {
            key: primary.clone(),
            // Without the mark, gpg would choose again, as of another time.
            signing: format!("{}!", part.fingerprint),
            algorithm: part.algorithm,
            time: epoch.max(created),
        })
    }

    /// Why rpm may not take what this key signs.
    ///
    /// Source: rpm 4.18, rpmio/digest_libgcrypt.c, `pgpPubkeyNew`: RSA, DSA
    /// and Ed25519.
    pub(crate) fn unknown_to_rpm(&self) -> Option<&'static str> {
        const ECDSA: u8 = 19;
        (self.algorithm == ECDSA).then_some(
            "the key is an ECDSA key, which rpm up to 4.18 neither imports nor checks: sign .rpm \
             packages with an RSA or Ed25519 key",
        )
    }

    /// The armoured detached signature of `bytes`.
    pub(crate) fn armoured(&self, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.sign(&["--armor", "--detach-sign"], bytes)
    }

    /// The text with a signature around it.
    pub(crate) fn clear(&self, text: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.sign(&["--clearsign"], text)
    }

    /// The armoured detached signature of a file, however large.
    pub(crate) fn armoured_file(&self, path: &Path) -> anyhow::Result<Vec<u8>> {
        let path = std::path::absolute(path).map_err(fail::io("find", path))?;
        let path = path.to_str().ok_or_else(|| {
            fail::usage(format!("failed to sign `{}`", path.display()), "use a name in UTF-8")
        })?;
        self.sign(&["--armor", "--output", "-", "--detach-sign", "--", path], &[])
    }

    /// The public key, armoured.
    pub(crate) fn public_key(&self) -> anyhow::Result<Vec<u8>> {
        let words = [
            "--batch",
            "--armor",
            "--export-options",
            "export-minimal",
            "--export",
            "--",
            &self.key,
        ];
        tools::output(GPG, &words, Path::new("."), &[])
    }

    fn sign(&self, how: &[&str], bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        let time = format!("{}!", self.time);
        let mut words = vec!["--batch", "--no-tty", "--digest-algo", "SHA256"];
        words.extend(["--faked-system-time", &time, "--local-user", &self.signing]);
        words.extend(how);
        let (status, signature, said) = tools::capture(GPG, &words, Path::new("."), bytes)?;
        if status.success() {
            return Ok(signature);
        }
        // The agent's own program for it has no terminal, or there is none.
        if ["ioctl for device", "pinentry"].iter().any(|sign| said.contains(sign)) {
            let why = last_line(&said, "nobody was asked");
            return Err(fail::usage(
                format!("failed to ask for the passphrase of the key `{}`: {why}", self.key),
                "on a terminal, `export GPG_TTY=$(tty)`; else give it to gpg-agent before, with \
                 gpg-preset-passphrase, or sign with a key that has none",
            ));
        }
        Err(tools::failed(GPG, status, &said))
    }
}

impl Sign for Signer {
    fn detached(&self, bytes: &[u8]) -> Result<Vec<u8>, gfxpack_package::Error> {
        let signed = self.sign(&["--detach-sign"], bytes);
        // In a box of its own, it would not be known for what it is.
        let cause =
            |error: anyhow::Error| error.reallocate_into_boxed_dyn_error_without_backtrace();
        signed.map_err(|error| gfxpack_package::Error::Sign(cause(error)))
    }
}

/// A secret key, or a subkey of one.
#[derive(Debug)]
struct Part {
    fingerprint: String,
    validity: String,
    created: u64,
    algorithm: u8,
    /// What it may do, a letter each.
    usage: String,
    /// Whether the secret is at hand, or a card that has it.
    here: bool,
}

/// The keys of a listing, each with its subkeys behind it.
///
/// Source: GnuPG, doc/DETAILS, "Format of the colon listings".
fn secret_keys(listed: &str) -> Vec<Vec<Part>> {
    let mut keys: Vec<Vec<Part>> = Vec::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |number: usize| fields.get(number - 1).copied().unwrap_or_default();
        match field(1) {
            kind @ ("sec" | "ssb") => {
                let part = Part {
                    fingerprint: String::new(),
                    validity: field(2).to_owned(),
                    created: field(6).parse().unwrap_or(0),
                    algorithm: field(4).parse().unwrap_or(0),
                    usage: field(12).to_owned(),
                    here: field(15) != "#",
                };
                match keys.last_mut() {
                    Some(key) if kind == "ssb" => key.push(part),
                    _ => keys.push(vec![part]),
                }
            }
            "fpr" => {
                if let Some(part) = keys.last_mut().and_then(|key| key.last_mut()) {
                    part.fingerprint = field(10).to_owned();
                }
            }
            _ => {}
        }
    }
    keys
}

/// What of a key signs: the newest subkey that may, else the key itself; or
/// the one whose ID was given with `!`, as gpg has it.
fn signing_part<'a>(key: &'a [Part], asked: &str) -> Result<&'a Part, &'static str> {
    let invalid = |part: &Part| match &*part.validity {
        "e" => Some("it has expired"),
        "r" => Some("it is revoked"),
        "i" | "n" | "d" => Some("gpg holds it for invalid"),
        _ => None,
    };
    if let Some(why) = invalid(&key[0]) {
        return Err(why);
    }
    let exactly = asked.strip_suffix('!').map(|id| id.trim_start_matches("0x").to_uppercase());
    let asked_for = |part: &&Part| {
        part.usage.contains('s')
            && exactly.as_ref().is_none_or(|id| part.fingerprint.ends_with(id.as_str()))
    };
    let (primary, subkeys) = key.split_at(1);
    let mut parts: Vec<&Part> = subkeys.iter().filter(asked_for).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.created));
    parts.extend(primary.iter().filter(asked_for));
    let usable = parts.iter().find(|part| part.here && invalid(part).is_none());
    usable.copied().ok_or_else(|| {
        parts.iter().find_map(|part| invalid(part)).unwrap_or("it has no part that can sign")
    })
}

/// Public keys whose signatures are trusted, and no others.
#[derive(Debug)]
pub(crate) struct Keyring {
    home: tempfile::TempDir,
}

impl Keyring {
    /// The keys of a file, armoured or not.
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
        let none = |why: &str| {
            let message = format!("failed to read keys from `{}`: {why}", file.display());
            fail::usage(message, "export them to a file with `gpg --armor --export KEY`")
        };
        let keys = repository::read(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::Other => none(&error.to_string()),
            _ => fail::io("read", file)(error),
        })?;
        let keyring = Self { home: fail::temporary_dir()? };
        let home = keyring.home.path();
        // gpg warns of what others may look into.
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(home, private).map_err(fail::scratch(home))?;
        let ran = keyring.run(&["--import"], &keys)?;
        if ran.success {
            return Ok(keyring);
        }
        // The keys are not at fault where gpg had no place to put them.
        std::fs::write(home.join("room"), vec![0; keys.len() + ROOM]).map_err(|source| {
            let dir = tempfile::env::temp_dir().display().to_string();
            fail::Outcome::Temporary { dir, source }
        })?;
        Err(none(&last_line(&ran.stderr, "gpg finds none")))
    }

    /// What is wrong with the detached `signature` of a file; `None` where it
    /// is good and by one of the keys.
    pub(crate) fn refuses(&self, signature: &[u8], file: &Path) -> anyhow::Result<Option<Finding>> {
        let path = self.home.path().join("signature");
        std::fs::write(&path, signature).map_err(fail::scratch(&path))?;
        let file = std::path::absolute(file).map_err(fail::io("find", file))?;
        let words = [Path::new("--verify"), Path::new("--"), &path, &file];
        let ran = self.run(&words, &[])?;
        Ok(refused(&ran.status, &ran.stderr))
    }

    /// As [`Keyring::refuses`], of bytes in memory.
    pub(crate) fn refuses_bytes(
        &self,
        signature: &[u8],
        bytes: &[u8],
    ) -> anyhow::Result<Option<Finding>> {
        let path = self.home.path().join("signed");
        std::fs::write(&path, bytes).map_err(fail::scratch(&path))?;
        self.refuses(signature, &path)
    }

    /// The text that a clear-signed file signs, or what is wrong with it.
    pub(crate) fn text(&self, signed: &[u8]) -> anyhow::Result<Result<Vec<u8>, Finding>> {
        if let Err(why) = clear_text(signed) {
            return Ok(Err(why.into()));
        }
        let ran = self.run(&["--output", "-", "--decrypt"], signed)?;
        let texts = ran.status.lines().filter(|line| word(line) == Some("PLAINTEXT")).count();
        Ok(match refused(&ran.status, &ran.stderr) {
            None if texts == 1 => Ok(ran.stdout),
            None => Err("it is not of the one text".to_owned().into()),
            Some(why) => Err(why),
        })
    }

    fn run(&self, words: &[impl AsRef<std::ffi::OsStr>], input: &[u8]) -> anyhow::Result<Ran> {
        let home = self.home.path();
        // A file of its own: what gpg says to people has names in it.
        let status_file = home.join("status");
        std::fs::write(&status_file, "").map_err(fail::scratch(&status_file))?;
        let mut all: Vec<&std::ffi::OsStr> = vec!["--homedir".as_ref(), home.as_os_str()];
        all.extend(["--status-file".as_ref(), status_file.as_os_str()]);
        // Public keys need no agent, and one that is started outlives this.
        let quietly =
            ["--no-autostart", "--batch", "--no-tty", "--quiet", "--trust-model", "always"];
        all.extend(quietly.map(std::ffi::OsStr::new));
        all.extend(words.iter().map(AsRef::as_ref));
        let (code, stdout, stderr) = tools::capture(GPG, &all, Path::new("."), input)?;
        let status = std::fs::read(&status_file).map_err(fail::io("read", &status_file))?;
        let status = String::from_utf8_lossy(&status).into_owned();
        Ok(Ran { success: code.success(), status, stdout, stderr })
    }
}

impl Drop for Keyring {
    /// gpg makes a directory for the agent's sockets elsewhere, agent or not.
    fn drop(&mut self) {
        let home = self.home.path().as_os_str();
        let words = ["--homedir".as_ref(), home, "--remove-socketdir".as_ref()];
        // What can't be removed is empty, and does no harm.
        tools::capture(GPGCONF, &words, Path::new("."), &[]).ok();
    }
}

/// What gpg did.
struct Ran {
    success: bool,
    /// A line for each thing it found out.
    status: String,
    stdout: Vec<u8>,
    stderr: String,
}

fn word(line: &str) -> Option<&str> {
    line.strip_prefix("[GNUPG:] ")?.split(' ').next()
}

/// Why no signature is good; `None` where one is and none is bad. The exit
/// code can't say: it is 0 for keys that were revoked, and is not for a
/// signature whose key is among those that others know.
///
/// Source: GnuPG, doc/DETAILS, "Format of the --status-fd output"; apt's
/// methods/gpgv.cc, which decides alike.
fn refused(status: &str, said: &str) -> Option<Finding> {
    let mut good = false;
    let mut reasons = Vec::new();
    for signature in status.split("[GNUPG:] NEWSIG").skip(1) {
        let line = |name: &str| signature.lines().find(|line| word(line) == Some(name));
        let who = |line: &str| line.split(' ').skip(2).collect::<Vec<_>>().join(" ");
        if let Some(line) = line("BADSIG") {
            return Some(format!("the signature of {} is bad", who(line)).into());
        }
        let flaws = [
            ("REVKEYSIG", "is revoked"),
            ("EXPKEYSIG", "has expired"),
            ("EXPSIG", "made a signature that has expired"),
        ];
        let flaw = flaws.into_iter().find_map(|(name, flaw)| Some((line(name)?, flaw)));
        match flaw {
            Some((line, flaw)) => reasons.push(format!("the key {} {flaw}", who(line))),
            None => good |= line("GOODSIG").is_some() && line("VALIDSIG").is_some(),
        }
    }
    let why = || reasons.into_iter().next().unwrap_or_else(|| last_line(said, "no signature"));
    (!good).then(|| Finding::unsigned(why()))
}

/// The text within a clear-signed file, whether the signature is good or not.
/// There must be nothing before, after and beside it, since what reads such
/// files may take that for signed.
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

/// The last thing that gpg said, or `nothing`. How many keys it has seen is no
/// reason for anything.
fn last_line(text: &str, nothing: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches("gpg: ").trim());
    let said = |line: &&str| !line.is_empty() && !line.starts_with("Total number processed");
    lines.rev().find(said).unwrap_or(nothing).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_text_has_nothing_beside_it() {
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

    #[test]
    fn one_good_signature_counts_and_a_bad_one_spoils_it() {
        let status = |blocks: &[&str]| {
            let lines = blocks.iter().map(|block| format!("[GNUPG:] NEWSIG\n{block}\n"));
            refused(&lines.collect::<String>(), "gpg: Can't check signature\n")
        };
        let good = "[GNUPG:] GOODSIG 1 A\n[GNUPG:] VALIDSIG 1";
        let unknown = "[GNUPG:] ERRSIG 2 1\n[GNUPG:] NO_PUBKEY 2";
        let expired = "[GNUPG:] EXPKEYSIG 3 C <c@d>\n[GNUPG:] VALIDSIG 3";
        let bad = "[GNUPG:] BADSIG 4 D";
        for accepted in [&[good][..], &[good, unknown], &[unknown, good], &[expired, good]] {
            assert_eq!(status(accepted), None, "{accepted:?}");
        }
        for (blocks, why) in [
            (&[unknown][..], "Can't check signature"),
            (&[expired], "the key 3 C <c@d> has expired"),
            (&[unknown, expired], "the key 3 C <c@d> has expired"),
            (&[good, bad], "the signature of 4 D is bad"),
            (&["[GNUPG:] GOODSIG 1 A"], "Can't check signature"),
            (&["[GNUPG:] VALIDSIG 1"], "Can't check signature"),
            (&[], "Can't check signature"),
        ] {
            let refused = status(blocks).expect("refused").detail;
            assert!(refused.starts_with(why), "{blocks:?}: {refused}");
        }
    }

    #[test]
    fn what_signs_is_the_newest_part_that_may() {
        let part = |line: &str, fpr: &str| format!("{line}\nfpr:::::::::{fpr}:\n");
        let sec = part("sec:u:255:22:AA:100:::u:::scSC:::+:::23::0:", "AA");
        let old = part("ssb:u:255:22:BB:200::::::s:::+:::23::", "BB");
        let new = part("ssb:u:255:19:CC:300::::::s:::+:::23::", "CC");
        let secret = part("ssb:u:255:18:DD:400::::::e:::+:::23::", "DD");
        let check = |listed: &[&str], asked: &str, expected: Result<&str, &str>| {
            let keys = secret_keys(&listed.concat());
            assert_eq!(keys.len(), 1, "{listed:?}");
            let found = signing_part(&keys[0], asked).map(|part| &*part.fingerprint);
            assert_eq!(found, expected, "{listed:?} {asked}");
        };
        check(&[&sec], "a", Ok("AA"));
        check(&[&sec, &old, &new, &secret], "a", Ok("CC"));
        check(&[&sec, &old, &new], "0xbb!", Ok("BB"));
        check(&[&sec, &old, &new.replace("ssb:u", "ssb:e")], "a", Ok("BB"));
        check(&[&sec, &new.replace(":+:", ":#:")], "a", Ok("AA"));
        let certifies = sec.replace("scSC", "cSC");
        check(&[&certifies, &new.replace("ssb:u", "ssb:e")], "a", Err("it has expired"));
        check(&[&sec.replace("sec:u", "sec:r"), &new], "a", Err("it is revoked"));
        check(&[&certifies, &secret], "a", Err("it has no part that can sign"));
        assert_eq!(secret_keys(&[&*sec, &sec].concat()).len(), 2);
    }

    /// Of nobody: its secret is gone.
    const PUBLIC_KEY: &str = "\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEXgvhABYJKwYBBAHaRw8BAQdAXHTYW/6Z/PNA7wvj/fCe7o1HksjpjQcnmpdH
hVEnQ9q0F1VuaXQgPHVuaXRAZXhhbXBsZS5vcmc+iJAEExYIADgWIQRi8Q7iVB3I
IPgNkJBzl9/SsR/77QUCXgvhAAIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAK
CRBzl9/SsR/77XqWAQC3HSCbZzSK1KzRuSwU6omojBzIL/5EY0kf69CNmtObtwD/
Rc7N/F9zTxwmhp+sohubT2+Isuo2LgdCUDAbAr/dSwM=
=CPAX
-----END PGP PUBLIC KEY BLOCK-----
";

    #[test]
    fn a_keyring_leaves_no_agent_and_no_directory() {
        let file = tempfile::NamedTempFile::new().expect("made");
        std::fs::write(file.path(), PUBLIC_KEY).expect("written");
        let keyring = Keyring::open(file.path()).expect("a key");
        let refused = keyring.refuses(b"none", file.path()).expect("gpg runs");
        assert!(refused.is_some());
        let home = keyring.home.path().to_owned();
        let mode = std::fs::metadata(&home).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let dir = ["--list-dirs", "socketdir"].map(std::ffi::OsStr::new);
        let words = [&["--homedir".as_ref(), home.as_os_str()], &dir[..]].concat();
        let sockets = tools::output(GPGCONF, &words, Path::new("."), &[]).expect("gpgconf runs");
        let sockets = String::from_utf8(sockets).expect("UTF-8");
        let sockets = Path::new(sockets.trim());
        assert!(sockets.is_absolute());
        assert!(!sockets.join("S.gpg-agent").exists(), "an agent was started");
        drop(keyring);
        assert!(!home.exists() && !sockets.exists(), "{}", sockets.display());
    }
}
