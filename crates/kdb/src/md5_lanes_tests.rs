//! MD5 in lanes against MD5 of messages alone. Apart from the code, which the
//! benchmark takes in as well.

use fearless_simd::Level;
use md5::{Digest as _, Md5};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::md5_lanes::{digests, digests_at};

/// All that this machine has.
fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let lower = [
        best.as_sse2().map(Level::Sse2),
        best.as_sse4_2().map(Level::Sse4_2),
        best.as_avx2().map(Level::Avx2),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let lower: [Option<Level>; 0] = [];
    lower.into_iter().flatten().chain([best]).collect()
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(step).collect()
}

#[track_caller]
fn check(lens: impl IntoIterator<Item = usize>) {
    let messages: Vec<Vec<u8>> =
        lens.into_iter().enumerate().map(|(seed, len)| noise(seed as u64, len)).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let expected: Vec<[u8; 16]> =
        messages.iter().map(|message| Md5::digest(message).into()).collect();
    for level in levels() {
        assert_eq!(digests_at(level, &messages), expected, "{level:?}");
    }
}

#[test]
fn lanes_give_what_messages_alone_give() {
    check([]);
    check([55]);
    check([0; 3]);
    check(0..300);
    check((0..300).rev());
    for len in [0, 1, 55, 56, 63, 64, 65, 119, 120, 128] {
        // Around each number of lanes, in one vector and in several.
        for count in [2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 24, 25, 32, 33] {
            check(vec![len; count]);
        }
    }
}

#[test]
fn long_messages_wait_for_no_short_ones() {
    check([1_000_000, 0, 64, 3]);
    check((0..100).map(|n| if n % 9 == 4 { 70_000 + n } else { n }));
    check((0..70).map(|n| n * n * 11 % 40_000));
}

#[test]
fn the_digest_is_md5s() {
    // Source: RFC 1321, A.5.
    let messages: [&[u8]; 3] = [b"", b"abc", b"message digest"];
    let expected = [
        0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e_u128,
        0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72,
        0xf96b_697d_7cb7_938d_525a_2f31_aaf1_61d0,
    ];
    for level in levels() {
        assert_eq!(digests_at(level, &messages), expected.map(u128::to_be_bytes));
    }
    assert_eq!(digests(&messages), expected.map(u128::to_be_bytes));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn random_batches(lens in vec(prop_oneof![0..200_usize, 0..5000_usize], 0..80)) {
        check(lens);
    }
}
