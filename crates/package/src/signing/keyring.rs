//! Checks signatures against the public keys of a file.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gfxpack_process::{FileError, SystemTool, ToolOutput, temporary_dir};

use super::clear_text::clear_text;
use super::error::SigningError;
use super::gpg::{GPG, last_line, refused, word};
use crate::finding::Finding;
use crate::read::{self, INDEX_MAX};

const GPGCONF: SystemTool =
    SystemTool { program: "gpgconf", provided_by: "gpgconf (gnupg2 on Fedora and openSUSE)" };

/// Public keys whose signatures are trusted, and no others.
#[derive(Debug)]
pub struct Keyring {
    home: tempfile::TempDir,
}

impl Keyring {
    /// The keys of a file, armoured or not.
    ///
    /// # Errors
    /// [`SigningError::NoKeys`] for a file that has none;
    /// [`SigningError::File`] and [`SigningError::Tool`].
    pub fn open(file: &Path) -> Result<Self, SigningError> {
        let none = |why: String| SigningError::NoKeys { path: file.to_owned(), why };
        let keys = read::bytes(file, INDEX_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::Other => none(error.to_string()),
            _ => FileError::io("read", file)(error).into(),
        })?;
        let keyring = Self { home: temporary_dir()? };
        let home = keyring.home.path();
        // gpg warns about directories that others can read.
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(home, private).map_err(FileError::scratch(home))?;
        let (ran, _) = keyring.run(&["--import"], &keys)?;
        if ran.status.success() {
            return Ok(keyring);
        }
        Err(none(last_line(&ran.stderr, "gpg finds none")))
    }

    /// What is wrong with the detached `signature` of a file; `None` if it is
    /// good and by one of the keys.
    ///
    /// # Errors
    /// [`SigningError::File`] and [`SigningError::Tool`].
    pub fn check_file(
        &self,
        signature: &[u8],
        file: &Path,
    ) -> Result<Option<Finding>, SigningError> {
        let path = self.home.path().join("signature");
        std::fs::write(&path, signature).map_err(FileError::scratch(&path))?;
        let file = std::path::absolute(file).map_err(FileError::io("find", file))?;
        let arguments = [Path::new("--verify"), Path::new("--"), &path, &file];
        let (ran, status) = self.run(&arguments, &[])?;
        Ok(refused(&status, &ran.stderr))
    }

    /// Like [`Keyring::check_file`], for bytes in memory.
    ///
    /// # Errors
    /// Like [`Keyring::check_file`].
    pub fn check_bytes(
        &self,
        signature: &[u8],
        bytes: &[u8],
    ) -> Result<Option<Finding>, SigningError> {
        let path = self.home.path().join("signed");
        std::fs::write(&path, bytes).map_err(FileError::scratch(&path))?;
        self.check_file(signature, &path)
    }

    /// What was signed in a clear-signed file, or why the signature does not
    /// count.
    ///
    /// # Errors
    /// [`SigningError::File`] and [`SigningError::Tool`].
    pub(crate) fn check_clear_signed(
        &self,
        signed: &[u8],
    ) -> Result<Result<Vec<u8>, Finding>, SigningError> {
        if let Err(why) = clear_text(signed) {
            return Ok(Err(why.into()));
        }
        let (ran, status) = self.run(&["--output", "-", "--decrypt"], signed)?;
        let texts = status.lines().filter(|line| word(line) == Some("PLAINTEXT")).count();
        Ok(match refused(&status, &ran.stderr) {
            None if texts == 1 => Ok(ran.stdout),
            None => Err("it is not of the one text".to_owned().into()),
            Some(why) => Err(why),
        })
    }

    /// Runs gpg; also returns its status lines.
    fn run(
        &self,
        arguments: &[impl AsRef<OsStr>],
        input: &[u8],
    ) -> Result<(ToolOutput, String), SigningError> {
        let home = self.home.path();
        // A separate file, since gpg's output for people contains names from keys.
        let status_file = home.join("status");
        std::fs::write(&status_file, "").map_err(FileError::scratch(&status_file))?;
        let mut all: Vec<&OsStr> = vec!["--homedir".as_ref(), home.as_os_str()];
        all.extend(["--status-file".as_ref(), status_file.as_os_str()]);
        // Public keys need no agent, and an agent would outlive this process.
        let quietly =
            ["--no-autostart", "--batch", "--no-tty", "--quiet", "--trust-model", "always"];
        all.extend(quietly.map(OsStr::new));
        all.extend(arguments.iter().map(AsRef::as_ref));
        let output = GPG.capture(&all, Path::new("."), input)?;
        let status = std::fs::read(&status_file).map_err(FileError::io("read", &status_file))?;
        Ok((output, String::from_utf8_lossy(&status).into_owned()))
    }
}

impl Drop for Keyring {
    /// Removes the directory for the agent's sockets, which gpg makes elsewhere
    /// even without an agent.
    fn drop(&mut self) {
        let home = self.home.path().as_os_str();
        let arguments = ["--homedir".as_ref(), home, "--remove-socketdir".as_ref()];
        // If it can't be removed, it is empty and does no harm.
        GPGCONF.capture(&arguments, Path::new("."), &[]).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key whose secret was thrown away.
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
        let refused = keyring.check_file(b"none", file.path()).expect("gpg runs");
        assert!(refused.is_some());
        let home = keyring.home.path().to_owned();
        let mode = std::fs::metadata(&home).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let dir = ["--list-dirs", "socketdir"].map(OsStr::new);
        let arguments = [&["--homedir".as_ref(), home.as_os_str()], &dir[..]].concat();
        let sockets = GPGCONF.output(&arguments, Path::new("."), &[]).expect("gpgconf runs");
        let sockets = String::from_utf8(sockets).expect("UTF-8");
        let sockets = Path::new(sockets.trim());
        assert!(sockets.is_absolute());
        assert!(!sockets.join("S.gpg-agent").exists(), "an agent was started");
        drop(keyring);
        assert!(!home.exists() && !sockets.exists(), "{}", sockets.display());
    }
}
