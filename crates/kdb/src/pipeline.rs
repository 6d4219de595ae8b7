//! Work in rayon's pool, results in order, and never more in memory than a
//! window allows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// What one item weighs at least, so that many small ones are bounded too.
const MIN_COST: u64 = 4096;

/// What one item weighs at most, whatever is said of it, so that sums hold.
const MAX_COST: u64 = 1 << 40;

/// Bytes up to which items go to a thread together: handing them over takes as
/// long as the MD5 of a few kilobytes, and a thread that waits for the next
/// batch looks for it again and again.
const BATCH: u64 = 512 << 10;

/// The least number of batches in a window, for the threads to share.
const MIN_BATCHES: u64 = 8;

/// Takes items one at a time from `next`, runs `work` on them in parallel, and
/// hands the results to `finish` in the order of the items. `next` and `finish`
/// run on the calling thread. What `finish` returns is dropped in the pool: the
/// calling thread is the one that all others wait for.
///
/// `next` says what each item weighs in bytes from then until all of it is
/// dropped. No item is taken while `window` bytes are under way, so that at
/// most the window and one item are held.
///
/// # Errors
/// The first error of `next` or `finish`; items under way are then dropped.
pub(crate) fn in_order<I, R, T, E>(
    window: u64,
    mut next: impl FnMut() -> Result<Option<(I, u64)>, E>,
    work: impl Fn(I) -> R + Sync,
    mut finish: impl FnMut(R) -> Result<T, E>,
) -> Result<(), E>
where
    I: Send,
    R: Send,
    T: Send,
{
    let stopped = AtomicBool::new(false);
    let (work, stopped) = (&work, &stopped);
    let batch = BATCH.min(window / MIN_BATCHES);
    rayon::in_place_scope(|scope| {
        // Raised however this closure ends, so that waiting items end at once.
        let _stop = Raise(stopped);
        let (sender, said) = mpsc::channel();
        let mut costs = VecDeque::new();
        let mut ready = BTreeMap::new();
        // Batches begun and done, and what is under way weighs.
        let (mut begun, mut done, mut under_way) = (0_u64, 0_u64, 0_u64);
        let mut more = true;
        loop {
            while more && (under_way == 0 || under_way < window) {
                let (mut items, mut cost) = (Vec::new(), 0_u64);
                let full = |cost: u64| {
                    let under_way = under_way + cost;
                    (cost > 0 && cost >= batch) || (under_way > 0 && under_way >= window)
                };
                while !full(cost) {
                    let Some((item, item_cost)) = next()? else {
                        more = false;
                        break;
                    };
                    items.push(item);
                    cost += item_cost.clamp(MIN_COST, MAX_COST);
                }
                if items.is_empty() {
                    break;
                }
                under_way += cost;
                costs.push_back(cost);
                let answer = Answer { sender: sender.clone(), sent: false };
                scope.spawn(move |_| {
                    let goes_on = |_: &I| !stopped.load(Ordering::Relaxed);
                    let results: Vec<R> = items.into_iter().take_while(goes_on).map(work).collect();
                    if !stopped.load(Ordering::Relaxed) {
                        answer.send(Said::Done(begun, results));
                    }
                });
                begun += 1;
            }
            if done == begun && !more {
                return Ok(());
            }
            match wait(&said) {
                Said::Done(number, results) => {
                    ready.insert(number, results);
                }
                Said::Dropped(cost) => under_way -= cost,
                // The worker panicked; the scope passes that on.
                Said::Panicked => return Ok(()),
            }
            while let Some(results) = ready.remove(&done) {
                let cost = costs.pop_front().expect("one cost per batch");
                let mut rest = Vec::with_capacity(results.len());
                for result in results {
                    rest.push(finish(result)?);
                }
                done += 1;
                if size_of::<T>() == 0 {
                    under_way -= cost;
                    continue;
                }
                let answer = Answer { sender: sender.clone(), sent: false };
                scope.spawn(move |_| {
                    drop(rest);
                    answer.send(Said::Dropped(cost));
                });
            }
        }
    })
}

/// The next thing said. On a thread of the pool itself, other work is done
/// first: it may be the only thread there is.
fn wait<T>(said: &Receiver<T>) -> T {
    loop {
        if let Ok(said) = said.try_recv() {
            return said;
        }
        if !matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) {
            return said.recv().expect("every worker answers");
        }
    }
}

/// What workers say.
enum Said<R> {
    /// The results of the batch of that number.
    Done(u64, Vec<R>),
    /// What weighed so much is no more.
    Dropped(u64),
    Panicked,
}

/// A worker's promise to say something, were it only that it panicked.
struct Answer<R> {
    sender: Sender<Said<R>>,
    sent: bool,
}

impl<R> Answer<R> {
    fn send(mut self, said: Said<R>) {
        self.sent = true;
        // Nobody listens once the calling thread has met an error.
        let _ = self.sender.send(said);
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if !self.sent {
            let _ = self.sender.send(Said::Panicked);
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
