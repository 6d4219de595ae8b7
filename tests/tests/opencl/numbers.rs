//! Element types on the host, test values, and tolerances.

use anyhow::{Result, bail, ensure};
use half::{bf16, f16};

/// The element types of gfxpack_cl_types.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    Fp32,
    Fp16,
    Bf16,
    Int8,
    Int32,
}

impl Dtype {
    pub(crate) fn from_number(number: usize) -> Result<Self> {
        match number {
            0 => Ok(Self::Fp32),
            1 => Ok(Self::Fp16),
            2 => Ok(Self::Bf16),
            3 => Ok(Self::Int8),
            4 => Ok(Self::Int32),
            _ => bail!("failed to find data type {number}"),
        }
    }

    pub(crate) fn is_float(self) -> bool {
        !matches!(self, Self::Int8 | Self::Int32)
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Fp32 | Self::Int32 => 4,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Int8 => 1,
        }
    }

    /// The largest relative error of rounding to the type once.
    fn roundoff(self) -> f64 {
        match self {
            Self::Fp32 => 2f64.powi(-24),
            Self::Fp16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
            Self::Int8 | Self::Int32 => 0.0,
        }
    }

    /// The nearest element's bytes; integers are kept within their range.
    pub(crate) fn encode(self, values: &[f64]) -> Vec<u8> {
        let each = |value: &f64| match self {
            Self::Fp32 => (*value as f32).to_le_bytes().to_vec(),
            // Not from_f64: it leaves part of the mantissa out of account.
            Self::Fp16 => f16::from_f32(*value as f32).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f32(*value as f32).to_le_bytes().to_vec(),
            Self::Int8 => (value.round_ties_even() as i8).to_le_bytes().to_vec(),
            Self::Int32 => (value.round_ties_even() as i32).to_le_bytes().to_vec(),
        };
        values.iter().flat_map(each).collect()
    }

    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f64> {
        let each = |bytes: &[u8]| match (self, bytes) {
            (Self::Fp32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (Self::Fp16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
            (Self::Int8, &[a]) => f64::from(a as i8),
            (Self::Int32, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            _ => unreachable!("chunks have the element's size"),
        };
        bytes.chunks_exact(self.size()).map(each).collect()
    }

    /// What the type makes of the values.
    pub(crate) fn rounded(self, values: &[f64]) -> Vec<f64> {
        self.decode(&self.encode(values))
    }
}

/// Made-up numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
    /// Generators", OOPSLA 2014 (SplitMix64).
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn within(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        low + unit * (high - low)
    }

    /// `count` values of the type.
    pub(crate) fn values(&mut self, dtype: Dtype, count: usize, low: f64, high: f64) -> Vec<f64> {
        let values: Vec<f64> = (0..count).map(|_| self.within(low, high)).collect();
        dtype.rounded(&values)
    }
}

/// Compares results of a kernel that computes in float with exact ones.
///
/// Allowed are the rounding to the element type, a few roundings of float
/// functions (OpenCL allows `pow` 16), and `absolute`, for what sums whose
/// terms cancel may be off.
pub(crate) fn close(
    what: &str,
    dtype: Dtype,
    got: &[f64],
    want: &[f64],
    absolute: f64,
) -> Result<()> {
    ensure!(got.len() == want.len(), "{what}: {} elements for {}", got.len(), want.len());
    let functions = if dtype.is_float() { 20.0 * Dtype::Fp32.roundoff() } else { 0.0 };
    let relative = dtype.roundoff() + functions;
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let same = got == want || (got.is_nan() && want.is_nan());
        let allowed = relative * want.abs() + absolute;
        ensure!(
            same || (got - want).abs() <= allowed,
            "{what}: element {at} is {got}, should be {want} (give or take {allowed:e})"
        );
    }
    Ok(())
}

/// Compares results that are nobody's to round.
pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: &[T],
    want: &[T],
) -> Result<()> {
    ensure!(got.len() == want.len(), "{what}: {} elements for {}", got.len(), want.len());
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        ensure!(got == want, "{what}: element {at} is {got:?}, should be {want:?}");
    }
    Ok(())
}
