//! Any bytes as a file of a library that others built: checked, made smaller, and that the same
//! again: nothing is left to take out.
#![no_main]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gfxpack_fatbin::{Checker, slim};
use gfxpack_model::TargetId;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// The longest sensible output: compressed bundles become longer.
const OUTPUT_MAX: u64 = 1 << 30;

static DIR: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));
static TARGETS: LazyLock<[TargetId; 2]> = LazyLock::new(|| {
    ["gfx906:xnack-", "gfx1100"].map(|target| target.parse().expect("a target"))
});

fn path(name: &str) -> PathBuf {
    DIR.path().join(name)
}

fn smaller(from: &Path, to: &Path) -> Option<u64> {
    let (file, out) = (File::open(from).expect("opened"), File::create(to).expect("made"));
    let slimmed = slim(&file, &out, &*TARGETS).ok()??;
    assert_eq!(out.metadata().expect("there").len(), slimmed.after);
    assert!(slimmed.after < OUTPUT_MAX && !slimmed.removed.is_empty());
    Some(slimmed.after)
}

fuzz_target!(|bytes: &[u8]| {
    let given = path("given");
    fs::write(&given, bytes).expect("written");
    let mut checker = Checker::new(&*TARGETS);
    for name in ["lib/libx.so", "x.kpack", "TensileLibrary_lazy_gfx906.dat"] {
        checker.file(Path::new(name), &File::open(&given).expect("opened")).ok();
    }
    let gaps = checker.finish();
    assert!(gaps.iter().all(|gap| !gap.detail.is_empty()));
    if smaller(&given, &path("once")).is_some() {
        assert_eq!(smaller(&path("once"), &path("twice")), None);
    }
});
