//! The state of files and directories as one digest, by what tells a changed
//! one: is it there, which file is it, and when did it change last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use gfxpack_process::Identity;

/// What was found at some paths, links followed.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Nothing where a path leads to nothing.
    states: BTreeMap<PathBuf, Option<Identity>>,
    /// Directories that hold what is not there, whose times tell when it may
    /// have gone.
    holders: BTreeMap<PathBuf, Identity>,
    /// Directories that were looked into, by whatever name.
    entered: BTreeSet<(u64, u64)>,
}

impl Witness {
    /// Looks at what a path leads to. A directory's own state shows names
    /// that come, go, or lead elsewhere, not what lies behind them.
    pub(crate) fn look(&mut self, path: &Path) {
        if self.states.contains_key(path) {
            return;
        }
        let found = identity(path);
        if found.is_none() {
            let holder = path.ancestors().skip(1).find_map(|dir| Some((dir, identity(dir)?)));
            self.holders.extend(holder.map(|(dir, identity)| (dir.to_owned(), identity)));
        }
        self.states.insert(path.to_owned(), found);
    }

    /// Looks at a directory and at each of its entries.
    pub(crate) fn look_into(&mut self, dir: &Path) {
        self.look(dir);
        let place = self.states.get(dir).copied().flatten().map(Identity::place);
        if place.is_none_or(|place| !self.entered.insert(place)) {
            return;
        }
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            // Of what leads nowhere there is nothing to tell the time by, and
            // the name's coming and going shows in the directory.
            let found = identity(&path);
            self.states.entry(path).or_insert(found);
        }
    }

    /// One digest of everything that was seen.
    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("gfxpack witness 1");
        for (path, state) in &self.states {
            hasher = hasher.field(path.as_os_str().as_encoded_bytes());
            hasher = hasher.field(&state.map_or_else(Vec::new, Identity::bytes));
        }
        hasher.finish()
    }

    /// Whether nothing has changed since `seconds` after 1970, nor shortly
    /// before, when the times might not tell.
    pub(crate) fn was_settled(&self, seconds: u64) -> bool {
        let mut seen = self.states.values().flatten().chain(self.holders.values());
        seen.all(|identity| identity.was_settled(seconds))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|meta| Identity::of(&meta))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whatever_becomes_of_a_path_shows() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        fs::write(at("bin/program"), "1").unwrap();
        fs::write(at("other"), "1").unwrap();
        symlink("bin/program", at("link")).unwrap();
        let see = || {
            let mut witness = Witness::default();
            for path in ["link", "none", "none/below"] {
                witness.look(&at(path));
            }
            witness.look_into(&at("bin"));
            witness.digest()
        };
        let mut before = see();
        assert_eq!(before, see());
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(at("bin/program"), "12").unwrap(),
            &|| fs::write(at("bin/new"), "").unwrap(),
            &|| fs::rename(at("bin/new"), at("bin/newer")).unwrap(),
            &|| fs::write(at("none"), "").unwrap(),
            &|| fs::remove_file(at("none")).unwrap(),
            &|| {
                fs::remove_file(at("link")).unwrap();
                symlink("other", at("link")).unwrap();
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            change();
            let after = see();
            assert_ne!(before, after, "change {number}");
            before = after;
        }
    }

    #[test]
    fn what_changed_after_that_time_or_just_before_is_not_settled() {
        let dir = tempfile::tempdir().unwrap();
        let changed = Identity::of(&fs::metadata(dir.path()).unwrap()).changed_seconds();
        for path in [dir.path().to_owned(), dir.path().join("none")] {
            let mut witness = Witness::default();
            witness.look(&path);
            assert!(!witness.was_settled(changed - 1000));
            assert!(!witness.was_settled(changed + 1));
            assert!(witness.was_settled(changed + 1000));
        }
    }
}
