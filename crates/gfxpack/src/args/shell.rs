//! The shell that lines are printed for.

use clap::ValueEnum;
use gfxpack_caches::Shell;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellName {
    /// sh, and what is like it: bash, zsh, dash.
    #[default]
    Sh,
    Fish,
    Csh,
}

impl From<ShellName> for Shell {
    fn from(name: ShellName) -> Self {
        match name {
            ShellName::Sh => Self::Sh,
            ShellName::Fish => Self::Fish,
            ShellName::Csh => Self::Csh,
        }
    }
}
