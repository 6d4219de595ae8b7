//! What is known of the inputs while they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gfxpack_compile::SourceSet;
use gfxpack_model::{KernelKey, Target};
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_plan::plan::TargetRequest;
use gfxpack_plan::{InputError, InputFault};
use tempfile::TempDir;

use crate::kernel_library::KernelLibrary;
use crate::missing_from::Present;
use crate::refused_list::SkipList;
use crate::unbuildable::{Reason, Unbuildable, Unbuilt};

/// Keys of the inputs that are not built.
#[derive(Default)]
pub(super) struct Excluded {
    /// What kdbs have.
    pub(super) present: Present,
    /// How many keys that is of a target's.
    pub(super) had: BTreeMap<Target, usize>,
    /// What the lists of `--skip-refused` name.
    pub(super) skip_list: SkipList,
}

impl Excluded {
    /// Whether a key is not built for a target; counts it.
    pub(super) fn has(&mut self, target: &Target, key: &KernelKey) -> bool {
        if self.present.has(target, key) {
            *self.had.entry(target.clone()).or_default() += 1;
            return true;
        }
        self.skip_list.skips(target, key)
    }
}

/// Sources that are not compiled because of their licence, with the reason.
pub type LeftOut = BTreeMap<String, String>;

/// Takes in one input after the other, and knows what they come to so far.
#[derive(Default)]
pub(super) struct InputCollector {
    pub(super) requests: Vec<TargetRequest>,
    pub(super) sources: SourceSet,
    /// Directories with sources that a library gave.
    pub(super) own_sources: Vec<Arc<TempDir>>,
    pub(super) library: KernelLibrary,
    /// Names of sources that programs wrote.
    pub(super) generated: BTreeSet<String>,
    pub(super) excluded: Excluded,
    /// Paths in manifests at which nothing is: people write those, and have to mend
    /// them.
    pub(super) wrong_paths: Vec<InputError>,
    /// What is wrong with keys of lists: machines write those, so the other keys are
    /// built.
    pub(super) key_errors: Vec<InputError>,
    pub(super) unbuildable: Unbuildable,
    pub(super) warnings: Vec<String>,
    /// Manifests and key lists.
    pub(super) files: usize,
    /// Whether keys of MIOpen's are among the inputs.
    pub(super) for_miopen: bool,
    /// Whether any input may have kernels: not where all key lists are empty.
    pub(super) has_input: bool,
    /// Sources that Debian does not take, although their licence is free.
    pub(super) left_out_by_debian: LeftOut,
}

impl InputCollector {
    /// Notes that a key can't be built for a target.
    pub(super) fn add_unbuildable(&mut self, target: &Target, key: &KernelKey, reason: Reason) {
        let unbuilt = Unbuilt { key: key.clone(), reason };
        self.unbuildable.entry(target.clone()).or_default().push(unbuilt);
    }

    /// Notes what is wrong with a key.
    pub(super) fn note_unusable(&mut self, key: &KeyRequest, fault: InputFault) -> Reason {
        let reason = Reason::from(&fault);
        self.key_errors.push(key.location.error(fault));
        reason
    }
}
