//! What a kdb records of its code objects' making.

use std::collections::BTreeMap;
use std::sync::Arc;

use gfxpack_kdb::Origin;
use gfxpack_plan::plan::Plan;

/// The program's name and version.
pub(crate) const GENERATOR: &str = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));

/// The origins of one kdb's rows, by their source's place in the plan.
pub(crate) struct Provenance(BTreeMap<usize, Arc<Origin>>);

impl Provenance {
    /// What the plan says of one of its kdbs.
    pub(crate) fn of(plan: &Plan, kdb: usize) -> Self {
        let kdb = &plan.kdbs[kdb];
        let toolchain = &plan.toolchains[kdb.toolchain];
        let mut origins = BTreeMap::new();
        for row in &kdb.rows {
            let index = plan.jobs[row.job].source;
            origins.entry(index).or_insert_with(|| {
                let source = &plan.sources[index];
                Arc::new(Origin {
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

    /// The origin of what a job makes.
    pub(crate) fn of_job(&self, plan: &Plan, job: usize) -> Option<Arc<Origin>> {
        self.0.get(&plan.jobs[job].source).cloned()
    }
}
