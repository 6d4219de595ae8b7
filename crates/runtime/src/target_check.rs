//! Checks whether bytes are code for the device.

use gfxpack_model::code_object::{self, CodeObjectError};
use gfxpack_model::{TargetId, processors};

use crate::miss::MissReason;

/// The device that code objects are checked against.
#[derive(Debug)]
pub(crate) struct TargetCheck {
    device: TargetId,
}

impl TargetCheck {
    /// Unspecified XNACK is off, as in the names of the files.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::InitDbId`.
    pub(crate) fn new(device: &TargetId) -> Self {
        let has_xnack =
            processors::by_name(device.processor()).is_some_and(|processor| processor.xnack);
        let xnack = device.xnack().or(has_xnack.then_some(false));
        Self { device: device.clone().with_features(device.sramecc(), xnack) }
    }

    /// Returns why the bytes must not be returned to the caller.
    pub(crate) fn check(&self, code_object: &[u8]) -> Result<(), MissReason> {
        let Self { device } = self;
        match code_object::targets(code_object) {
            Ok(targets) if targets.iter().any(|target| target.serves(device)) => Ok(()),
            Ok(targets) => Err(MissReason::OtherTarget(targets)),
            // A device newer than the table of processors: its number can't be
            // checked, but the key names it.
            Err(CodeObjectError::Processor(_))
                if processors::by_name(device.processor()).is_none() =>
            {
                Ok(())
            }
            Err(error) => Err(MissReason::NoCodeObject(error)),
        }
    }
}
