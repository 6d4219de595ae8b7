//! Drivers with a record, and what they start.

use std::collections::BTreeSet;
use std::path::Path;

use gfxpack_process::watch::Operation;

use super::kernels::{BITCODE, HIPCC, compilers, kernels};
use super::support::assert_equal_to_strace;

/// What a driver's answer depends on: all that it, its scripts and its compilers ask.
#[test]
fn drivers_accesses_are_recorded_on_request() {
    let dir = kernels();
    let path = dir.path().canonicalize().unwrap();
    let clang = format!("clang-{}", compilers()[0]);
    let device = format!("--rocm-device-lib-path={BITCODE}");
    let questions: [&[&str]; 7] = [
        &[HIPCC, "-###", "--offload-arch=gfx906", "-c", "k.cpp"],
        &[HIPCC, "--offload-arch=gfx906", "--cuda-device-only", "-Iinc", "-c", "k.cpp"],
        &[HIPCC, "--version"],
        &[&clang, "-###", "-x", "hip", "--offload-arch=gfx906", &device, "-c", "k.cpp"],
        &[&clang, "-print-search-dirs"],
        &["perl", "-e", "print <*>; print `cat data.bin`; system 'ls', '-a'"],
        &["sh", "-c", "for f in *; do test -e $f/none; done; cat data.bin >copy; mv copy moved"],
    ];
    for args in questions {
        let record = assert_equal_to_strace(&path, args);
        let accesses = record.accesses.iter();
        let absent: BTreeSet<&Path> = accesses
            .filter(|access| access.is_absent())
            .map(|access| access.path.as_path())
            .collect();
        let lists = record.accesses.iter().any(|access| access.operation == Operation::List);
        assert!(lists && !absent.is_empty(), "{args:?}: {absent:?}");
        if args[0] == HIPCC {
            let started = |name: &str| {
                let mut started =
                    record.accesses.iter().filter(|access| access.operation == Operation::Execute);
                started.any(|access| access.path.ends_with(name) && access.error.is_none())
            };
            assert!(started("perl") && started("clang++-15"), "{args:?}");
            // The scripts themselves are read by perl.
            assert!(
                record.accesses.iter().any(|access| access.path.ends_with("hipcc.pl")),
                "{args:?}"
            );
        }
    }
}
