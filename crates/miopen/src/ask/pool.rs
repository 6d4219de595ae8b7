//! Workers that share tasks: each is a thread here and a process of the probe.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use gfxpack_model::Result;
use gfxpack_stock_library::DeviceFault;

use crate::failure::Failure;
use crate::probe::{Probe, ProbeAnswer, ask, cancelled_error};
use crate::setup::Setup;

/// How often a probe is started again after it has ended by itself.
const MAX_STARTS: usize = 20;
/// How often the caller is asked whether to go on.
const TICK: Duration = Duration::from_millis(50);
/// The most answers that wait to be handled.
const WAITING: usize = 64;

/// Runs `count` tasks with that many threads, each with a state of its own, and handles the results
/// in the order in which they come.
///
/// # Errors
/// The first error of `act`; that of a cancelled request if `cancel` returns true.
pub(crate) fn in_parallel<S: Default, T: Send>(
    count: usize,
    workers: usize,
    cancel: &dyn Fn() -> bool,
    act: &(impl Fn(&mut S, usize, &(dyn Fn() -> bool + Sync)) -> Result<T> + Sync),
    each: &mut dyn FnMut(usize, T),
) -> Result {
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.clamp(1, count.max(1)))
            .map(|_| {
                let sender = sender.clone();
                let (stop, next) = (&stop, &next);
                scope.spawn(move || -> Result {
                    let mut state = S::default();
                    let stopped = || stop.load(Ordering::Relaxed);
                    while !stopped() {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            break;
                        }
                        let done = act(&mut state, number, &stopped)
                            .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                        if sender.send((number, done)).is_err() {
                            break;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        drop(sender);
        let mut cancelled = false;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((number, done)) => each(number, done),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if !cancelled && cancel() {
                cancelled = true;
                stop.store(true, Ordering::Relaxed);
            }
        }
        let mut result = if cancelled { Err(cancelled_error()) } else { Ok(()) };
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // A thread that stopped because another one failed has no result.
            if result.as_ref().err().is_none_or(|error| error.is_interrupted() && !cancelled) {
                result = ended;
            }
        }
        result
    })
}

/// A probe, and the setup to start it again.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    setup: Setup<'a>,
    /// The last one runs. Workers of those before may still be at work.
    probes: Mutex<Vec<Probe>>,
}

/// A thread's connection to a process of the probe.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    worker: Option<UnixStream>,
    /// Whether the worker has answered.
    proven: bool,
}

impl<'a> Pool<'a> {
    pub(crate) fn start(setup: Setup<'a>, cancel: &dyn Fn() -> bool) -> Result<Self> {
        let probes = Mutex::new(vec![Probe::start(&setup, cancel)?]);
        Ok(Self { setup, probes })
    }

    /// The library's version, as it reports it.
    pub(crate) fn version(&self) -> String {
        running(&self.lock()).version.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Probe>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks over the connection, which is made if there is none. If the process has ended, only the
    /// problem that it worked on is lost.
    pub(crate) fn ask(
        &self,
        connection: &mut Connection,
        request: &[u8],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<ProbeAnswer> {
        loop {
            let worker = match &mut connection.worker {
                Some(worker) => worker,
                None => connection.worker.insert(self.worker(cancelled)?),
            };
            let answer = ask(worker, request, self.setup.options.time_limit, cancelled)?;
            let usable = !matches!(
                answer.early_end,
                Some(Failure::Lost | Failure::Overdue | Failure::Probe(_))
            );
            let proven = std::mem::replace(&mut connection.proven, usable);
            if !usable {
                connection.worker = None;
            }
            // A process that never answered had ended before the request: not the problem's fault.
            if answer.early_end != Some(Failure::Lost) || proven {
                return Ok(answer);
            }
            self.restart(cancelled)?;
            connection.proven = true;
        }
    }

    fn worker(&self, cancelled: &dyn Fn() -> bool) -> Result<UnixStream> {
        loop {
            if let Ok(worker) = running(&self.lock()).worker() {
                return Ok(worker);
            }
            self.restart(cancelled)?;
        }
    }

    fn restart(&self, cancelled: &dyn Fn() -> bool) -> Result {
        let mut probes = self.lock();
        if running(&probes).is_running() {
            return Ok(());
        }
        if probes.len() >= MAX_STARTS {
            return Err(DeviceFault::error(
                format!("the probe ended by itself {} times", probes.len()),
                "try again with fewer --jobs, as memory may be short; if that changes nothing, use \
                 another libMIOpen",
            ));
        }
        probes.push(Probe::start(&self.setup, cancelled)?);
        Ok(())
    }
}

fn running(probes: &[Probe]) -> &Probe {
    probes.last().expect("one was started")
}
