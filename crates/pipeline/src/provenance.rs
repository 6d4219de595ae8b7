//! What a kdb records about the origin of its code objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use gfxpack_kdb::ObjectOrigin;
use gfxpack_model::{JobId, KdbId, SourceId};
use gfxpack_plan::plan::Plan;

/// The program's name and version.
pub(crate) const GENERATOR: &str = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));

/// The origins of one kdb's rows, by their source.
pub(crate) struct Provenance(BTreeMap<SourceId, Arc<ObjectOrigin>>);

impl Provenance {
    /// The origins of the objects in one of the plan's kdbs.
    pub(crate) fn from_plan(plan: &Plan, kdb: KdbId) -> Self {
        let kdb = &plan[kdb];
        let toolchain = &plan[kdb.toolchain];
        let mut origins = BTreeMap::new();
        for row in &kdb.rows {
            let index = plan[row.job].source;
            origins.entry(index).or_insert_with(|| {
                let source = &plan[index];
                Arc::new(ObjectOrigin {
                    generator: GENERATOR.to_owned(),
                    compiler: toolchain.identity.clone(),
                    compiler_digest: toolchain.digest.to_string(),
                    source: source.name.clone(),
                    source_digest: source.digest().to_string(),
                })
            });
        }
        Self(origins)
    }

    /// The origin of a job's object.
    pub(crate) fn of_job(&self, plan: &Plan, job: JobId) -> Option<Arc<ObjectOrigin>> {
        self.0.get(&plan[job].source).cloned()
    }
}
