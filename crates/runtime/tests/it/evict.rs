//! The user cache's size limit.

use std::time::Duration;

use gfxpack_runtime::{KernelKey, NotStored, Origin};

use crate::support::*;

fn bulky(number: usize) -> (KernelKey, Vec<u8>) {
    let mut bytes = object(number);
    let mut word = number as u64 + 1;
    while bytes.len() < 20_000 {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.extend(word.to_le_bytes());
    }
    (numbered(number), bytes)
}

fn limited(machine: &Machine, bytes: u64) -> Cache {
    let (mut config, warnings) = machine.config();
    config.limits.user_cache_bytes = bytes;
    Cache::open((config, warnings))
}

fn store(cache: &Cache, number: usize) {
    let (key, bytes) = bulky(number);
    let kernel = cache.cache.get_or_compile(&key, || Ok::<_, String>(bytes)).unwrap();
    assert!(kernel.not_stored.is_none(), "{:?}", kernel.not_stored);
}

fn has(cache: &Cache, number: usize) -> bool {
    let (key, bytes) = bulky(number);
    cache.cache.get(&key).found.is_some_and(|found| found.code_object[..] == bytes[..])
}

/// Sets when kernels were last used, in place of the clock.
fn used(machine: &Machine, seconds: &str) {
    sql(&machine.ukdb(), &format!("UPDATE gfxpack_usage SET used = {seconds}"));
}

#[test]
fn the_least_recently_used_kernels_are_deleted_and_the_file_keeps_its_limit() {
    const LIMIT: u64 = 1 << 20;
    let machine = Machine::new(0);
    let cache = limited(&machine, LIMIT);
    (0..20).for_each(|number| store(&cache, number));
    used(&machine, "id");
    assert!(has(&cache, 0));
    drop(cache);
    // The use of kernel 0 was written to the file when the cache was closed.
    let cache = limited(&machine, LIMIT);
    for number in 20..120 {
        store(&cache, number);
        let size = std::fs::metadata(machine.ukdb()).unwrap().len();
        assert!(size <= LIMIT, "{size} bytes after {number}");
        assert!(has(&cache, number), "what was just stored stays");
    }
    assert!(!has(&cache, 1), "the oldest went");
    drop(cache);
    let machine_files = listing(&machine.user);
    assert_eq!(machine_files, [".gfxpack-locks", USER_NAME]);
    assert_whole(&machine.ukdb());
}

#[test]
fn a_kernel_in_use_is_kept() {
    const LIMIT: u64 = 512 << 10;
    let machine = Machine::new(0);
    let cache = limited(&machine, LIMIT);
    (0..18).for_each(|number| store(&cache, number));
    used(&machine, "id");
    assert!(has(&cache, 0) && has(&cache, 2));
    (30..34).for_each(|number| store(&cache, number));
    // Used at the current time, so after all the others.
    (34..38).for_each(|number| store(&cache, number));
    assert_eq!([0, 1, 2, 3].map(|number| has(&cache, number)), [true, false, true, false]);
}

/// A failed store keeps the uses for the next one.
#[test]
fn a_failed_store_does_not_lose_a_use() {
    const LIMIT: u64 = 512 << 10;
    let machine = Machine::new(0);
    let (mut config, warnings) = machine.config();
    config.limits.user_cache_bytes = LIMIT;
    config.limits.busy_wait = Duration::from_millis(20);
    let cache = Cache::open((config, warnings));
    (0..18).for_each(|number| store(&cache, number));
    used(&machine, "id");
    assert!(has(&cache, 0));
    let other = rusqlite::Connection::open(machine.ukdb()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (key, bytes) = bulky(29);
    let kernel = cache.cache.get_or_compile(&key, || Ok::<_, String>(bytes)).unwrap();
    assert!(matches!(kernel.not_stored, Some(NotStored::Failed(_))));
    other.execute_batch("COMMIT").unwrap();
    (30..38).for_each(|number| store(&cache, number));
    assert_eq!([0, 1].map(|number| has(&cache, number)), [true, false]);
}

#[test]
fn a_kernel_larger_than_the_limit_stays_in_memory() {
    let machine = Machine::new(0);
    let cache = limited(&machine, 10_000);
    let (key, bytes) = bulky(0);
    let ask = || cache.cache.get_or_compile(&key, || Ok::<_, String>(bytes.clone())).unwrap();
    assert!(matches!(ask().not_stored, Some(NotStored::TooLarge { limit: 10_000, .. })));
    assert_eq!(ask().origin, Origin::Memory);
}
