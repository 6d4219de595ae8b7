//! Runs work in rayon's pool, returns results in order, and holds no more in
//! memory than a window allows.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

/// The least cost of one item, so that many small ones are bounded too, and the
/// largest, whatever `next` returns, so that sums do not overflow.
const COSTS: (u64, u64) = (4096, 1 << 40);

/// Takes items one at a time from `next`, runs `work` on them in parallel, and
/// passes the results to `finish` in the order of the items. `next` and
/// `finish` run on the calling thread: while the pool works on one batch, they
/// finish the batch before it, and take the next one.
///
/// `next` also returns how many bytes each item takes, until it is finished. No
/// item is taken while `window` bytes are in use, so at most the window and one
/// item are held.
///
/// # Errors
/// The first error of `next` or `finish`; items in progress are then dropped.
pub(crate) fn in_order<I: Send, R: Send, E>(
    window: u64,
    mut next: impl FnMut() -> Result<Option<(I, u64)>, E>,
    work: impl Fn(I) -> R + Sync,
    mut finish: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let stopped = AtomicBool::new(false);
    let mut results: Vec<R> = Vec::new();
    let (mut batch, mut weight, mut more) = (Vec::new(), 0, true);
    while more || !batch.is_empty() || !results.is_empty() {
        let (items, held) = (std::mem::take(&mut batch), std::mem::take(&mut weight));
        let mut worked = Vec::new();
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                let go_on = |item| (!stopped.load(Ordering::Relaxed)).then(|| work(item));
                worked = items.into_par_iter().filter_map(go_on).collect();
            });
            let mut meanwhile = || {
                std::mem::take(&mut results).into_iter().try_for_each(&mut finish)?;
                let full = |weight| weight >= window / 2 || held + weight >= window;
                while more && (held + weight == 0 || !full(weight)) {
                    match next()? {
                        None => more = false,
                        Some((item, cost)) => {
                            batch.push(item);
                            weight += cost.clamp(COSTS.0, COSTS.1);
                        }
                    }
                }
                Ok(())
            };
            meanwhile().inspect_err(|_| stopped.store(true, Ordering::Relaxed))
        })?;
        results = worked;
    }
    Ok(())
}
