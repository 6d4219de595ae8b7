//! What verification finds wrong, and what helps against each kind of it.

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The bytes are wrong.
    Replace,
    /// The bytes may be right: nobody who is trusted says so.
    Sign,
    /// A file is right perhaps, and no list tells of it.
    Index,
}

impl Remedy {
    /// What the user can do.
    #[must_use]
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A phrase; it may quote what somebody else wrote.
    pub detail: String,
    /// What helps.
    pub remedy: Remedy,
}

impl Finding {
    /// A signature that is not there, or is not trusted.
    pub(crate) fn unsigned(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), remedy: Remedy::Sign }
    }

    /// A file that is in no list.
    pub(crate) fn unlisted(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), remedy: Remedy::Index }
    }

    /// The same, said of a part.
    pub(crate) fn in_part(self, part: &str) -> Self {
        Self { detail: format!("{part}: {}", self.detail), ..self }
    }
}

impl From<String> for Finding {
    /// Damage.
    fn from(detail: String) -> Self {
        Self { detail, remedy: Remedy::Replace }
    }
}
