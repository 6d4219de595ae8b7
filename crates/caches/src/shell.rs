//! Lines for shells that set and unset variables.

/// A shell that reads these lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shell {
    /// sh and similar shells: bash, zsh, dash.
    Sh,
    /// fish.
    Fish,
    /// csh and tcsh.
    Csh,
}

impl Shell {
    /// Quotes the text as one literal word.
    #[must_use]
    pub fn quote(self, text: &str) -> String {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&b);
        if !text.is_empty() && text.bytes().all(plain) {
            return text.to_owned();
        }
        let inner = match self {
            Self::Sh => text.replace('\'', r"'\''"),
            Self::Fish => text.replace('\\', r"\\").replace('\'', r"\'"),
            // csh expands history in single quotes too.
            Self::Csh => text.replace('\'', r"'\''").replace('!', r"\!"),
        };
        format!("'{inner}'")
    }

    /// A line that exports a variable, whose value is a word of this shell.
    #[must_use]
    pub fn export(self, name: &str, word: &str) -> String {
        match self {
            Self::Sh => format!("export {name}={word}"),
            Self::Fish => format!("set -gx {name} {word}"),
            Self::Csh => format!("setenv {name} {word}"),
        }
    }

    /// A line that removes a variable from the environment.
    #[must_use]
    pub fn unset(self, name: &str) -> String {
        match self {
            Self::Sh => format!("unset {name}"),
            Self::Fish => format!("set -e {name}"),
            Self::Csh => format!("unsetenv {name}"),
        }
    }

    /// A line that sets a local variable of the shell to a word followed by
    /// what `sh` expands a text in double quotes to.
    pub(crate) fn local(self, name: &str, word: &str, expanded: &str) -> String {
        match self {
            Self::Sh => format!("{name}={word}\"{expanded}\""),
            Self::Fish => format!("set {name} {word}(sh -c 'echo \"{expanded}\"')"),
            Self::Csh => format!("set {name} = {word}`sh -c 'echo \"{expanded}\"'`"),
        }
    }

    /// The value of such a variable, as one word.
    pub(crate) fn value_of(self, name: &str) -> String {
        format!("\"${name}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_are_literal() {
        assert_eq!(Shell::Sh.quote("/a/b-1.2"), "/a/b-1.2");
        assert_eq!(Shell::Sh.quote(""), "''");
        assert_eq!(Shell::Sh.quote("it's $x"), r"'it'\''s $x'");
        assert_eq!(Shell::Fish.quote(r"it's \x"), r"'it\'s \\x'");
        assert_eq!(Shell::Csh.quote("a!"), r"'a\!'");
        assert_eq!(Shell::Csh.unset("X"), "unsetenv X");
    }
}
