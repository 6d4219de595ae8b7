//! Kernels that nobody can compile. When a library is to do without them, it gets them neither from
//! a database nor from a compiler.
//!
//! | line | meaning |
//! | --- | --- |
//! | `source NAME` | a source that there is; with any such line, kernels of all others are withheld |
//! | `refused NAME ARGUMENTS` | a kernel that is withheld although its source may exist |

use std::collections::HashSet;

use gfxpack_standin::Key;

#[derive(Debug, Default)]
pub(crate) struct Withheld {
    sources: HashSet<Vec<u8>>,
    refused: HashSet<Key>,
}

impl Withheld {
    /// Takes a line; `None` if it is another one.
    pub(crate) fn take(&mut self, line: &[&[u8]]) -> Option<()> {
        match line {
            [b"source", name] => self.sources.insert(name.to_vec()),
            [b"refused", name, arguments] => {
                self.refused.insert(Key { name: name.to_vec(), arguments: arguments.to_vec() })
            }
            _ => return None,
        };
        Some(())
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        let no_source = |source: &[u8]| !self.sources.contains(source);
        self.refused.contains(key)
            || (!self.sources.is_empty() && key.name.strip_suffix(b".o").is_some_and(no_source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_unknown_sources_and_refused_ones_are_withheld() {
        let key =
            |name: &str, arguments: &str| Key { name: name.into(), arguments: arguments.into() };
        let mut withheld = Withheld::default();
        assert!(!withheld.has(&key("a.s.o", "")), "nothing is known of sources");
        for line in [&[&b"source"[..], b"a.cpp"][..], &[b"refused", b"a.cpp.o", b" x"]] {
            withheld.take(line).unwrap();
        }
        assert_eq!(withheld.take(&[b"stub", b"a"]), None);
        let is = |name, arguments| withheld.has(&key(name, arguments));
        assert!(is("a.s.o", "") && is("a.cpp.o", " x"));
        assert!(!is("a.cpp.o", "") && !is("a.mlir", ""));
    }
}
