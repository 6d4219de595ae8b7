//! What the inputs come to, and what is known of them while they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gfxpack_compile::SourceSet;
use gfxpack_model::{KernelKey, Target};
use gfxpack_plan::key_list::KeyRequest;
use gfxpack_plan::plan::TargetRequest;
use gfxpack_plan::{InputError, InputFault};
use tempfile::TempDir;

use crate::kernel_library::KernelLibrary;
use crate::missing_from::{Coverage, ExistingKeys};
use crate::refused_list::SkipList;
use crate::unbuildable::{Reason, Unbuildable, Unbuilt};

/// Keys of the inputs that are not built.
#[derive(Default)]
pub(super) struct Excluded {
    /// What kdbs have.
    pub(super) present: ExistingKeys,
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

/// What the inputs come to.
pub struct ReadInputs {
    /// What each target wants. The toolchains are not chosen yet: all are 0.
    pub requests: Vec<TargetRequest>,
    /// All else that was read.
    pub inputs: Inputs,
}

/// What was read of the inputs, but for the keys that are compiled.
#[derive(Default)]
pub struct Inputs {
    /// The sources, with their bytes.
    pub sources: SourceSet,
    /// Directories with sources that a library gave. What lies beside sources is
    /// a part of stored plans, so they are kept until then.
    pub(crate) own_sources: Vec<Arc<TempDir>>,
    /// What the inputs say of themselves.
    pub library: KernelLibrary,
    /// Sources that the policy on licences rejects, with the reason.
    pub left_out: LeftOut,
    /// Of each target, what kdbs had already; empty where none were named.
    pub shares: Vec<Coverage>,
    /// Keys that can't be compiled.
    pub unbuildable: Unbuildable,
    /// What is wrong with keys of lists, where it stands: machines write those, so
    /// the other keys are built.
    pub key_errors: Vec<InputError>,
    /// What the user should hear before anything runs.
    pub warnings: Vec<String>,
    /// Of each target, the kernels that are left out because compilers refuse
    /// them.
    pub skipped: BTreeMap<Target, BTreeSet<KernelKey>>,
}

/// Takes in one input after the other, and knows what they come to so far.
#[derive(Default)]
pub(super) struct InputCollector {
    pub(super) requests: Vec<TargetRequest>,
    /// All else. Left out are only sources that Debian does not take, although
    /// their licence is free, until `leave_out` adds others.
    pub(super) inputs: Inputs,
    /// Names of sources that programs wrote.
    pub(super) generated: BTreeSet<String>,
    pub(super) excluded: Excluded,
    /// Paths in manifests at which nothing is: people write those, and have to mend
    /// them.
    pub(super) wrong_paths: Vec<InputError>,
    /// Manifests and key lists.
    pub(super) files: usize,
    /// Whether keys of MIOpen's are among the inputs.
    pub(super) for_miopen: bool,
    /// Whether any input may have kernels: not where all key lists are empty.
    pub(super) has_input: bool,
}

impl InputCollector {
    /// Notes that a key can't be built for a target.
    pub(super) fn add_unbuildable(&mut self, target: &Target, key: &KernelKey, reason: Reason) {
        let unbuilt = Unbuilt { key: key.clone(), reason };
        self.inputs.unbuildable.entry(target.clone()).or_default().push(unbuilt);
    }

    /// Notes what is wrong with a key.
    pub(super) fn note_unusable(&mut self, key: &KeyRequest, fault: InputFault) -> Reason {
        let reason = Reason::from(&fault);
        self.inputs.key_errors.push(key.location.error(fault));
        reason
    }
}
