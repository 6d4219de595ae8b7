//! Which keys of the inputs are left out: those that kdbs have, and those that
//! compilers refuse.

use std::collections::BTreeMap;

use gfxpack_model::{KernelKey, Target};

use crate::missing_from::Present;
use crate::refused_list::SkipList;

/// Keys of the inputs that are not built.
#[derive(Default)]
pub(super) struct Excluded {
    /// What kdbs have.
    pub(super) present: Present,
    /// How many keys that is of a target's.
    pub(super) had: BTreeMap<Target, usize>,
    /// What compilers refuse.
    pub(super) refused: SkipList,
}

impl Excluded {
    /// Whether a key is not built for a target; counts it.
    pub(super) fn has(&mut self, target: &Target, key: &KernelKey) -> bool {
        if self.present.has(target.id(), key) {
            *self.had.entry(target.clone()).or_default() += 1;
            return true;
        }
        self.refused.skips(target, key)
    }
}
