//! Errors of signing and of checking signatures.

use gfxpack_model::{Error, ErrorKind};
use std::path::PathBuf;

/// Why something could not be signed, or a signature not be checked. A bad
/// signature is not an error but a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// A file could not be read or written, or gpg is missing or failed.
    #[error(transparent)]
    File(#[from] Error),
    /// gpg has no such secret key.
    #[error("failed to find the secret key `{key}`: {why}")]
    NoSecretKey {
        /// The key as the user named it.
        key: String,
        /// gpg's message.
        why: String,
    },
    /// Several keys match the name.
    #[error("failed to choose: {} secret keys match `{key}`", .fingerprints.len())]
    AmbiguousKey {
        /// The key as the user named it.
        key: String,
        /// The fingerprint of each key.
        fingerprints: Vec<String>,
    },
    /// The key can't sign.
    #[error("failed to sign with the key `{key}`: {flaw}")]
    UnusableKey {
        /// The key as the user named it.
        key: String,
        /// Fingerprint of the primary key.
        fingerprint: String,
        /// What is wrong with it.
        flaw: KeyFlaw,
    },
    /// The key has a passphrase, and gpg can't ask for it.
    #[error("failed to ask for the passphrase of the key `{fingerprint}`: {why}")]
    Passphrase {
        /// Fingerprint of the primary key.
        fingerprint: String,
        /// gpg's message.
        why: String,
    },
    /// The file name is not UTF-8, which gpg requires.
    #[error("failed to sign `{path}`")]
    FileName {
        /// The file.
        path: PathBuf,
    },
    /// A file has no public keys.
    #[error("failed to read keys from `{path}`: {why}")]
    NoKeys {
        /// The file.
        path: PathBuf,
        /// gpg's message.
        why: String,
    },
}

/// Why a secret key can't sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFlaw {
    /// The key has expired.
    #[error("it has expired")]
    Expired,
    /// The owner has revoked the key.
    #[error("it is revoked")]
    Revoked,
    /// gpg considers the key invalid.
    #[error("gpg holds it for invalid")]
    Invalid,
    /// Neither the key nor a subkey may sign and has its secret here.
    #[error("it has no part that can sign")]
    CannotSign,
}

impl SigningError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::File(error) => error.hint().unwrap_or_default(),
            Self::NoSecretKey { .. } => {
                "`gpg --list-secret-keys` lists them; GNUPGHOME says where they are"
            }
            Self::AmbiguousKey { fingerprints, .. } => {
                return format!("give the fingerprint of one: {}", fingerprints.join(", "));
            }
            Self::UnusableKey { fingerprint, flaw: KeyFlaw::Expired, .. } => {
                return format!(
                    "choose another key, or `gpg --quick-set-expire {fingerprint} 1y` lets it \
                     live on (with `'*'` after it, its subkeys)"
                );
            }
            Self::UnusableKey { .. } => "choose another key: `gpg --list-secret-keys` lists them",
            Self::Passphrase { .. } => {
                "on a terminal, `export GPG_TTY=$(tty)`; else give it to gpg-agent before, with \
                 gpg-preset-passphrase, or sign with a key that has none"
            }
            Self::FileName { .. } => "use a name in UTF-8",
            Self::NoKeys { .. } => "export them to a file with `gpg --armor --export KEY`",
        };
        fixed.to_owned()
    }

    /// Whether the error is in the user's command line or input, not on the
    /// machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File(error) => error.kind() == ErrorKind::Usage,
            _ => true,
        }
    }
}

impl From<SigningError> for Error {
    fn from(error: SigningError) -> Self {
        let kind = if error.is_usage() { ErrorKind::Usage } else { ErrorKind::Internal };
        let hint = error.hint();
        Self::new(kind, &error, hint).caused_by(error)
    }
}
