//! pytools (loopy and PyOpenCL's own entries), PyOpenCL's compiler cache, PoCL.

use std::path::PathBuf;

use super::cache::{Cache, CacheDirectory, Item, holds_only, is_made_of};
use crate::location_variable::LocationVariable;
use crate::switch::{Switch, rules};
use crate::user_environment::UserEnvironment;

const EVERYTHING: &str = "XDG_CACHE_HOME moves the caches of all programs that use it, since \
                          there is no variable for this one alone";

pub(super) fn caches(environment: &UserEnvironment) -> [Cache; 3] {
    let python = |name: &str, filter: fn(&Item<'_>) -> bool| {
        let directory = python_cache(environment).map(|(dir, rule)| (dir.join(name), rule));
        directory.map(|(dir, rule)| CacheDirectory::new(dir, rule, filter)).into_iter().collect()
    };
    [
        Cache {
            name: "pytools",
            about: "what loopy generated, and PyOpenCL's invokers",
            directories: python("pytools", is_dictionary),
            switches: vec![
                Switch::new("LOOPY_NO_CACHE", "1", rules::PYTOOLS, "loopy's part is not used"),
                Switch::new("CG_NO_CACHE", "1", rules::PYTOOLS, "loopy's part is not used"),
                Switch::new("PYOPENCL_NO_CACHE", "1", rules::PYTOOLS, "invokers are not kept"),
            ],
            disable_note: "loopy makes its databases all the same, and leaves them empty",
            location_variables: vec![LocationVariable::dir("XDG_CACHE_HOME", "xdg")],
            location_note: EVERYTHING,
        },
        Cache {
            name: "pyopencl",
            about: "binaries of OpenCL programs",
            directories: python("pyopencl", is_compiler_cache),
            switches: vec![Switch::new(
                "PYOPENCL_NO_CACHE",
                "1",
                rules::PYTOOLS,
                "nothing is read or kept",
            )],
            disable_note: "",
            location_variables: vec![LocationVariable::dir("XDG_CACHE_HOME", "xdg")],
            location_note: EVERYTHING,
        },
        Cache {
            name: "pocl",
            about: "kernels compiled for the CPU",
            directories: pocl(environment),
            switches: vec![Switch::new(
                "POCL_KERNEL_CACHE",
                "0",
                rules::POCL,
                "nothing is read or kept",
            )],
            disable_note: "PoCL compiles in a directory `uncached` beside it, and cleans up there",
            location_variables: vec![LocationVariable::dir("POCL_CACHE_DIR", "pocl")],
            location_note: "",
        },
    ]
}

/// The user's cache directory by the rules of Python's tools.
///
/// Source: platformdirs 4.14, `user_cache_dir` in unix.py and `_xdg_dir` in
/// _xdg.py.
fn python_cache(environment: &UserEnvironment) -> Option<(PathBuf, &'static str)> {
    match environment.absolute("XDG_CACHE_HOME") {
        Some(dir) => Some((dir, "XDG_CACHE_HOME")),
        None => Some((environment.home()?.join(".cache"), "HOME")),
    }
}

/// Source: pocl 3.1 to 6.0, `pocl_cache_init_topdir` in lib/CL/pocl_cache.c.
fn pocl(environment: &UserEnvironment) -> Vec<CacheDirectory> {
    if environment.value("POCL_CACHE_DIR").is_some() {
        let dir = environment.absolute("POCL_CACHE_DIR");
        return dir
            .map(|dir| CacheDirectory::new(dir, "POCL_CACHE_DIR", is_pocl))
            .into_iter()
            .collect();
    }
    let (dir, rule) = match (environment.value("XDG_CACHE_HOME"), environment.home()) {
        (Some(dir), _) => (PathBuf::from(dir), "XDG_CACHE_HOME"),
        (None, Some(home)) => (home.join(".cache"), "HOME"),
        (None, None) => (PathBuf::from("/tmp"), "there is no HOME"),
    };
    if !dir.is_absolute() {
        return Vec::new();
    }
    let directory = |name: &str| CacheDirectory::new(dir.join("pocl").join(name), rule, is_pocl);
    vec![directory("kcache"), directory("uncached")]
}

/// `pdict-v5-<identifier>-3.11.7.final.0.sqlite`; a directory before version 5.
fn is_dictionary(item: &Item<'_>) -> bool {
    let rest = item.name.strip_prefix("pdict-v");
    let version = rest.and_then(|rest| rest.split_once('-')).map(|(version, _)| version);
    version.is_some_and(|version| is_made_of(version, 1..=3, |byte| byte.is_ascii_digit()))
        && (item.is_dir || item.name.ends_with(".sqlite"))
}

/// `pyopencl-compiler-cache-v2-py3.11.7.final.0`.
fn is_compiler_cache(item: &Item<'_>) -> bool {
    item.is_dir && item.name.starts_with("pyopencl-compiler-cache-v")
}

/// Two letters of a digest that is spelled with the first sixteen letters, with
/// directories named by the rest of it (PoCL 3.1 overwrites one of 40 by the
/// slash); and leftovers of a compilation: a fixed word and six characters of
/// `mkstemp`.
fn is_pocl(item: &Item<'_>) -> bool {
    let letters = |byte: u8| (b'A'..=b'P').contains(&byte);
    let left = |begin: &str| {
        let rest = item.name.strip_prefix(begin);
        let rest = rest.map(|rest| rest.strip_prefix('_').unwrap_or(rest));
        rest.and_then(|rest| rest.split_at_checked(6)).is_some_and(|(random, suffix)| {
            is_made_of(random, 6..=6, |b| b.is_ascii_alphanumeric())
                && (suffix.is_empty() || suffix.starts_with(['.', '_', '-']))
                && is_made_of(suffix, 0..=18, |b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
    };
    if item.is_dir {
        let digests = || holds_only(item.path, |name| is_made_of(name, 37..=62, letters));
        (is_made_of(item.name, 2..=2, letters) && digests()) || left("tempdir") || left("_UNCACHED")
    } else {
        left("tempfile")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, found, owns};

    #[test]
    fn python_tools_follow_xdg() {
        for name in ["pytools", "pyopencl"] {
            let at = |dir: &str| format!("{dir}/{name}");
            let linux = |variables: &[(&str, &str)], dir: &str| {
                check(variables, name, &[&at(dir)]);
            };
            linux(&[("HOME", "/h")], "/h/.cache");
            linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], "/x");
            linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "")], "/h/.cache");
            linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")], "/h/.cache");
            check(&[], name, &[]);
        }
    }

    #[test]
    fn pocl_has_its_own_rules() {
        let linux = |variables: &[(&str, &str)], expected: &[&str]| {
            check(variables, "pocl", expected);
        };
        linux(&[("HOME", "/h")], &["/h/.cache/pocl/kcache", "/h/.cache/pocl/uncached"]);
        let xdg = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x")];
        linux(&xdg, &["/x/pocl/kcache", "/x/pocl/uncached"]);
        let empty = [("HOME", "/h"), ("XDG_CACHE_HOME", "")];
        linux(&empty, &["/h/.cache/pocl/kcache", "/h/.cache/pocl/uncached"]);
        linux(&[], &["/tmp/pocl/kcache", "/tmp/pocl/uncached"]);
        linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")], &[]);
        linux(&[("POCL_CACHE_DIR", "/p"), ("XDG_CACHE_HOME", "/x")], &["/p"]);
        linux(&[("POCL_CACHE_DIR", "p"), ("HOME", "/h")], &[]);
    }

    #[test]
    fn only_the_tools_own_files_are_recognised() {
        assert!(owns("pytools", "pdict-v5-loopy-invoker-cache-v10-3.11.7.final.0.sqlite", false));
        assert!(owns("pytools", "pdict-v2-loopy-cache-py3.8", true));
        assert!(!owns("pytools", "pdict-v5-x.txt", false) && !owns("pytools", "notes", true));
        assert!(owns("pyopencl", "pyopencl-compiler-cache-v2-py3.11.7.final.0", true));
        assert!(!owns("pyopencl", "work", true));
        for (name, is_dir) in [("tempfile_mm0IbA", false), ("tempfile_mm0IbA.bc", false)] {
            assert!(owns("pocl", name, is_dir), "{name}");
        }
        for name in ["PP", "tempfile", "tempfile.py", "tempfile_backups", "tempfile/../x"] {
            assert!(!owns("pocl", name, false), "{name}");
        }
        assert!(!owns("pocl", "src", true) && !owns("pocl", "tempdir", true));
    }

    #[test]
    fn directories_of_two_letters_are_pocls_if_they_contain_digests() {
        // As PoCL 3.1 makes it, and one letter longer.
        let digest = "DJEAGBLMOIIOADMIFCKGEJKJIDEBJPKNPCBOA";
        let files = [
            format!("AH/{digest}/program.bc"),
            format!("AI/{digest}A/program.bc"),
            format!("QQ/{digest}/program.bc"),
            format!("ML/{digest}/program.bc"),
            "ML/model.bin".to_owned(),
            "DB/mine".to_owned(),
        ];
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        assert_eq!(found("pocl", "POCL_CACHE_DIR", &files), ["AH", "AI"]);
    }
}
