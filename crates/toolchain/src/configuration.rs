//! Configuration files of clang's: options that its driver takes before those
//! of a command line, from clang 16 on whoever starts it.
//!
//! Source: Clang Compiler User's Manual, "Configuration files".

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// In a configuration file: its own directory.
const OWN_DIR: &str = "<CFGDIR>";

/// What a driver says of them with `-v` or `--version`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Configuration {
    /// Those that it reads; other files may be named in them.
    files: BTreeSet<PathBuf>,
    /// Where it looks for them, besides its own directory.
    pub(crate) dirs: BTreeSet<PathBuf>,
}

impl Configuration {
    /// Adds what stands in a driver's words.
    pub(crate) fn read(&mut self, words: &str) {
        for line in words.lines() {
            if let Some(file) = line.strip_prefix("Configuration file: ") {
                self.files.insert(file.into());
            } else if let Some((_, dir)) = line.split_once("onfiguration file directory: ") {
                self.dirs.insert(dir.into());
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.dirs.extend(other.dirs.iter().cloned());
    }

    /// All files that are read, those that others name as `@FILE` too, as they
    /// are now.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        let mut queue: Vec<PathBuf> = self.files.iter().cloned().collect();
        while let Some(file) = queue.pop() {
            let Ok(text) = fs::read(&file) else { continue };
            let dir = file.parent().unwrap_or(Path::new("/")).to_owned();
            if found.insert(file) {
                let text = String::from_utf8_lossy(&text).into_owned();
                queue.extend(named(&text).into_iter().map(|name| dir.join(name)));
            }
        }
        found.into_iter().collect()
    }
}

/// The files that a configuration file names, relative to its directory.
fn named(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| {
        shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect())
    });
    let name = |word: String| {
        let name = word.strip_prefix('@')?;
        let own = name.strip_prefix(OWN_DIR).map(|rest| rest.trim_start_matches('/'));
        Some(own.unwrap_or(name).to_owned())
    };
    words.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_through_others() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("clang.cfg"), "# @no\n-DA @sub/b.cfg '@<CFGDIR>/c d.cfg' @gone\n").unwrap();
        fs::write(at("sub/b.cfg"), "@../clang.cfg @e.cfg").unwrap();
        fs::write(at("sub/e.cfg"), "-DE").unwrap();
        fs::write(at("c d.cfg"), "").unwrap();
        let mut configuration = Configuration::default();
        configuration.read(&format!(
            "clang version 19\nSystem configuration file directory: /etc/clang\n\
             Configuration file: {}\n",
            at("clang.cfg").display()
        ));
        let files: BTreeSet<PathBuf> =
            configuration.files().iter().map(|file| fs::canonicalize(file).unwrap()).collect();
        let expected = ["c d.cfg", "clang.cfg", "sub/b.cfg", "sub/e.cfg"];
        assert_eq!(files, expected.map(|name| fs::canonicalize(at(name)).unwrap()).into());
        assert_eq!(configuration.dirs, ["/etc/clang".into()].into());
    }
}
