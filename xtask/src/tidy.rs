//! `cargo xtask tidy`: what a compiler does not check about the files of a
//! checkout. `cargo test` runs the same.

mod circles;
mod documents;
mod manifests;
mod sources;
mod tree;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use crate::root;
use crate::say::say;
use crate::tidy::tree::Tree;

/// Check files for what no compiler sees: length, headers, words, circles, the code map
#[derive(Debug, Args)]
pub(crate) struct Tidy {}

impl Tidy {
    /// # Errors
    /// Where there is a finding; all of them are said first.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let findings = check(&root())?;
        for finding in &findings {
            say(&finding.to_string());
        }
        match findings.len() {
            0 => Ok(()),
            1 => bail!("one finding"),
            many => bail!("{many} findings"),
        }
    }
}

/// Something to put right.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: PathBuf,
    /// Counted from one; zero for the file as a whole.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.what),
        }
    }
}

/// Everything to put right in a checkout.
fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    for file in tree.files() {
        findings.extend(sources::check(root, file));
        findings.extend(manifests::check_file(file));
    }
    findings.extend(manifests::check_tree(&tree));
    findings.extend(documents::check(root, &tree));
    findings.extend(circles::check(&tree));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_tidy() {
        let findings = check(&root()).unwrap();
        let lines: Vec<_> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "to put right:\n{}", lines.join("\n"));
    }
}
