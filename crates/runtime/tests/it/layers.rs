//! The order of the layers, and the reasons for misses in each.

use std::convert::Infallible;
use std::path::Path;

use gfxpack_runtime::{
    Config, KdbDirectories, KernelCache, KernelKey, Layer, Lookup, LookupOrder, NotStored, Origin,
    Target, UserDirectory,
};

use crate::support::*;

const BOTH: &str = " -DBOTH -mcpu=gfx906";
const WIDE: &str = " -DWIDE -mcpu=gfx906";

/// `gfx906_60.kdb` with one kernel, `gfx906.kdb` with the same and another.
fn two_files() -> Machine {
    let machine = Machine::new(0);
    write_kdb(&machine.kdb(), &[(key(BOTH), code_object(GFX906, 1))]);
    let wide = [(key(BOTH), code_object(GFX906, 2)), (key(WIDE), code_object(GFX906, 2))];
    write_kdb(&machine.system.join("gfx906.kdb"), &wide);
    machine
}

#[track_caller]
fn check(cache: &KernelCache, key: &KernelKey, hit: Option<(&Path, u64)>, misses: &[&str]) {
    let lookup = cache.get(key);
    let found = lookup.found.as_ref().map(|found| (found.file.as_deref(), &found.code_object[..]));
    let hit = hit.map(|(file, mark)| (Some(file), code_object(GFX906, mark)));
    assert!(found == hit.as_ref().map(|(file, bytes)| (*file, &bytes[..])), "of the right file");
    assert_eq!(lookup_reasons(&lookup), misses);
}

#[test]
fn the_exact_kdb_is_searched_first_then_the_device_wide_one_then_the_users() {
    let machine = two_files();
    let wide = machine.system.join("gfx906.kdb");
    let cache = machine.open().cache;
    let expected = [
        (Layer::System, machine.kdb()),
        (Layer::System, wide.clone()),
        (Layer::User, machine.ukdb()),
    ];
    assert_eq!(cache.files(), expected);
    check(&cache, &key(BOTH), Some((&machine.kdb(), 1)), &[]);
    check(&cache, &key(WIDE), Some((&wide, 2)), &["system no-kernel"]);
    let none = ["system no-kernel", "system no-kernel", "user no-file"];
    check(&cache, &key(" -DNONE -mcpu=gfx906"), None, &none);
    // Keys are bytes: a leading blank is part of the key.
    check(&cache, &key(BOTH.trim_start()), None, &none);
    std::fs::remove_file(machine.kdb()).unwrap();
    check(&cache, &key(BOTH), Some((&wide, 2)), &["system no-file"]);
}

#[test]
fn a_file_that_appears_changes_or_disappears_is_noticed() {
    let machine = Machine::new(0);
    let cache = machine.open();
    assert_eq!(cache.layer(0), None);
    write_kdb(&machine.kdb(), &[(numbered(0), object(0))]);
    assert_eq!(cache.layer(0), Some("system"));
    write_kdb(&machine.kdb(), &[(numbered(1), object(1))]);
    assert_eq!((cache.layer(0), cache.layer(1)), (None, Some("system")));
    std::fs::write(machine.kdb(), [7; 600]).unwrap();
    assert_eq!(cache.layer(1), None);
    write_kdb(&machine.kdb(), &[(numbered(0), object(0))]);
    assert_eq!(cache.layer(0), Some("system"), "a fault is not remembered beyond its file");
    std::fs::remove_file(machine.kdb()).unwrap();
    assert_eq!(cache.layer(0), None);
}

#[test]
fn a_compiled_kernel_is_stored_and_found() {
    let machine = Machine::new(1);
    let cache = machine.open();
    let kernel = cache.kernel(0);
    assert_eq!(kernel.origin, Origin::System(machine.kdb()));
    assert!(!machine.user.exists(), "a hit creates no directory");
    let kernel = cache.kernel(1);
    assert_eq!(kernel.origin, Origin::Compiled);
    assert!(kernel.not_stored.is_none());
    assert_eq!(reasons(&kernel.misses), ["system no-kernel", "system no-file", "user no-file"]);
    assert_eq!(cache.kernel(1).origin, Origin::User(machine.ukdb()));
    assert_eq!(machine.open().kernel(1).origin, Origin::User(machine.ukdb()), "by another cache");
    assert_eq!((mode(&machine.user), mode(&machine.ukdb())), (0o700, 0o600));
    assert_eq!(listing(&machine.user.join(".gfxpack-locks")), Vec::<String>::new());
    assert_eq!(cache.warnings.texts(), Vec::<String>::new());
    assert_whole(&machine.ukdb());
}

#[test]
fn the_order_of_the_layers_is_configurable() {
    let machine = Machine::new(0);
    machine.open().cache.get_or_compile(&numbered(0), || Ok::<_, Infallible>(object(7))).unwrap();
    write_kdb(&machine.kdb(), &[(numbered(0), object(8))]);
    let found = |order: LookupOrder| -> Lookup {
        let (mut config, _) = machine.config();
        config.order = order;
        KernelCache::open(config).get(&numbered(0))
    };
    let documented = found(LookupOrder::default()).found.unwrap();
    assert_eq!(documented.layer, Layer::System);
    assert!(documented.code_object[..] == object(8)[..]);
    let as_coded = found(LookupOrder::UserFirst).found.unwrap();
    assert_eq!(as_coded.layer, Layer::User);
    assert!(as_coded.code_object[..] == object(7)[..]);
}

#[test]
fn the_only_error_is_the_compilers() {
    let machine = Machine::new(0);
    let cache = machine.open();
    let failed = cache.cache.get_or_compile(&numbered(0), || Err("no compiler"));
    assert_eq!(failed.unwrap_err(), "no compiler");
    assert_eq!(cache.kernel(0).origin, Origin::Compiled, "the next one may try");
}

#[test]
fn a_compiler_that_panics_blocks_no_other_call() {
    let cache = Machine::new(0).open();
    let panics = || -> Result<Vec<u8>, Infallible> { panic!("as the test wants it") };
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.cache.get_or_compile(&numbered(0), panics)
    }));
    assert!(unwound.is_err());
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
}

#[test]
fn a_compiler_may_request_its_own_key() {
    let machine = Machine::new(0);
    let cache = machine.open();
    let kernel = cache
        .cache
        .get_or_compile(&numbered(0), || Ok::<_, Infallible>(cache.kernel(0).code_object.to_vec()));
    assert!(kernel.unwrap().code_object[..] == object(0)[..]);
}

#[test]
fn compiled_bytes_are_always_returned_but_stored_only_if_they_are_code() {
    let machine = Machine::new(0);
    let cache = machine.open().cache;
    for bytes in [code_object(GFX90A, 1), b"no code".to_vec(), Vec::new()] {
        let kernel = cache.get_or_compile(&numbered(0), || Ok::<_, Infallible>(bytes.clone()));
        let kernel = kernel.unwrap();
        assert!(kernel.code_object[..] == bytes[..]);
        assert!(matches!(kernel.not_stored, Some(NotStored::Refused(_))));
        assert!(cache.get(&numbered(0)).found.is_none());
    }
}

#[test]
fn directories_are_searched_in_order() {
    let (first, second) = (two_files(), two_files());
    let target: Target = "gfx906_60".parse().unwrap();
    let directories = [
        Path::new(""),
        Path::new("relative"),
        Path::new("/nonexistent"),
        &first.system,
        &second.system,
    ];
    let user = UserDirectory::Disabled("not asked".to_owned());
    let cache = KernelCache::open(Config::new(target, KdbDirectories::new(directories, user)));
    assert_eq!(cache.files().len(), 6, "the working directory is none of them");
    let wide = first.system.join("gfx906.kdb");
    let missed = ["system no-file", "system no-file", "system no-kernel"];
    check(&cache, &key(WIDE), Some((&wide, 2)), &missed);
    std::fs::remove_file(&wide).unwrap();
    let mut missed = missed.to_vec();
    missed.extend(["system no-file", "system no-kernel"]);
    check(&cache, &key(WIDE), Some((&second.system.join("gfx906.kdb"), 2)), &missed);
}

#[test]
fn a_device_newer_than_the_table_is_served() {
    let machine = Machine::new(0);
    let key = key(" -DX -mcpu=gfx1999");
    let kernel = (key.clone(), code_object(0xfd, 1));
    write_kdb(&machine.system.join("gfx1999_40.kdb"), &[kernel]);
    let directories =
        KdbDirectories::new([&machine.system], UserDirectory::Dir(machine.user.clone()));
    let cache = KernelCache::open(Config::new("gfx1999@40".parse().unwrap(), directories));
    assert!(cache.get(&key).found.is_some());
}

#[test]
fn memory_is_a_layer_if_it_is_enabled() {
    let machine = Machine::new(1);
    let (mut config, warnings) = machine.config();
    config.keep_hits = true;
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.layer(0), Some("system"));
    std::fs::remove_file(machine.kdb()).unwrap();
    assert_eq!(cache.layer(0), Some("memory"));
    assert_eq!(cache.kernel(1).origin, Origin::Compiled);
    assert_eq!(cache.kernel(1).origin, Origin::Memory);
}

#[test]
fn threads_compile_a_key_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let machine = Machine::new(0);
    let cache = machine.open();
    let compiled = AtomicUsize::new(0);
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..20 {
                    barrier.wait();
                    let compile = || {
                        compiled.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, Infallible>(object(number))
                    };
                    let kernel = cache.cache.get_or_compile(&numbered(number), compile).unwrap();
                    assert!(kernel.code_object[..] == object(number)[..]);
                }
            });
        }
    });
    assert_eq!(compiled.into_inner(), 20);
    assert_whole(&machine.ukdb());
}

#[test]
fn look_only_changes_nothing() {
    let machine = Machine::new(0);
    machine.open().kernel(0);
    std::fs::remove_dir(machine.user.join(".gfxpack-locks")).unwrap();
    let state = || (std::fs::read(machine.ukdb()).unwrap(), listing(&machine.user));
    let before = state();
    let look = || {
        let (mut config, warnings) = machine.config();
        config.look_only = true;
        Cache::open((config, warnings))
    };
    let cache = look();
    assert_eq!(cache.layer(0), Some("user"));
    assert!(matches!(cache.kernel(1).not_stored, Some(NotStored::NoUserCache(_))));
    drop(cache);
    assert!(state() == before);
    std::fs::write(machine.ukdb(), [7; 600]).unwrap();
    let lookup = look().cache.get(&numbered(0));
    assert_eq!(lookup_reasons(&lookup)[2], "user unreadable");
    assert_eq!(listing(&machine.user), [USER_NAME], "nothing is moved");
    std::fs::remove_file(machine.ukdb()).unwrap();
    assert_eq!(look().layer(0), None);
    assert_eq!(listing(&machine.user), Vec::<String>::new());
}

#[test]
fn a_key_that_miopen_could_never_find_is_kept_in_memory_only() {
    let machine = Machine::new(0);
    let cache = machine.open().cache;
    let key = key(" -DNAME='a' -mcpu=gfx906");
    let ask = || cache.get_or_compile(&key, || Ok::<_, Infallible>(object(1))).unwrap();
    assert!(matches!(ask().not_stored, Some(NotStored::Failed(_))));
    assert_eq!(ask().origin, Origin::Memory);
}
