//! Runs work in rayon's pool, returns results in order, and holds no more in
//! memory than a window allows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// The least cost of one item, so that many small ones are bounded too.
const MIN_COST: u64 = 4096;

/// The largest cost of one item, whatever `next` returns, so that sums do not
/// overflow.
const MAX_COST: u64 = 1 << 40;

/// Bytes up to which items are passed to a thread together: passing one on
/// takes as long as the MD5 of a few kilobytes, and a thread that waits for the
/// next batch polls for it.
const BATCH: u64 = 512 << 10;

/// The least number of batches in a window, so that all threads have work.
const MIN_BATCHES: u64 = 8;

/// Takes items one at a time from `next`, runs `work` on them in parallel, and
/// passes the results to `finish` in the order of the items. `next` and
/// `finish` run on the calling thread. What `finish` returns is dropped in the
/// pool, since all other threads wait for the calling thread.
///
/// `next` also returns how many bytes each item takes, from then until the
/// value of `finish` is dropped. No item is taken while `window` bytes are in
/// use, so at most the window and one item are held.
///
/// # Errors
/// The first error of `next` or `finish`; items in progress are then dropped.
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
    let (stopped, work) = (&stopped, &work);
    rayon::in_place_scope(|scope| {
        // Set however this closure ends, so that waiting items end at once.
        let _stop = SetOnDrop(stopped);
        let (sender, messages) = mpsc::channel();
        let costs = VecDeque::new();
        let mut queue = Queue { scope, stopped, work, sender, costs, begun: 0, weight: 0 };
        let mut ready = BTreeMap::new();
        let mut done = 0;
        let mut more = true;
        loop {
            while more && queue.has_room(window) {
                let (batch, cost);
                (batch, cost, more) = next_batch(&mut next, queue.weight, window)?;
                if !batch.is_empty() {
                    queue.start(batch, cost);
                }
            }
            if done == queue.begun && !more {
                return Ok(());
            }
            match wait(&messages) {
                Message::Done(number, results) => {
                    ready.insert(number, results);
                }
                Message::Dropped(cost) => queue.weight -= cost,
                // The worker panicked; the scope propagates the panic.
                Message::Panicked => return Ok(()),
            }
            while let Some(results) = ready.remove(&done) {
                let rest = results.into_iter().map(&mut finish).collect::<Result<Vec<T>, E>>()?;
                done += 1;
                queue.drop_results(rest);
            }
        }
    })
}

/// Items for one thread, their cost, and whether there are more. `weight` is
/// the cost of all batches in progress.
fn next_batch<I, E>(
    next: &mut impl FnMut() -> Result<Option<(I, u64)>, E>,
    weight: u64,
    window: u64,
) -> Result<(Vec<I>, u64, bool), E> {
    let batch = BATCH.min(window / MIN_BATCHES);
    let (mut items, mut cost) = (Vec::new(), 0_u64);
    let full = |cost: u64| {
        let weight = weight + cost;
        (cost > 0 && cost >= batch) || (weight > 0 && weight >= window)
    };
    while !full(cost) {
        let Some((item, item_cost)) = next()? else { return Ok((items, cost, false)) };
        items.push(item);
        cost += item_cost.clamp(MIN_COST, MAX_COST);
    }
    Ok((items, cost, true))
}

/// The batches that were passed to the pool.
struct Queue<'a, 's, 'scope, R, W> {
    scope: &'a rayon::Scope<'scope>,
    stopped: &'s AtomicBool,
    work: &'s W,
    sender: Sender<Message<R>>,
    /// Costs of the unfinished batches, in order.
    costs: VecDeque<u64>,
    /// Number of batches started so far.
    begun: u64,
    /// Cost of all batches in progress.
    weight: u64,
}

impl<'s: 'scope, 'scope, R: Send + 'scope, W: Sync> Queue<'_, 's, 'scope, R, W> {
    fn has_room(&self, window: u64) -> bool {
        self.weight == 0 || self.weight < window
    }

    fn start<I: Send + 'scope>(&mut self, items: Vec<I>, cost: u64)
    where
        W: Fn(I) -> R,
    {
        self.weight += cost;
        self.costs.push_back(cost);
        let (number, reply) = (self.begun, self.reply());
        let (stopped, work) = (self.stopped, self.work);
        self.scope.spawn(move |_| {
            let goes_on = |_: &I| !stopped.load(Ordering::Relaxed);
            let results: Vec<R> = items.into_iter().take_while(goes_on).map(work).collect();
            if !stopped.load(Ordering::Relaxed) {
                reply.send(Message::Done(number, results));
            }
        });
        self.begun += 1;
    }

    /// Drops the values that `finish` returned for the oldest batch, in the
    /// pool.
    fn drop_results<T: Send + 'scope>(&mut self, rest: Vec<T>) {
        let cost = self.costs.pop_front().expect("one cost per batch");
        if size_of::<T>() == 0 {
            self.weight -= cost;
            return;
        }
        let reply = self.reply();
        self.scope.spawn(move |_| {
            drop(rest);
            reply.send(Message::Dropped(cost));
        });
    }

    fn reply(&self) -> Reply<R> {
        Reply { sender: self.sender.clone(), sent: false }
    }
}

/// Waits for the next message. A thread of the pool does other work meanwhile:
/// it may be the only thread.
fn wait<T>(messages: &Receiver<T>) -> T {
    loop {
        if let Ok(message) = messages.try_recv() {
            return message;
        }
        if !matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) {
            return messages.recv().expect("every worker replies");
        }
    }
}

/// Messages from workers to the calling thread.
enum Message<R> {
    /// Number and results of a finished batch.
    Done(u64, Vec<R>),
    /// Values of this cost were dropped.
    Dropped(u64),
    Panicked,
}

/// Sends one message for a worker; if the worker panics, [`Message::Panicked`].
struct Reply<R> {
    sender: Sender<Message<R>>,
    sent: bool,
}

impl<R> Reply<R> {
    fn send(mut self, message: Message<R>) {
        self.sent = true;
        // The receiver is gone after an error on the calling thread.
        let _ = self.sender.send(message);
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if !self.sent {
            let _ = self.sender.send(Message::Panicked);
        }
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
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
