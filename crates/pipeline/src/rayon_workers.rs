//! The threads that planning may use: those of rayon's pool.

use gfxpack_plan::workers::Workers;
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _,
};

/// Handing an item to a thread takes as long as a few of them.
const ITEMS_WORTH_A_THREAD: usize = 256;

/// In rayon's current pool.
pub(crate) struct RayonWorkers;

impl Workers for RayonWorkers {
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
        items.par_iter().with_min_len(ITEMS_WORTH_A_THREAD).map(work).collect()
    }
}
