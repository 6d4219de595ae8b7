//! Which compiler made a code object, by what it wrote into it.

use std::collections::BTreeSet;

use gfxpack_model::code_object;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

/// The section in which compilers and linkers name themselves, each a string
/// that ends in a zero byte.
const COMMENT: &str = ".comment";

/// Longest name that is believed: no compiler's is near it.
const MAX_NAME_BYTES: usize = 1024;

/// The clangs that made a code object or a bundle of them, in their own words:
/// `AMD clang version 19.0.0git (…)`. Several where device libraries are linked
/// in that another one made, in no order. None where none named itself, as in
/// objects of assembly, or where the bytes can't be read.
#[must_use]
pub fn made_by(bytes: &[u8]) -> BTreeSet<String> {
    let files = code_object::elf_files(bytes).unwrap_or_default();
    files.into_iter().filter_map(|(_, elf)| in_comment(elf)).flatten().collect()
}

fn in_comment(elf: &[u8]) -> Option<Vec<String>> {
    let file = ElfFile64::<LittleEndian>::parse(elf).ok()?;
    let comment = file.section_by_name(COMMENT)?.data().ok()?;
    let names = comment.split(|byte| *byte == 0).filter(|name| name.len() <= MAX_NAME_BYTES);
    let names = names.filter_map(|name| std::str::from_utf8(name).ok());
    Some(names.filter(|name| clang_version(name).is_some()).map(str::to_owned).collect())
}

/// `15.0.6` out of `Debian clang version 15.0.6`.
#[must_use]
pub fn clang_version(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("clang version ")?;
    rest.split(|c: char| c.is_whitespace() || c == '-' || c == '+')
        .next()
        .filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_names() {
        for (name, expected) in [
            ("Debian clang version 15.0.6", Some("15.0.6")),
            ("AMD clang version 19.0.0git (https://github.com/x roc-6.4.1)", Some("19.0.0git")),
            ("clang version 17.0.6+rocm", Some("17.0.6")),
            ("Linker: LLD 15.0.6", None),
            ("clang version ", None),
        ] {
            assert_eq!(clang_version(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_code_object_was_made_by_nobody() {
        for bytes in [&b""[..], b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__"] {
            assert_eq!(made_by(bytes), BTreeSet::new());
        }
    }
}
