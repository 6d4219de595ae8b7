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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    fn squares(window: u64, cost: u64) -> Vec<u64> {
        let (mut at, mut out) = (0, Vec::new());
        let held = AtomicU64::new(0);
        let next = || -> Result<_, ()> {
            assert!(held.load(Ordering::Relaxed) <= window.max(cost), "the window holds");
            at += 1;
            Ok((at <= 500).then(|| {
                held.fetch_add(cost, Ordering::Relaxed);
                (at, cost)
            }))
        };
        let finish = |square| {
            held.fetch_sub(cost, Ordering::Relaxed);
            out.push(square);
            Ok(())
        };
        in_order(window, next, |n: u64| n * n, finish).unwrap();
        out
    }

    #[test]
    fn results_come_in_order_for_every_window_and_pool() {
        let expected: Vec<u64> = (1..=500).map(|n| n * n).collect();
        for threads in [1, 4] {
            for window in [0, 4096, 1 << 20, u64::MAX] {
                // From outside the pool, and on one of its own threads.
                let squares = || squares(window, 5000);
                assert_eq!(squares(), expected);
                assert_eq!(pool(threads).install(squares), expected);
            }
        }
    }

    #[test]
    fn two_pipelines_share_one_thread() {
        let (a, b) = pool(1).install(|| rayon::join(|| squares(1 << 20, 9), || squares(0, 9)));
        assert_eq!(a, b);
    }

    #[test]
    fn the_first_error_stops_the_work() {
        let mut seen = Vec::new();
        let next = || Ok(Some((1, 1)));
        let finish = |n| {
            seen.push(n);
            if seen.len() == 7 { Err("finish") } else { Ok(()) }
        };
        assert_eq!(in_order(1 << 20, next, |n| n, finish), Err("finish"));
        assert_eq!(seen.len(), 7);

        let mut at = 0;
        let next = || {
            at += 1;
            if at == 40 { Err("next") } else { Ok(Some((at, 1))) }
        };
        assert_eq!(in_order(1 << 20, next, |n| n, |_| Ok(())), Err("next"));
    }

    #[test]
    #[should_panic(expected = "worker")]
    fn a_panic_of_a_worker_is_propagated() {
        let mut left = 10;
        let next = || -> Result<_, ()> {
            left -= 1;
            Ok((left > 0).then_some((left, 1)))
        };
        let work = |n| if n == 5 { panic!("worker") } else { n };
        let _ = in_order(1 << 20, next, work, |_| Ok(()));
    }
}
