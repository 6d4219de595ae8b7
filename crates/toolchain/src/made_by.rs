//! Which compiler made a code object, from its comment section.

use std::collections::BTreeSet;

use gfxpack_model::code_object;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

/// The section in which compilers and linkers write their names, each ended by a zero byte.
const COMMENT: &str = ".comment";

/// Longer names are ignored; no compiler's name is nearly as long.
const MAX_NAME_BYTES: usize = 1024;

/// The clangs that made a code object or a bundle of them, as they name themselves: `AMD clang
/// version 19.0.0git (…)`. There are several, in no order, if it contains device libraries made by
/// another one. There is none if no clang is named, as in objects of assembly, or if the bytes
/// can't be read.
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

/// The version in a name: `15.0.6` for `Debian clang version 15.0.6`.
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
    fn only_code_objects_name_their_compiler() {
        for bytes in [&b""[..], b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__"] {
            assert_eq!(made_by(bytes), BTreeSet::new());
        }
    }
}
