//! The paths in the commands that a driver would run.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_launch::{CommandTemplate, searched};
use gfxpack_plan::include::Include;

use super::search::joined;
use crate::nearby_files::is_file;

/// What the compiler proper searches last, below the root of the system, unless it is told not to.
///
/// Source: llvm-project, clang/lib/Lex/InitHeaderSearch.cpp, `AddDefaultCIncludePaths`.
const SEARCHED_BY_DEFAULT: [&str; 2] = ["usr/local/include", "usr/include"];

/// What a list of commands names outside of the sources.
#[derive(Debug, Default)]
pub(super) struct CommandPaths {
    /// Searched for headers.
    pub(super) searched: Vec<PathBuf>,
    /// Searched directories of the sources.
    pub(super) own: Vec<PathBuf>,
    /// Directories that the toolchain's digest covers.
    pub(super) dirs: Vec<PathBuf>,
    /// Files that the toolchain's digest covers.
    pub(super) covered: Vec<PathBuf>,
    /// Other files.
    pub(super) files: Vec<PathBuf>,
    /// Headers that are included before the source.
    pub(super) included: Vec<Include>,
}

impl CommandPaths {
    pub(super) fn new(commands: &[CommandTemplate], covered: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for command in commands {
            let args = command.texts();
            for dir in searched(&args) {
                let list = if dir.is_absolute() { &mut all.searched } else { &mut all.own };
                if !list.iter().any(|known| known == dir) {
                    list.push(dir.components().collect());
                }
            }
            for pair in args.windows(2) {
                match pair[0] {
                    "-include" | "-imacros" => {
                        all.included.push(Include { path: pair[1].to_owned(), quoted: true });
                    }
                    // Searched by default.
                    "-resource-dir" => {
                        let dir = joined(Path::new(pair[1]), Path::new("include"));
                        all.add(&dir.to_string_lossy(), covered);
                        all.searched.extend((!all.searched.contains(&dir)).then_some(dir));
                    }
                    _ => {}
                }
            }
            for dir in searched_by_default(&args) {
                all.searched.extend((!all.searched.contains(&dir)).then_some(dir));
            }
            for arg in args.iter().skip(1) {
                all.add(arg, covered);
            }
        }
        all
    }

    /// Adds the path in an argument, if there is one.
    fn add(&mut self, arg: &str, covered: &[PathBuf]) {
        let path = match arg.split_once("=/") {
            _ if arg.starts_with('/') => arg,
            Some((option, _)) if option.starts_with('-') => &arg[option.len() + 1..],
            _ => return,
        };
        let path: PathBuf = Path::new(path).components().collect();
        let Ok(real) = fs::canonicalize(&path) else { return };
        let is_covered = covered.iter().any(|dir| real.starts_with(dir));
        match (real.is_dir(), is_covered) {
            (true, true) => self.dirs.push(path),
            (false, true) => self.covered.push(path),
            (false, false) if is_file(&path) => self.files.push(path),
            _ => {}
        }
    }
}

/// The directories that a command searches although it does not name them.
fn searched_by_default(args: &[&str]) -> Vec<PathBuf> {
    let has = |option: &str| args.contains(&option);
    if !has("-cc1") || has("-nostdsysteminc") || has("-nostdinc") {
        return Vec::new();
    }
    let root = args.windows(2).find(|pair| pair[0] == "-isysroot");
    let root = root.map_or(Path::new("/"), |pair| Path::new(pair[1]));
    SEARCHED_BY_DEFAULT.map(|dir| joined(root, Path::new(dir))).into()
}

#[cfg(test)]
mod tests {
    use gfxpack_launch::TemplateArg;

    use super::*;
    use crate::source::tests::write;

    #[test]
    fn paths_in_commands_are_searched_covered_or_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, &[("res/include/a.h", ""), ("lib/x.bc", ""), ("more.h", ""), ("cc", "")]);
        let at = |below: &str| root.join(below);
        let text = |below: &str| at(below).display().to_string();
        let args = [
            text("cc"),
            "-I".into(),
            "own".into(),
            "-internal-isystem".into(),
            text("sys"),
            "-resource-dir".into(),
            text("res"),
            format!("-fmap={}", text("more.h")),
            text("lib/x.bc"),
            "-include".into(),
            "first.h".into(),
        ];
        let command = CommandTemplate { args: args.map(TemplateArg::Text).into() };
        let covered = [at("lib"), at("res/include")];
        let paths = CommandPaths::new(std::slice::from_ref(&command), &covered);
        assert_eq!(paths.searched, [at("sys"), at("res/include")]);
        assert_eq!(paths.own, [PathBuf::from("own")]);
        assert_eq!(paths.dirs, [at("res/include")]);
        assert_eq!((paths.covered, paths.files), (vec![at("lib/x.bc")], vec![at("more.h")]));
        assert_eq!(paths.included, [Include { path: "first.h".into(), quoted: true }]);

        let with = |more: &[&str]| {
            let more = more.iter().map(|&arg| TemplateArg::Text(arg.to_owned()));
            let args = command.args.iter().cloned().chain(more).collect();
            CommandPaths::new(&[CommandTemplate { args }], &covered).searched
        };
        let all = |last: [PathBuf; 2]| [&paths.searched[..], &last].concat();
        let by_default = SEARCHED_BY_DEFAULT.map(|dir| Path::new("/").join(dir));
        assert_eq!(with(&["-cc1"]), all(by_default));
        let in_root = SEARCHED_BY_DEFAULT.map(|dir| at("r").join(dir));
        assert_eq!(with(&["-cc1", "-isysroot", &text("r")]), all(in_root));
        assert_eq!(with(&["-cc1", "-nostdsysteminc"]), paths.searched);
    }
}
