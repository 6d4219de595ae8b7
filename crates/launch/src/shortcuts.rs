//! The shortcuts by name.

use std::fmt;
use std::str::FromStr;

/// The shortcuts that a build may take. None of them changes a byte of any object; one can be
/// turned off to measure it, or to find out whether it causes a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortcuts {
    /// The compiler is started without the driver (hipcc or clang), which is asked once for the
    /// commands that it would run. The other shortcuts need this one.
    pub direct: bool,
    /// A compiler is loaded once and forks for every command.
    pub fork_server: bool,
    /// The header that the driver includes, and HIP's own for sources that include it first, are
    /// parsed once per target.
    pub precompiled_header: bool,
}

/// One of the shortcuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortcut {
    /// [`Shortcuts::direct`].
    Direct,
    /// [`Shortcuts::fork_server`].
    ForkServer,
    /// [`Shortcuts::precompiled_header`].
    PrecompiledHeader,
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self { direct: true, fork_server: true, precompiled_header: true }
    }
}

impl Shortcuts {
    /// No shortcuts: the driver runs every command.
    pub const NONE: Self = Self { direct: false, fork_server: false, precompiled_header: false };

    /// The same without one shortcut and those that need it.
    #[must_use]
    pub fn without(self, shortcut: Shortcut) -> Self {
        match shortcut {
            Shortcut::Direct => Self::NONE,
            Shortcut::ForkServer => Self { fork_server: false, ..self },
            Shortcut::PrecompiledHeader => Self { precompiled_header: false, ..self },
        }
    }
}

impl Shortcut {
    /// All shortcuts.
    pub const ALL: [Self; 3] = [Self::Direct, Self::ForkServer, Self::PrecompiledHeader];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::ForkServer => "fork-server",
            Self::PrecompiledHeader => "precompiled-header",
        }
    }
}

impl fmt::Display for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Shortcut {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|shortcut| shortcut.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no shortcut of that name; there are {names}")
        })
    }
}
