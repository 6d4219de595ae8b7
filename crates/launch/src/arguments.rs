//! A compiler's arguments, and the dependency file that it writes.

use std::ffi::{OsStr, OsString};
use std::iter;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use gfxpack_model::Language;

/// Options of a compiler that name a directory of headers.
///
/// Source: llvm-project, clang/lib/Frontend/CompilerInvocation.cpp,
/// `ParseHeaderSearchArgs`.
const SEARCHING: [&str; 12] = [
    "-internal-isystem",
    "-internal-externc-isystem",
    "-isystem",
    "-c-isystem",
    "-cxx-isystem",
    "-idirafter",
    "-iframework",
    "-iquote",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-I",
];

/// The directories that a compiler (`-cc1`, not a driver) searches for headers, in the order of its
/// arguments.
pub fn searched<T: AsRef<OsStr>>(arguments: &[T]) -> impl Iterator<Item = &Path> {
    let previous = iter::once(None).chain(arguments.iter().map(Some));
    previous.zip(arguments).filter_map(|(previous, argument)| {
        let option = previous.and_then(|option| option.as_ref().to_str());
        let argument = argument.as_ref();
        // Drivers write directories of CPATH so.
        let joined = || argument.to_str()?.strip_prefix("-I").filter(|dir| !dir.is_empty());
        let is_operand = option.is_some_and(is_searching);
        if is_operand { Some(Path::new(argument)) } else { joined().map(Path::new) }
    })
}

/// Whether a compiler's next argument is a directory that it searches for headers.
pub(crate) fn is_searching(option: &str) -> bool {
    SEARCHING.contains(&option)
}

/// The options that make a compiler list the files that it reads; the assembler has none.
pub(crate) fn deps_arguments(language: Language, file: &Path) -> Vec<OsString> {
    match language {
        Language::Assembly => Vec::new(),
        Language::Hip | Language::OpenclC => ["-MD".into(), "-MF".into(), file.into()].into(),
    }
}

/// The files that a compiler lists in its dependency file: the prerequisites of its one rule.
pub fn depfile_paths(text: &[u8]) -> Vec<PathBuf> {
    let begin = text.windows(2).position(|two| two == b": ").map_or(text.len(), |at| at + 2);
    let mut paths = Vec::new();
    let mut current = Vec::new();
    let mut bytes = text[begin..].iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'\\', Some(b'\n')) => {
                bytes.next();
            }
            (b'\\', Some(b' ' | b'#' | b'\\')) | (b'$', Some(b'$')) => current.extend(bytes.next()),
            // Other white space is part of a name.
            (b' ' | b'\n', _) => paths.push(std::mem::take(&mut current)),
            _ => current.push(byte),
        }
    }
    paths.push(current);
    let named = paths.into_iter().filter(|path| !path.is_empty());
    named.map(|path| OsString::from_vec(path).into()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn depfiles_are_read_with_their_escapes() {
        let text = b"/w/o: a.cpp /usr/include/x.h \\\n  /opt/a\\ b/c$$.h a\tb.h\n";
        let expected = ["a.cpp", "/usr/include/x.h", "/opt/a b/c$.h", "a\tb.h"].map(PathBuf::from);
        assert_eq!(depfile_paths(text), expected);
        assert!(depfile_paths(b"").is_empty());
        assert_eq!(depfile_paths(b"o: \xff.h")[0].as_os_str().as_bytes(), b"\xff.h");
    }
}
