//! What compilers see, in the form in which the preloaded library looks it up.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the compilers, assemblers and linkers of a run may see. All paths are absolute, as the
/// compilers look them up: the text decides, with its `..` and whatever its links lead to, but `//`,
/// `/./` and a `/` at the end make no difference.
///
/// They see the directories above all of these too, but not what else is in them, and what every
/// program needs: `/dev/null`, `/dev/urandom`, its own file and its open ones.
#[derive(Debug, Clone, Default)]
pub struct Visible {
    /// The directory in which they run, without links. Nothing but visible files is in it, nor in
    /// the 24 directories above it: paths may lead there by as many `..`.
    pub stage: PathBuf,
    /// Directories in which everything is visible, by paths without further `..`. What a run may
    /// write is visible like these.
    pub dirs: Vec<PathBuf>,
    /// Likewise, by paths with any `..` that stay below. No directory below is a link.
    pub trees: Vec<PathBuf>,
    /// Files by their very names, and directories, which may not be listed.
    pub names: Vec<PathBuf>,
}

/// What a name in the list is. Of several, the last one counts.
///
/// The same as in `preload/visible.c`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Name = 1,
    /// A directory above others.
    Above,
    /// Likewise; by `..`, a path may lead to everything below.
    Top,
    /// The directory of open files, by number.
    Open,
    /// A directory with all below.
    Below,
    /// Likewise, and no directory below is a link.
    Tree,
    Stage,
}

const ALWAYS: [(&str, Role); 5] = [
    ("/dev/null", Role::Name),
    ("/dev/urandom", Role::Name),
    ("/proc/self/exe", Role::Name),
    ("/proc/self/fd", Role::Open),
    ("/dev/fd", Role::Open),
];

/// How many `..` a path may have that starts at the stage.
const MAX_UPS: usize = 24;

impl Visible {
    /// The list in the form of `preload/visible.c`.
    pub(super) fn list<'a>(&'a self, writable: impl Iterator<Item = &'a Path>) -> Vec<u8> {
        let is_dir = |path: &&Path| path.parent().is_some();
        let top = self.stage.ancestors().nth(MAX_UPS).filter(is_dir);
        let dirs = self.dirs.iter().map(PathBuf::as_path).chain(writable);
        let paths = [(self.stage.as_path(), Role::Stage)]
            .into_iter()
            .chain(top.map(|top| (top, Role::Top)))
            .chain(dirs.map(|dir| (dir, Role::Below)))
            .chain(self.trees.iter().map(|dir| (dir.as_path(), Role::Tree)))
            .chain(self.names.iter().map(|name| (name.as_path(), Role::Name)))
            .chain(ALWAYS.map(|(path, role)| (Path::new(path), role)));
        let texts: Vec<(Vec<u8>, Role)> = paths
            .filter(|(path, _)| path.is_absolute())
            .map(|(path, role)| (text(path), role))
            .collect();
        let mut roles: HashMap<&[u8], Role> = HashMap::with_capacity(2 * texts.len());
        for (text, role) in &texts {
            let known = roles.entry(text).or_insert(*role);
            *known = (*known).max(*role);
            let slashes = (0..text.len()).rev().filter(|&at| text[at] == b'/');
            for above in slashes.map(|at| &text[..at]) {
                let known = roles.insert(above, Role::Above);
                if let Some(known) = known {
                    roles.insert(above, known.max(Role::Above));
                    break;
                }
            }
        }
        table(&roles)
    }
}

/// A path without needless parts; nothing for the root.
fn text(path: &Path) -> Vec<u8> {
    let path = path.as_os_str().as_bytes();
    let mut text = Vec::with_capacity(path.len());
    for part in path.split(|byte| *byte == b'/').filter(|part| !matches!(part, [] | [b'.'])) {
        text.push(b'/');
        text.extend_from_slice(part);
    }
    text
}

fn table(roles: &HashMap<&[u8], Role>) -> Vec<u8> {
    const WORD: usize = size_of::<u32>();
    let word = |number: usize| u32::try_from(number).expect("paths are shorter").to_ne_bytes();
    let slots = (2 * roles.len()).next_power_of_two();
    let mut table = word(slots).to_vec();
    table.resize(WORD * (1 + slots), 0);
    for (text, role) in roles {
        let hash = text.iter().fold(2_166_136_261_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)
        });
        let places = (0..slots).map(|step| WORD * (1 + ((hash as usize + step) & (slots - 1))));
        let is_free = |at: &usize| table[*at..at + WORD] == [0; WORD];
        let at = places.into_iter().find(is_free).expect("half of them are free");
        let entry = word(table.len());
        table[at..at + WORD].copy_from_slice(&entry);
        table.push(*role as u8);
        table.extend_from_slice(text);
        table.push(0);
    }
    table
}

#[cfg(test)]
mod tests;
