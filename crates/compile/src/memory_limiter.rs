//! Starts jobs in the order in which they come, each only when few enough run and enough memory is
//! free.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use gfxpack_process::Cancel;

/// How often a waiting job looks at the free memory again, since other programs may free some.
const AGAIN: Duration = Duration::from_millis(200);

/// Limits the expected memory of the running jobs. One job may always run.
pub(crate) struct MemoryLimiter<'a> {
    /// The bytes that new processes can have now; `None` if not known.
    available: Box<dyn Fn() -> Option<u64> + Sync + 'a>,
    /// The bytes that this many running jobs have now.
    in_use: Box<dyn Fn(usize) -> u64 + Sync + 'a>,
    /// At most this many jobs run, whatever they need.
    most: usize,
    /// Held by the worker whose job is the next to start, so that small jobs do not overtake a
    /// large one for ever.
    turn: Mutex<()>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// The sum of their expected peaks.
    reserved: u64,
}

/// The permission to run a job, given back when it is dropped.
pub(crate) struct Permit<'a> {
    limiter: &'a MemoryLimiter<'a>,
    memory: u64,
}

impl<'a> MemoryLimiter<'a> {
    pub(crate) fn new(
        available: impl Fn() -> Option<u64> + Sync + 'a,
        in_use: impl Fn(usize) -> u64 + Sync + 'a,
        most: usize,
    ) -> Self {
        Self {
            available: Box::new(available),
            in_use: Box::new(in_use),
            most,
            turn: Mutex::default(),
            state: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Takes the next job from `next`, which returns the memory that it is expected to need, and
    /// waits until that is free. `None` if there is no next job or the build was cancelled.
    pub(crate) fn acquire<T>(
        &self,
        cancel: &Cancel,
        next: impl FnOnce() -> Option<(T, u64)>,
    ) -> Option<(T, Permit<'_>)> {
        let _turn = self.turn.lock().expect("no panic inside");
        let (job, memory) = next()?;
        let mut state = self.state.lock().expect("no panic inside");
        while !self.fits(&state, memory) {
            state = self.left.wait_timeout(state, AGAIN).expect("no panic inside").0;
            if cancel.is_cancelled() {
                return None;
            }
        }
        state.running += 1;
        state.reserved += memory;
        Some((job, Permit { limiter: self, memory }))
    }

    fn fits(&self, state: &State, memory: u64) -> bool {
        if state.running == 0 {
            return true;
        }
        if state.running >= self.most {
            return false;
        }
        let Some(available) = (self.available)() else { return true };
        // Available memory already excludes that of the running jobs, so they are counted twice
        // here; it is nearly always enough all the same.
        if available >= state.reserved.saturating_add(memory) {
            return true;
        }
        // The order matters: memory that jobs take between the two calls must not count both as
        // theirs and as available.
        let still_needed = state.reserved.saturating_sub((self.in_use)(state.running));
        let available = (self.available)().unwrap_or(u64::MAX);
        available >= still_needed.saturating_add(memory)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.limiter.state.lock().expect("no panic inside");
        state.running -= 1;
        state.reserved -= self.memory;
        self.limiter.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::*;

    /// Of a machine with 1000 bytes, of which running jobs have `used`.
    fn limiter(used: &AtomicU64, most: usize) -> MemoryLimiter<'_> {
        let used = move || used.load(Ordering::SeqCst);
        MemoryLimiter::new(move || Some(1000 - used()), move |_| used(), most)
    }

    fn fits(limiter: &MemoryLimiter<'_>, memory: u64) -> bool {
        limiter.fits(&limiter.state.lock().unwrap(), memory)
    }

    fn start<'a>(limiter: &'a MemoryLimiter<'a>, memory: u64) -> Permit<'a> {
        limiter.acquire(&Cancel::default(), || Some(((), memory))).unwrap().1
    }

    #[test]
    fn memory_that_running_jobs_will_need_is_reserved_and_counted_once() {
        let used = AtomicU64::new(0);
        let limiter = limiter(&used, 8);
        let first = start(&limiter, 400);
        // The first has only begun: it will still need all of its memory.
        assert!(fits(&limiter, 600) && !fits(&limiter, 601));
        // Now it has three quarters of that, which available memory excludes.
        used.store(300, Ordering::SeqCst);
        assert!(fits(&limiter, 600) && !fits(&limiter, 601));
        // It takes more than expected.
        used.store(500, Ordering::SeqCst);
        assert!(fits(&limiter, 500) && !fits(&limiter, 501));
        drop(first);
        assert!(fits(&limiter, 5000), "one may always run");
    }

    #[test]
    fn running_jobs_never_need_more_memory_than_the_machine_has() {
        let used = AtomicU64::new(0);
        let limiter = limiter(&used, 8);
        let next = AtomicUsize::new(0);
        let most = AtomicU64::new(0);
        let sizes: Vec<u64> = (0..400).map(|n: u64| 100 + n * 7919 % 500).collect();
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let take = || {
                        let size = *sizes.get(next.fetch_add(1, Ordering::SeqCst))?;
                        Some((size, size))
                    };
                    while let Some((size, permit)) = limiter.acquire(&cancel, take) {
                        let all = used.fetch_add(size, Ordering::SeqCst) + size;
                        most.fetch_max(all, Ordering::SeqCst);
                        std::thread::yield_now();
                        used.fetch_sub(size, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert!(next.into_inner() >= sizes.len(), "every job ran");
        assert!(most.load(Ordering::SeqCst) <= 1000, "{most:?}");
    }

    #[test]
    fn a_large_job_is_not_overtaken() {
        let used = AtomicU64::new(0);
        let limiter = limiter(&used, 8);
        let running = start(&limiter, 300);
        let (cancel, taken) = (Cancel::default(), AtomicUsize::new(0));
        let order = Mutex::new(Vec::new());
        let enter = |memory: u64| {
            let take = || {
                taken.fetch_add(1, Ordering::SeqCst);
                Some(((), memory))
            };
            let _permit = limiter.acquire(&cancel, take).unwrap();
            order.lock().unwrap().push(memory);
        };
        std::thread::scope(|scope| {
            // Each is so large that none runs beside it, so the order is certain.
            scope.spawn(|| enter(1000));
            while taken.load(Ordering::SeqCst) < 1 {
                std::thread::yield_now();
            }
            // There would be room for these, but it is not their turn.
            let small = [scope.spawn(|| enter(100)), scope.spawn(|| enter(100))];
            assert_eq!(taken.load(Ordering::SeqCst), 1);
            drop(running);
            small.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(order.into_inner().unwrap(), [1000, 100, 100]);
        assert_eq!(limiter.state.lock().unwrap().reserved, 0);
    }

    #[test]
    fn at_most_the_given_number_of_jobs_runs() {
        let used = AtomicU64::new(0);
        let limiter = limiter(&used, 2);
        let running = [start(&limiter, 1), start(&limiter, 1)];
        assert!(!fits(&limiter, 1));
        drop(running);
        assert!(fits(&limiter, 1));
    }

    #[test]
    fn cancelling_ends_waiting() {
        let used = AtomicU64::new(0);
        let limiter = limiter(&used, 8);
        let _running = start(&limiter, 300);
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| limiter.acquire(&cancel, || Some(((), 900))).is_none());
            cancel.cancel();
            assert!(waiting.join().unwrap());
        });
    }
}
