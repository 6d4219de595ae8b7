//! MD5 of many messages at once, each in a lane of its own of SIMD vectors.
//!
//! One message can't make use of vectors: each step of MD5 waits for the one
//! before. So it leaves most of a core idle, too.
//!
//! Source: RFC 1321.

use fearless_simd::{Level, Simd, dispatch, prelude::*};
use md5::{Digest as _, Md5};

/// Messages under way at a time with the widest vectors.
const MAX_LANES: usize = 2 * 16;

/// Fewer messages take no longer one after the other.
const MIN_MESSAGES: usize = 3;

const BLOCK_BYTES: usize = 64;

/// Source: RFC 1321, 3.3.
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The integer part of 2^32 times |sin n| for n = 1..=64.
///
/// Source: RFC 1321, 3.4.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// The MD5 of each message.
pub(crate) fn digests(messages: &[&[u8]]) -> Vec<[u8; 16]> {
    digests_at(Level::new(), messages)
}

/// The same with the instructions of a level.
pub(crate) fn digests_at(level: Level, messages: &[&[u8]]) -> Vec<[u8; 16]> {
    // Lanes are filled with a block's words as they lie in memory.
    let lanes = !level.is_fallback() && cfg!(target_endian = "little");
    if messages.len() < MIN_MESSAGES || !lanes {
        return messages.iter().map(|message| Md5::digest(message).into()).collect();
    }
    dispatch!(level, simd => in_lanes(simd, messages))
}

/// A message under way.
struct Lane<'a> {
    index: usize,
    /// Whole blocks to do, never none.
    rest: &'a [u8],
    /// The padded blocks that follow those.
    tail: &'a [u8],
}

/// The end of a message in whole blocks: what is left of it, a bit, zeros, and
/// its length in bits.
struct Tail {
    bytes: [u8; 2 * BLOCK_BYTES],
    len: usize,
}

impl Tail {
    fn of(message: &[u8]) -> Self {
        let left = message.len() % BLOCK_BYTES;
        let len = if left < BLOCK_BYTES - 8 { BLOCK_BYTES } else { 2 * BLOCK_BYTES };
        let mut bytes = [0; 2 * BLOCK_BYTES];
        bytes[..left].copy_from_slice(&message[message.len() - left..]);
        bytes[left] = 0x80;
        let bits = (message.len() as u64).wrapping_mul(8);
        bytes[len - 8..len].copy_from_slice(&bits.to_le_bytes());
        Self { bytes, len }
    }
}

impl<'a> Lane<'a> {
    fn of(index: usize, message: &'a [u8], tail: &'a Tail) -> Self {
        let whole = &message[..message.len() - message.len() % BLOCK_BYTES];
        let mut lane = Self { index, rest: whole, tail: &tail.bytes[..tail.len] };
        lane.advance(0);
        lane
    }

    /// Goes on by so many bytes of the rest; `false` at the message's end.
    fn advance(&mut self, bytes: usize) -> bool {
        self.rest = &self.rest[bytes..];
        if self.rest.is_empty() {
            self.rest = std::mem::take(&mut self.tail);
        }
        !self.rest.is_empty()
    }
}

// Functions that are not inlined do not get the level's instructions, nor do
// closures that the standard library calls.
#[inline(always)]
fn in_lanes<S: Simd>(simd: S, messages: &[&[u8]]) -> Vec<[u8; 16]> {
    let width = <S::u32s as SimdBase<S>>::LEN;
    // Vectors are worked on side by side, since the steps of one wait, too. A
    // third of 16 lanes gains nothing; of fewer, it gains a quarter.
    let most = if width < 16 { 3 * width } else { 2 * width };
    let tails: Vec<Tail> = messages.iter().map(|message| Tail::of(message)).collect();
    // The longest are taken first: the last ones end about together then.
    let mut waiting: Vec<usize> = (0..messages.len()).collect();
    waiting.sort_by_key(|index| messages[*index].len());
    let mut digests = vec![[0; 16]; messages.len()];
    // A, B, C and D of every lane; lanes of messages come first.
    let mut state = [[0; MAX_LANES]; 4];
    let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(MAX_LANES);
    loop {
        while lanes.len() < most {
            let Some(index) = waiting.pop() else { break };
            for (words, initial) in state.iter_mut().zip(INITIAL) {
                words[lanes.len()] = initial;
            }
            lanes.push(Lane::of(index, messages[index], &tails[index]));
        }
        let Some(bytes) = lanes.iter().map(|lane| lane.rest.len()).min() else { return digests };
        // Lanes without a message do what the first one does; nobody looks.
        let mut inputs = [&lanes[0].rest[..bytes]; MAX_LANES];
        for (input, lane) in inputs.iter_mut().zip(&lanes) {
            *input = &lane.rest[..bytes];
        }
        match lanes.len().div_ceil(width) {
            1 => run::<S, 1>(simd, &mut state, &inputs, bytes),
            3 if width < 16 => run::<S, 3>(simd, &mut state, &inputs, bytes),
            _ => run::<S, 2>(simd, &mut state, &inputs, bytes),
        }
        // From the last on, so that the lane moved to a free place is done with.
        for at in (0..lanes.len()).rev() {
            if lanes[at].advance(bytes) {
                continue;
            }
            let ended = lanes.swap_remove(at);
            for (digest, words) in digests[ended.index].chunks_exact_mut(4).zip(&mut state) {
                digest.copy_from_slice(&words[at].to_le_bytes());
                words[at] = words[lanes.len()];
            }
        }
    }
}

/// Takes the lanes of `C` vectors through so many bytes of their inputs.
#[inline(always)]
fn run<S: Simd, const C: usize>(
    simd: S,
    state: &mut [[u32; MAX_LANES]; 4],
    inputs: &[&[u8]; MAX_LANES],
    bytes: usize,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let width = <S::u32s as SimdBase<S>>::LEN;
            let zero = S::u32s::splat(simd, 0);
            let mut now = [[zero; C]; 4];
            for (now, words) in now.iter_mut().zip(&*state) {
                for (now, from) in now.iter_mut().zip(words.chunks_exact(width)) {
                    *now = S::u32s::from_slice(simd, from);
                }
            }
            for at in (0..bytes).step_by(BLOCK_BYTES) {
                let mut words = [[zero; 16]; C];
                for (words, inputs) in words.iter_mut().zip(inputs.chunks_exact(width)) {
                    load(simd, inputs, at, words);
                }
                compress(simd, &mut now, &words);
            }
            for (words, now) in state.iter_mut().zip(now) {
                for (to, now) in words.chunks_exact_mut(width).zip(now) {
                    now.store_slice(to);
                }
            }
        },
    );
}

/// The 16 words of the block at `at` in each lane of a vector.
#[inline(always)]
fn load<S: Simd>(simd: S, inputs: &[&[u8]], at: usize, words: &mut [S::u32s; 16]) {
    let width = <S::u32s as SimdBase<S>>::LEN;
    for (tile, words) in words.chunks_exact_mut(width).enumerate() {
        for (word, input) in words.iter_mut().zip(inputs) {
            let block = &input[at..at + BLOCK_BYTES];
            *word = S::u8s::from_slice(simd, &block[tile * 4 * width..][..4 * width]).bitcast();
        }
        // A row of words for each lane becomes one of lanes for each word: that
        // takes a perfect shuffle of the rows for every bit of a lane's number.
        let mut half = 1;
        while half < width {
            let mut from = [S::u32s::splat(simd, 0); 16];
            from[..width].copy_from_slice(words);
            for pair in 0..width / 2 {
                let (low, high) = from[pair].interleave(from[pair + width / 2]);
                words[2 * pair] = low;
                words[2 * pair + 1] = high;
            }
            half *= 2;
        }
    }
}

/// One block in each lane.
#[inline(always)]
fn compress<S: Simd, const C: usize>(
    simd: S,
    now: &mut [[S::u32s; C]; 4],
    words: &[[S::u32s; 16]; C],
) {
    let before = *now;
    for at in (0..16).step_by(4) {
        step::<S, C, 7>(simd, now, words, at, at, f::<S>);
        step::<S, C, 12>(simd, now, words, at + 1, at + 1, f::<S>);
        step::<S, C, 17>(simd, now, words, at + 2, at + 2, f::<S>);
        step::<S, C, 22>(simd, now, words, at + 3, at + 3, f::<S>);
    }
    for at in (16..32).step_by(4) {
        step::<S, C, 5>(simd, now, words, at, 5 * at + 1, g::<S>);
        step::<S, C, 9>(simd, now, words, at + 1, 5 * at + 6, g::<S>);
        step::<S, C, 14>(simd, now, words, at + 2, 5 * at + 11, g::<S>);
        step::<S, C, 20>(simd, now, words, at + 3, 5 * at + 16, g::<S>);
    }
    for at in (32..48).step_by(4) {
        step::<S, C, 4>(simd, now, words, at, 3 * at + 5, h::<S>);
        step::<S, C, 11>(simd, now, words, at + 1, 3 * at + 8, h::<S>);
        step::<S, C, 16>(simd, now, words, at + 2, 3 * at + 11, h::<S>);
        step::<S, C, 23>(simd, now, words, at + 3, 3 * at + 14, h::<S>);
    }
    for at in (48..64).step_by(4) {
        step::<S, C, 6>(simd, now, words, at, 7 * at, i::<S>);
        step::<S, C, 10>(simd, now, words, at + 1, 7 * at + 7, i::<S>);
        step::<S, C, 15>(simd, now, words, at + 2, 7 * at + 14, i::<S>);
        step::<S, C, 21>(simd, now, words, at + 3, 7 * at + 21, i::<S>);
    }
    for (now, before) in now.iter_mut().zip(before) {
        for (now, before) in now.iter_mut().zip(before) {
            *now += before;
        }
    }
}

/// A becomes D, and the new word B: as it stands in the RFC, with names turned.
#[inline(always)]
fn step<S: Simd, const C: usize, const ROTATE: u32>(
    simd: S,
    now: &mut [[S::u32s; C]; 4],
    words: &[[S::u32s; 16]; C],
    at: usize,
    word: usize,
    mix: impl Fn(S::u32s, S::u32s, S::u32s, S::u32s) -> S::u32s,
) {
    let [a, b, c, d] = *now;
    let sine = S::u32s::splat(simd, SINES[at]);
    let mut new = a;
    for n in 0..C {
        let sum = mix(a[n] + words[n][word % 16] + sine, b[n], c[n], d[n]);
        new[n] = b[n] + ((sum << ROTATE) | (sum >> (32 - ROTATE)));
    }
    *now = [d, new, b, c];
}

/// F. The sum is what is known before B is.
#[inline(always)]
fn f<S: Simd>(sum: S::u32s, b: S::u32s, c: S::u32s, d: S::u32s) -> S::u32s {
    sum + (d ^ (b & (c ^ d)))
}

#[inline(always)]
fn g<S: Simd>(sum: S::u32s, b: S::u32s, c: S::u32s, d: S::u32s) -> S::u32s {
    // In two sums, since only one of the terms has to wait for B.
    sum + (c & !d) + (b & d)
}

#[inline(always)]
fn h<S: Simd>(sum: S::u32s, b: S::u32s, c: S::u32s, d: S::u32s) -> S::u32s {
    sum + (b ^ (c ^ d))
}

#[inline(always)]
fn i<S: Simd>(sum: S::u32s, b: S::u32s, c: S::u32s, d: S::u32s) -> S::u32s {
    sum + (c ^ (b | !d))
}
