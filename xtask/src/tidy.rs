//! `cargo xtask tidy`: checks a checkout's files for what no compiler checks.
//! `cargo test` does the same.

mod circles;
mod documents;
mod finding;
mod manifests;
mod messages;
mod sources;
mod tree;

use std::path::Path;

use anyhow::bail;
use clap::Args;

use crate::print::print;
use crate::root::root;
use crate::tidy::tree::Tree;
use finding::Finding;

/// Check files for what no compiler sees: length, headers, words, circles, the code map, messages
#[derive(Debug, Args)]
pub(crate) struct Tidy {}

impl Tidy {
    /// # Errors
    /// If there is a finding; all findings are printed first.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let findings = check(&root())?;
        for finding in &findings {
            print(&finding.to_string());
        }
        match findings.len() {
            0 => Ok(()),
            1 => bail!("one finding"),
            many => bail!("{many} findings"),
        }
    }
}

/// All findings in a checkout.
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
    findings.extend(messages::check(&tree));
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
