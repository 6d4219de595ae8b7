//! Lets planning use the threads of rayon's pool.

use gfxpack_plan::workers::Workers;
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _,
};

/// Passing items to a thread costs as much as a few items, so it gets at least
/// this many.
const ITEMS_WORTH_A_THREAD: usize = 256;

/// Runs work in rayon's current pool.
pub(crate) struct RayonWorkers;

impl Workers for RayonWorkers {
    fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
        items.par_iter().with_min_len(ITEMS_WORTH_A_THREAD).map(work).collect()
    }
}
