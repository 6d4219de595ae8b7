//! Findings of verification, and the remedy for each kind.

/// What to do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The bytes are wrong: get the file again.
    Replace,
    /// The bytes may be right, but no trusted key signed them.
    Sign,
    /// The file may be right, but no index lists it.
    Index,
}

impl Remedy {
    /// What the user can do.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Replace => "build the file again, or replace it",
            Self::Sign => {
                "sign with --sign-key of `gfxpack dist` and `gfxpack repo`, or give a keyring \
                 that has the key which signed"
            }
            Self::Index => "index what was added: run `gfxpack repo` again",
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A phrase; it may quote text from the package.
    pub detail: String,
    /// What to do.
    pub remedy: Remedy,
}

impl Finding {
    /// A signature that is missing or not trusted.
    pub(crate) fn unsigned(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), remedy: Remedy::Sign }
    }

    /// A file that no index lists.
    pub(crate) fn unlisted(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), remedy: Remedy::Index }
    }

    /// The finding, prefixed with the part that it is about.
    pub(crate) fn in_part(self, part: &str) -> Self {
        Self { detail: format!("{part}: {}", self.detail), ..self }
    }
}

impl From<String> for Finding {
    /// A finding about damage.
    fn from(detail: String) -> Self {
        Self { detail, remedy: Remedy::Replace }
    }
}
