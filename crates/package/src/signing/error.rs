//! Why nothing could be signed, or no signature checked.

use std::path::PathBuf;

use gfxpack_process::{FileError, SystemToolError};

/// Why nothing could be signed, or no signature checked. A signature that is
/// bad is no error but a [`Finding`](crate::Finding).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// gpg is not there, or failed.
    #[error(transparent)]
    Tool(#[from] SystemToolError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// gpg has no such secret key.
    #[error("failed to find the secret key `{key}`: {why}")]
    NoSecretKey {
        /// As the user named it.
        key: String,
        /// What gpg said.
        why: String,
    },
    /// Several keys have that name.
    #[error("failed to choose: {} secret keys match `{key}`", .fingerprints.len())]
    AmbiguousKey {
        /// As the user named it.
        key: String,
        /// Of each.
        fingerprints: Vec<String>,
    },
    /// The key can't sign.
    #[error("failed to sign with the key `{key}`: {flaw}")]
    UnusableKey {
        /// As the user named it.
        key: String,
        /// Of the primary key.
        fingerprint: String,
        /// What is wrong with it.
        flaw: KeyFlaw,
    },
    /// The key has a passphrase, and there is no way to ask for it.
    #[error("failed to ask for the passphrase of the key `{fingerprint}`: {why}")]
    Passphrase {
        /// Of the primary key.
        fingerprint: String,
        /// What gpg said.
        why: String,
    },
    /// gpg takes file names in UTF-8.
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
        /// What gpg said.
        why: String,
    },
}

/// Why a secret key can't sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFlaw {
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its owner revoked it.
    #[error("it is revoked")]
    Revoked,
    /// gpg does not use it.
    #[error("gpg holds it for invalid")]
    Invalid,
    /// Neither it nor a subkey may sign and has its secret here.
    #[error("it has no part that can sign")]
    CannotSign,
}

impl SigningError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let fixed = match self {
            Self::Tool(error) => return error.hint(),
            Self::File(error) => error.hint(),
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

    /// Whether the user's command line or input is at fault, and not the
    /// machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Tool(error) => error.is_usage(),
            Self::File(error) => error.is_usage(),
            _ => true,
        }
    }
}
