//! What a kdb records about the origin of its code objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use gfxpack_kdb::ObjectOrigin;
use gfxpack_model::{KdbId, SourceId};
use gfxpack_plan::plan::Plan;

/// The program's name and version.
pub(crate) const GENERATOR: &str = concat!("gfxpack ", env!("CARGO_PKG_VERSION"));

/// The origins of the objects in one of the plan's kdbs, by their source.
pub(crate) fn origins(plan: &Plan, kdb: KdbId) -> BTreeMap<SourceId, Arc<ObjectOrigin>> {
    let kdb = &plan[kdb];
    let toolchain = &plan[kdb.toolchain];
    let origin = |id: SourceId| ObjectOrigin {
        generator: GENERATOR.to_owned(),
        compiler: toolchain.identity.clone(),
        compiler_digest: toolchain.digest.to_string(),
        source: plan[id].name.clone(),
        source_digest: plan[id].digest().to_string(),
    };
    let mut origins = BTreeMap::new();
    for row in &kdb.rows {
        let source = plan[row.job].source;
        origins.entry(source).or_insert_with(|| Arc::new(origin(source)));
    }
    origins
}
