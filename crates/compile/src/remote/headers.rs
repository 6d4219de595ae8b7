//! The system headers that a source may read: found by text, in every include directory, so that
//! rather too many are sent than too few.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gfxpack_model::Language;
use gfxpack_plan::include::{self, Include};

/// The includes of headers, each read once in a build.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    /// `None` where there is no such file.
    known: Mutex<HashMap<PathBuf, Option<Arc<Vec<Include>>>>>,
}

impl Headers {
    /// Every header that can be reached from `names` through the directories, spelled as the
    /// compiler spells it: a directory as given, a slash, the name as included.
    ///
    /// If several files have the same name, the order of the directories, `include_next` and
    /// conditions decide which is read, so all of them count.
    pub(crate) fn reachable(&self, names: &[Include], dirs: &[&Path]) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut asked: BTreeSet<(Option<PathBuf>, String)> = BTreeSet::new();
        let mut queue: VecDeque<(Option<PathBuf>, Include)> =
            names.iter().map(|name| (None, name.clone())).collect();
        while let Some((beside, include)) = queue.pop_front() {
            let beside = beside.filter(|_| include.quoted);
            if !asked.insert((beside.clone(), include.path.clone())) {
                continue;
            }
            let places = beside.iter().map(PathBuf::as_path).chain(dirs.iter().copied());
            for dir in places {
                let path = dir.join(&include.path);
                let Some(includes) = self.includes(&path) else { continue };
                let parent = path.parent().map(Path::to_owned);
                if found.insert(path) {
                    queue.extend(includes.iter().map(|next| (parent.clone(), next.clone())));
                }
            }
        }
        found
    }

    fn includes(&self, path: &Path) -> Option<Arc<Vec<Include>>> {
        let mut known = self.known.lock().expect("no panic inside");
        known
            .entry(path.to_owned())
            .or_insert_with(|| {
                let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
                let text = is_file.then(|| fs::read(path).ok()).flatten()?;
                Some(Arc::new(include::scan(&text, Language::Hip)))
            })
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_in_every_directory_and_beside_their_includers() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("cxx/cmath", "#include_next <math.h>\n#  include \"bits/own.h\"\n"),
            ("cxx/bits/own.h", "#include \"beside.h\"\n"),
            ("cxx/bits/beside.h", "#ifdef NEVER\n#include <cmath>\n#endif\n"),
            ("c/math.h", ""),
            ("wrap/math.h", "#include <absent.h>\n"),
            ("c/unrelated.h", ""),
        ];
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let dirs = ["wrap", "cxx", "c"].map(|name| dir.path().join(name));
        let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
        let cmath = Include { path: "cmath".into(), quoted: false };
        let found = Headers::default().reachable(&[cmath], &dirs);
        let found: Vec<&str> = found
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap())
            .collect();
        let expected =
            ["c/math.h", "cxx/bits/beside.h", "cxx/bits/own.h", "cxx/cmath", "wrap/math.h"];
        assert_eq!(found, expected);
    }
}
