//! Removing the caches of old versions.

use std::os::unix::ffi::OsStrExt as _;

use gfxpack_runtime::{Keep, cached_versions, prune_versions};

use crate::support::*;

fn caches(machine: &Machine) -> std::path::PathBuf {
    let cache = machine.root.join("miopen");
    for version in ["3.2.0.", "3.9.0.", "3.10.0.d1", "notes"] {
        let directory = cache.join(version);
        std::fs::create_dir_all(directory.join(".gfxpack-locks")).unwrap();
        std::fs::write(directory.join(".gfxpack-locks/key"), "").unwrap();
        for name in [USER_NAME, "gfx906_60.ukdb-wal", "gfx906_60.ukdb.corrupt-1"] {
            std::fs::write(directory.join(name), [0; 10]).unwrap();
        }
    }
    cache
}

#[test]
fn all_versions_but_those_to_keep_are_removed() {
    let machine = Machine::new(0);
    let cache = caches(&machine);
    std::fs::create_dir(cache.join("4.0.0.")).unwrap();
    let newest_first = ["3.10.0.d1", "3.9.0.", "3.2.0."];
    assert_eq!(cached_versions(&cache), newest_first, "of those with kernels");
    std::fs::remove_dir(cache.join("4.0.0.")).unwrap();
    assert!(cached_versions(&machine.root.join("none")).is_empty());
    let mut keep = Keep::only("3.2.0.");
    keep.newest = 1;
    keep.dry_run = true;
    let planned = prune_versions(&cache, &keep).unwrap();
    assert_eq!(listing(&cache).len(), 4);
    keep.dry_run = false;
    let pruned = prune_versions(&cache, &keep).unwrap();
    assert_eq!(pruned, planned);
    assert_eq!(pruned.len(), 1);
    assert_eq!(
        (pruned[0].directory.file_name().unwrap(), pruned[0].bytes),
        ("3.9.0.".as_ref(), 30)
    );
    assert_eq!(listing(&cache), ["3.10.0.d1", "3.2.0.", "notes"]);
}

#[test]
fn other_files_than_caches_stay() {
    let machine = Machine::new(0);
    let cache = caches(&machine);
    std::fs::write(cache.join("3.2.0./thesis.txt"), "mine").unwrap();
    // Not UTF-8; decoded differently, it would be the name of a cache's file.
    let strange = std::ffi::OsStr::from_bytes(b"\xff.ukdb");
    std::fs::write(cache.join("3.9.0.").join(strange), "mine").unwrap();
    let unasked_kdbs = machine.root.join("elsewhere");
    std::fs::create_dir(&unasked_kdbs).unwrap();
    std::fs::write(unasked_kdbs.join(USER_NAME), "mine").unwrap();
    std::os::unix::fs::symlink(&unasked_kdbs, cache.join("1.0.0.")).unwrap();
    let pruned = prune_versions(&cache, &Keep::only("none")).unwrap();
    let whole: Vec<bool> = pruned.iter().map(|pruned| pruned.whole).collect();
    assert_eq!(whole, [true, false, false]);
    assert_eq!(listing(&cache), ["1.0.0.", "3.2.0.", "3.9.0.", "notes"]);
    assert!(cache.join("3.9.0.").join(strange).exists());
    assert_eq!(listing(&cache.join("3.2.0.")), ["thesis.txt"]);
    assert_eq!(listing(&unasked_kdbs), [USER_NAME]);
    assert!(prune_versions(&machine.root.join("absent"), &Keep::only("")).is_err());
}
