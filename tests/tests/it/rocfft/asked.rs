//! Asks Debian's librocfft which kernels it compiles, for GPUs that are not present.

use std::collections::BTreeSet;
use std::fs;

use crate::support::miopen::debian_rocfft;
use crate::support::project::{command, finish};
use gfxpack_rocfft::{Kernel, PlanFailure};

use super::{asked, plans};

const PLANS: [&str; 12] = [
    "c2c sp ip 64",
    "c2c sp op 64 batch 8",
    "c2c dp ip 336",
    "c2c sp ip 4096",
    "c2c sp ip 65536",
    "c2c sp ip 32x32",
    "c2c dp op 17x24x32",
    "r2c sp ip 128",
    "r2c dp op 1000",
    "c2r sp op 256x64",
    "c2r sp ip 8192 batch 3",
    "c2c half ip 512",
];

#[test]
fn the_kernels_that_the_library_compiles_are_listed() {
    let Some(library) = debian_rocfft() else { return };
    let (old, kernels) = asked(&library, &plans(&PLANS), "gfx90a");
    assert!(old.failures.is_empty(), "{:?}", old.failures);
    assert!(old.version.starts_with("1."), "{}", old.version);
    assert!(old.hip_version > 60_000_000, "{}", old.hip_version);
    let names = |kernels: &[Kernel]| -> Vec<String> {
        kernels.iter().map(|kernel| kernel.name.clone()).collect()
    };
    let set: BTreeSet<String> = names(&kernels).into_iter().collect();
    assert_eq!(set.len(), kernels.len(), "each once");
    for wanted in ["_fwd_len64_", "_back_len64_", "_len336_", "_dp_", "_half_", "_sp_ip_"] {
        assert!(set.iter().any(|name| name.contains(wanted)), "{wanted}: {set:?}");
    }
    for kernel in &kernels {
        assert!(kernel.source.contains(&kernel.name), "{} is a function there", kernel.name);
        assert_eq!(kernel.options, ["-O3", "-std=c++14", "-mcumode"], "{}", kernel.name);
    }
    // Rows that lie apart want kernels that don't count on neighbours.
    let (apart, its) = asked(
        &library,
        &plans(&["--length 64 -o --istride 2 --ostride 2 --idist 130 --odist 130"]),
        "gfx90a",
    );
    let main = |kernels: &[Kernel]| -> Vec<String> {
        names(kernels).into_iter().filter(|name| name.contains("_len64_")).collect()
    };
    assert!(apart.failures.is_empty() && !main(&its).is_empty(), "{apart:?}");
    assert!(main(&its).iter().all(|name| !name.contains("unitstride")), "{:?}", main(&its));
    // Another order of the same plans, and another device.
    let mut backward = PLANS;
    backward.reverse();
    assert_eq!(asked(&library, &plans(&backward), "gfx90a").1, kernels);
    let (new, its) = asked(&library, &plans(&PLANS), "gfx1201");
    assert_eq!((new.hip_version, new.generator_sum), (old.hip_version, old.generator_sum));
    let both = names(&its).iter().filter(|name| set.contains(*name)).count();
    assert!(both > 10, "they have most in common");
}

#[test]
fn kernels_of_the_library_are_compiled_by_the_driver() {
    let Some(library) = debian_rocfft() else { return };
    let (answer, kernels) = asked(&library, &plans(&["c2c sp ip 64 fwd"]), "gfx90a");
    let dir = tempfile::tempdir().unwrap();
    for kernel in &kernels {
        let source = format!("#include <hip/hip_runtime.h>\n{}", kernel.source);
        fs::write(dir.path().join("kernel.hip"), source).unwrap();
        let mut hipcc = command("hipcc");
        hipcc.args(&kernel.options).args(["--offload-arch=gfx90a", "--genco", "-w"]);
        hipcc.args(["-o", "kernel.co", "kernel.hip"]).current_dir(dir.path());
        finish(hipcc).expect_code(0);
        let code = fs::read(dir.path().join("kernel.co")).unwrap();
        let key = gfxpack_rocfft::CacheKey {
            kernel_name: kernel.name.clone(),
            arch: "gfx90a".to_owned(),
            hip_version: answer.hip_version,
            generator_sum: answer.generator_sum,
        };
        assert_eq!(gfxpack_rocfft::check_row(&key, &code), Ok(()), "{key}");
    }
}

#[test]
fn a_refused_plan_is_reported_and_others_are_answered() {
    let Some(library) = debian_rocfft() else { return };
    // More than any device has memory for.
    let lines = ["c2c sp ip 64", "c2c sp ip 1099511627776 batch 200000", "c2c sp ip 128"];
    let (answer, kernels) = asked(&library, &plans(&lines), "gfx1100");
    let refused: Vec<_> = answer.failures.iter().collect();
    assert!(matches!(refused[..], [(1, PlanFailure::Refused(_))]), "{refused:?}");
    for wanted in ["_len64_", "_len128_"] {
        assert!(kernels.iter().any(|kernel| kernel.name.contains(wanted)), "{wanted}");
    }
}
