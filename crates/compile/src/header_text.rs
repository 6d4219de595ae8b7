//! What headers' texts tell of files that compilers look for and do not list.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_plan::{include, preamble};
use gfxpack_process::Identity;
use gfxpack_model::Language;

/// A text's requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderText {
    /// Names that it may ask for with `__has_include`, as spelled.
    pub(crate) asked: Vec<String>,
    /// Names that it includes with quotes, which are looked up beside it.
    pub(crate) beside: Vec<String>,
}

impl HeaderText {
    fn of(text: &[u8]) -> Self {
        let includes = include::scan(text, Language::Hip).into_iter();
        let quoted = includes.filter(|include| include.quoted).map(|include| include.path);
        let beside = quoted.filter(|path| !path.starts_with('/')).collect();
        Self { asked: asked(text), beside }
    }
}

/// Names that a text may ask for with `__has_include`, sorted; rather too many
/// than too few, but none that is no path.
pub(crate) fn asked(text: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    if memchr::memmem::find(text, b"__has_include").is_some() {
        preamble::asked_files(text, &mut |name| {
            let of_path = |c: char| !c.is_whitespace() && !"()&|!=,;".contains(c);
            if !name.is_empty() && name.chars().all(of_path) && !name.starts_with('/') {
                names.push(name.to_owned());
            }
        });
    }
    names.sort();
    names.dedup();
    names
}

/// Texts of headers, each read once as long as it stays the same.
#[derive(Debug, Default)]
pub(crate) struct HeaderTexts(Mutex<HashMap<PathBuf, (Identity, Arc<HeaderText>)>>);

impl HeaderTexts {
    /// What a header's text tells; nothing where it can't be read any more.
    pub(crate) fn of(&self, path: &Path) -> Arc<HeaderText> {
        let Ok(meta) = fs::metadata(path) else { return Arc::default() };
        let identity = Identity::of(&meta);
        if let Some((known, text)) = self.0.lock().expect("no panic inside").get(path)
            && *known == identity
        {
            return Arc::clone(text);
        }
        let text = fs::read(path).map(|text| HeaderText::of(&text)).unwrap_or_default();
        let text = Arc::new(text);
        let mut known = self.0.lock().expect("no panic inside");
        known.insert(path.to_owned(), (identity, Arc::clone(&text)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_from_a_text() {
        let text = "#include \"a/b.h\"\n#include <c.h>\n\
                    #if __has_include(<d/e.h>) && 1 < 2 && __has_include(\"f.h\")\n#endif\n";
        let told = HeaderText::of(text.as_bytes());
        assert_eq!(told.asked, ["d/e.h", "f.h"]);
        assert_eq!(told.beside, ["a/b.h"]);
        assert_eq!(HeaderText::of(b"#if 1 < 2 // <x>\n"), HeaderText::default());
    }
}
