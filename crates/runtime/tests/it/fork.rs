//! A process made by `fork`, as by data loaders, can use its parent's cache
//! independently.
#![expect(unsafe_code, reason = "forks")]

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gfxpack_runtime::{Origin, UserDirectory};

use crate::support::*;

const KERNELS: usize = 40;
const THREADS: usize = 6;
const FORKS: usize = 20;

/// Seconds after which a child is considered hung.
const PATIENCE: u32 = 120;

fn open(root: &Path) -> Cache {
    let (mut config, warnings) =
        config(&root.join("system"), UserDirectory::Dir(root.join("user")));
    config.limits.busy_wait = Duration::from_secs(60);
    Cache::open((config, warnings))
}

/// Every second kernel is installed; the others are in the user's kdb.
fn machine() -> Machine {
    let machine = Machine::new(0);
    let even: Vec<_> = (0..KERNELS).step_by(2).map(|n| (numbered(n), object(n))).collect();
    write_kdb(&machine.kdb(), &even);
    let cache = machine.open();
    (0..KERNELS).for_each(|number| drop(cache.kernel(number)));
    machine
}

/// Runs `child` in its own process, which must succeed in time.
#[track_caller]
fn forked(what: &str, child: impl FnOnce()) {
    // SAFETY: the child does what the library says it may, and never returns.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: the functions take numbers; SIGALRM ends the process.
            unsafe { libc::alarm(PATIENCE) };
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: as above. Nothing of the parent's is cleaned up.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        id => {
            assert!(id > 0, "{}", std::io::Error::last_os_error());
            let mut status = 0;
            // SAFETY: the child is this process's, and the status is there to be written.
            assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
            assert_eq!(status, 0, "{what}: {status:#x}, 0xe is a child that hung");
        }
    }
}

#[track_caller]
fn assert_all_found(cache: &Cache) {
    for number in 0..KERNELS {
        let layer = if number % 2 == 0 { "system" } else { "user" };
        assert_eq!(cache.layer(number), Some(layer), "{:?}", cache.warnings.texts());
    }
}

/// Whether the kdbs can be read in this child. Not if a thread of its parent
/// was still reading one after the second that `fork` waits.
fn reads_kdbs(cache: &Cache) -> bool {
    cache.layer(0);
    !cache.warnings.texts().iter().any(|text| text.contains("forked while another thread"))
}

fn start(test: &str) {
    let machine = machine();
    finish(spawn(&mut child(test, &[machine.root.to_str().unwrap()])));
    assert_whole(&machine.ukdb());
    assert_eq!(listing(&machine.user), [".gfxpack-locks", USER_NAME]);
}

#[test]
fn a_child_can_use_its_parents_cache() {
    start("fork::child_process_that_forks");
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_that_forks() {
    let cache = open(&PathBuf::from(&child_arguments()[0]));
    assert_all_found(&cache);
    forked("a child", || {
        assert_all_found(&cache);
        assert_eq!(cache.kernel(101).origin, Origin::Compiled);
        forked("a child's child", || {
            assert_eq!(cache.layer(101), Some("user"));
            assert_eq!(cache.kernel(102).origin, Origin::Compiled);
            assert_all_found(&cache);
        });
        assert_eq!(cache.layer(102), Some("user"));
        drop(cache.cache.clone());
    });
    assert_eq!(cache.layer(101), Some("user"));
    assert_eq!(cache.layer(102), Some("user"));
    forked("a child that ends the cache", || drop(cache));
}

/// Whatever the parent's other threads do when it forks, and whatever locks
/// they hold, the child finds every kernel. On a machine so busy that a thread
/// did not finish its read within the second that `fork` waits, a child reports
/// this and compiles; that must not happen to most children.
#[test]
fn a_child_can_use_the_cache_of_busy_threads() {
    start("fork::child_process_that_forks_among_threads");
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_that_forks_among_threads() {
    let cache = open(&PathBuf::from(&child_arguments()[0]));
    let (done, lookups) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, done, lookups) = (&cache, &done, &lookups);
            scope.spawn(move || {
                let mut round = 0;
                while !done.load(Ordering::Relaxed) {
                    for number in 0..KERNELS {
                        assert!(cache.layer(number).is_some());
                    }
                    // Stores a kernel, and keeps others from compiling it
                    // meanwhile.
                    cache.kernel(1000 + thread * 1000 + round);
                    lookups.fetch_add(KERNELS, Ordering::Relaxed);
                    round += 1;
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for fork in 0..FORKS {
                forked(&format!("child {fork}"), || {
                    if !reads_kdbs(&cache) {
                        assert_eq!(cache.kernel(100_000 + fork).origin, Origin::Compiled);
                        return;
                    }
                    assert_all_found(&cache);
                    assert_eq!(cache.kernel(100_000 + fork).origin, Origin::Compiled);
                    assert_eq!(cache.layer(100_000 + fork), Some("user"));
                });
                let before = lookups.load(Ordering::Relaxed);
                while lookups.load(Ordering::Relaxed) == before {
                    std::thread::yield_now();
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let stored = (0..FORKS).filter(|fork| cache.layer(100_000 + fork) == Some("user")).count();
    assert!(stored > FORKS / 2, "{stored} of {FORKS} children stored their kernel");
    assert!(cache.warnings.texts().is_empty(), "{:?}", cache.warnings.texts());
}

/// A compiler that forks, with a child that returns from it as well.
#[test]
fn a_compiler_may_fork() {
    start("fork::child_process_whose_compiler_forks");
}

#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_whose_compiler_forks() {
    let root = PathBuf::from(&child_arguments()[0]);
    let cache = open(&root);
    let locks = || listing(&root.join("user/.gfxpack-locks"));
    let mut child = None;
    let kernel = cache.cache.get_or_compile(&numbered(200), || {
        // SAFETY: as in `forked`.
        let id = unsafe { libc::fork() };
        if id == 0 {
            // SAFETY: as in `forked`.
            unsafe { libc::alarm(PATIENCE) };
        } else {
            let mut status = 0;
            // SAFETY: as in `forked`.
            assert_eq!(unsafe { libc::waitpid(id, &raw mut status, 0) }, id);
            assert_eq!(status, 0, "{status:#x}");
            assert_eq!(locks().len(), 1, "the lock is still the parent's");
        }
        child = Some(id == 0);
        Ok::<_, Infallible>(object(200))
    });
    let kernel = kernel.unwrap();
    let good = kernel.origin == Origin::Compiled
        && kernel.not_stored.is_none()
        && cache.layer(200) == Some("user");
    if child == Some(true) {
        // SAFETY: as in `forked`.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    assert!(good, "{kernel:?}");
    assert!(locks().is_empty());
}
