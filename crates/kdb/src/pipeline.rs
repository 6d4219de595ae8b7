//! Work in rayon's pool, results in order, and never more in memory than a
//! window allows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// What one item weighs at least, so that many small ones are bounded too.
const MIN_COST: u64 = 4096;

/// Takes items one at a time from `next`, runs `work` on them in parallel, and
/// hands the results to `finish` in the order of the items. `next` and
/// `finish` run on the calling thread.
///
/// `next` says what each item weighs in bytes from then until `finish` has
/// returned. No item is taken while `window` bytes are under way, so that at
/// most the window and one item are held.
///
/// # Errors
/// The first error of `next` or `finish`; items under way are then dropped.
pub(crate) fn in_order<I, R, E>(
    window: u64,
    mut next: impl FnMut() -> Result<Option<(I, u64)>, E>,
    work: impl Fn(I) -> R + Sync,
    mut finish: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E>
where
    I: Send,
    R: Send,
{
    let stopped = AtomicBool::new(false);
    let (work, stopped) = (&work, &stopped);
    rayon::in_place_scope(|scope| {
        // Raised however this closure ends, so that waiting items end at once.
        let _stop = Raise(stopped);
        let (sender, results) = mpsc::channel();
        let mut costs = BTreeMap::new();
        let mut ready = BTreeMap::new();
        let (mut taken, mut finished, mut under_way) = (0_u64, 0_u64, 0_u64);
        let mut more = true;
        loop {
            while more && (taken == finished || under_way < window) {
                let Some((item, cost)) = next()? else {
                    more = false;
                    break;
                };
                let cost = cost.max(MIN_COST);
                costs.insert(taken, cost);
                under_way = under_way.saturating_add(cost);
                let answer = Answer { number: taken, sender: sender.clone(), sent: false };
                scope.spawn(move |_| {
                    if !stopped.load(Ordering::Relaxed) {
                        answer.send(work(item));
                    }
                });
                taken += 1;
            }
            if taken == finished {
                return Ok(());
            }
            match wait(&results) {
                (number, Some(result)) => ready.insert(number, result),
                // The worker panicked; the scope passes that on.
                (_, None) => return Ok(()),
            };
            while let Some(result) = ready.remove(&finished) {
                finish(result)?;
                under_way -= costs.remove(&finished).expect("one cost per item");
                finished += 1;
            }
        }
    })
}

/// The next result. On a thread of the pool itself, other work is done first:
/// it may be the only thread there is.
fn wait<T>(results: &Receiver<T>) -> T {
    loop {
        if let Ok(result) = results.try_recv() {
            return result;
        }
        if !matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) {
            return results.recv().expect("every worker answers");
        }
    }
}

/// A worker's promise to say something, were it only that it panicked.
struct Answer<R> {
    number: u64,
    sender: Sender<(u64, Option<R>)>,
    sent: bool,
}

impl<R> Answer<R> {
    fn send(mut self, result: R) {
        self.sent = true;
        // Nobody listens once the calling thread has met an error.
        let _ = self.sender.send((self.number, Some(result)));
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if !self.sent {
            let _ = self.sender.send((self.number, None));
        }
    }
}

struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
                assert_eq!(squares(window, 5000), expected);
                assert_eq!(pool(threads).install(|| squares(window, 5000)), expected);
            }
        }
    }

    #[test]
    fn two_pipelines_share_one_thread() {
        let (a, b) = pool(1).install(|| rayon::join(|| squares(1 << 20, 9), || squares(0, 9)));
        assert_eq!(a, b);
    }

    #[test]
    fn the_first_error_ends_it() {
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
    fn a_panic_is_passed_on() {
        let mut left = 10;
        let next = || -> Result<_, ()> {
            left -= 1;
            Ok((left > 0).then_some((left, 1)))
        };
        let work = |n| if n == 5 { panic!("worker") } else { n };
        let _ = in_order(1 << 20, next, work, |_| Ok(()));
    }
}
