//! The C and C++ libraries' own headers, told by where they lie.
//!
//! A precompiled header may hold these, and HIP's. Others may look for what
//! their includer says later: templates that a source's own functions are to
//! be found for are instantiated before that.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::template::{CommandTemplate, Word};

/// Directories below a C library's include directory that hold its own
/// headers, or the kernel's.
const DIRECTORIES: [&str; 6] = ["asm", "asm-generic", "bits", "gnu", "linux", "sys"];
/// The C library's headers that others include.
///
/// Source: ISO C17, 7.1.2, and POSIX.1-2017, chapter 13, with those that the
/// GNU C library and musl include from them.
const C_HEADERS: &[&str] = &[
    "alloca",
    "assert",
    "byteswap",
    "complex",
    "ctype",
    "dlfcn",
    "endian",
    "errno",
    "fcntl",
    "features",
    "features-time64",
    "fenv",
    "float",
    "getopt",
    "inttypes",
    "iso646",
    "langinfo",
    "libintl",
    "limits",
    "locale",
    "malloc",
    "math",
    "memory",
    "nl_types",
    "poll",
    "pthread",
    "sched",
    "semaphore",
    "setjmp",
    "signal",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stdc-predef",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "stdnoreturn",
    "string",
    "strings",
    "syscall",
    "tgmath",
    "threads",
    "time",
    "uchar",
    "unistd",
    "values",
    "wchar",
    "wctype",
    "xlocale",
];

/// The directories in which the compiler looks for the libraries' headers.
pub(crate) fn system_dirs(command: &CommandTemplate) -> Vec<&Path> {
    let option = |word: &Word| {
        matches!(word, Word::Text(text)
            if text == "-internal-isystem" || text == "-internal-externc-isystem")
    };
    let pairs = command.words.windows(2).filter(|pair| option(&pair[0]));
    let dirs = pairs.filter_map(|pair| match &pair[1] {
        Word::Text(dir) => Some(Path::new(dir)),
        _ => None,
    });
    dirs.filter(|dir| dir.is_absolute()).collect()
}

/// Whether a header that was found in one of these directories is one of the
/// C or C++ library.
pub(crate) fn is_one(header: &Path, dirs: &[&Path]) -> bool {
    dirs.iter().any(|dir| {
        let Ok(rest) = header.strip_prefix(dir) else { return false };
        let mut parts = rest.components();
        if !parts.clone().all(|part| matches!(part, Component::Normal(_))) {
            return false;
        }
        if dir.components().any(|part| part.as_os_str() == "c++") {
            return true;
        }
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(first)), Some(_)) => {
                DIRECTORIES.iter().any(|name| first == OsStr::new(name))
            }
            (Some(Component::Normal(name)), None) => {
                let name = name.to_str().and_then(|name| name.strip_suffix(".h"));
                name.is_some_and(|name| C_HEADERS.contains(&name))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_headers_are_told_from_others() {
        let words = [
            "-isystem",
            "/opt/rocm/include",
            "-internal-isystem",
            "/usr/bin/../include/c++/12",
            "-internal-isystem",
            "/usr/local/include",
            "-internal-externc-isystem",
            "/usr/include",
            "-internal-isystem",
            "relative",
        ];
        let command =
            CommandTemplate { words: words.map(|word| Word::Text(word.to_owned())).into() };
        let dirs = system_dirs(&command);
        assert_eq!(dirs.len(), 3);
        let library = |path: &str| is_one(Path::new(path), &dirs);
        for path in [
            "/usr/bin/../include/c++/12/limits",
            "/usr/bin/../include/c++/12/bits/move.h",
            "/usr/include/math.h",
            "/usr/include/features-time64.h",
            "/usr/include/sys/cdefs.h",
            "/usr/include/linux/errno.h",
        ] {
            assert!(library(path), "{path}");
        }
        for path in [
            "/opt/rocm/include/rocrand/rocrand.h",
            "/usr/include/boost/any.hpp",
            "/usr/include/half.hpp",
            "/usr/include/zlib.h",
            "/usr/include/math",
            "/usr/local/include/half.hpp",
            "/usr/include/bits/../x/y.h",
            "/srv/x.h",
        ] {
            assert!(!library(path), "{path}");
        }
    }
}
