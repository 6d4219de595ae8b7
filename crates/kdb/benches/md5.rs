//! MD5 of code objects in lanes, at each level of instructions that this
//! machine has, beside the `md-5` crate on one after the other.
//!
//! `cargo bench -p gfxpack-kdb`.

use criterion::{BenchmarkId, Criterion, Throughput};
use fearless_simd::Level;
use md5::{Digest as _, Md5};

#[path = "../src/md5_lanes.rs"]
mod md5_lanes;

/// Bytes of code objects at a time, as in a batch of the library's.
const BATCH_BYTES: usize = 512 << 10;

fn levels() -> Vec<(&'static str, Level)> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let known = [
        ("SSE2", best.as_sse2().map(Level::Sse2)),
        ("SSE4.2", best.as_sse4_2().map(Level::Sse4_2)),
        ("AVX2", best.as_avx2().map(Level::Avx2)),
        ("AVX-512", best.as_avx512().map(Level::Avx512)),
    ];
    #[cfg(target_arch = "aarch64")]
    let known = [("NEON", best.as_neon().map(Level::Neon))];
    known.into_iter().filter_map(|(name, level)| Some((name, level?))).collect()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    // All of one size, and of ten sizes up to twice the mean.
    for (name, mean, spread) in [
        ("6 kB each", 6_000, 0),
        ("40 kB each", 40_000, 0),
        ("0.6 to 11 kB", 6_000, 9),
        ("4 to 76 kB", 40_000, 9),
    ] {
        let size = |at: usize| mean + mean / 10 * (at * 7 % (spread + 1)) - mean / 20 * spread;
        let objects: Vec<Vec<u8>> =
            (0..BATCH_BYTES / mean).map(|at| vec![at as u8; size(at)]).collect();
        let objects: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
        let bytes = objects.iter().map(|object| object.len() as u64).sum();
        let mut group = criterion.benchmark_group(format!("MD5, {name}"));
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function("md-5", |bencher| {
            bencher.iter(|| {
                objects.iter().map(|object| Md5::digest(object).into()).collect::<Vec<[u8; 16]>>()
            });
        });
        for (level, at) in levels() {
            group.bench_function(BenchmarkId::from_parameter(level), |bencher| {
                bencher.iter(|| md5_lanes::digests_at(at, &objects));
            });
        }
        assert_eq!(
            md5_lanes::digests(&objects)[0],
            <[u8; 16]>::from(Md5::digest(objects[0])),
            "what is measured"
        );
        group.finish();
    }
    criterion.final_summary();
}
