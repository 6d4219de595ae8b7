//! Element types on the host, test values, and tolerances.

use anyhow::{Result, bail, ensure};
use half::{bf16, f16};

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    Bf16,
    U16,
    U32,
    U64,
}

impl Element {
    /// The element of -DDATA_TYPE.
    pub(crate) fn of_data_type(number: usize) -> Result<Self> {
        match number {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            2 => Ok(Self::Bf16),
            _ => bail!("failed to find data type {number}"),
        }
    }

    /// The unsigned integer of that many bytes.
    pub(crate) fn of_bytes(bytes: usize) -> Result<Self> {
        match bytes {
            2 => Ok(Self::U16),
            4 => Ok(Self::U32),
            8 => Ok(Self::U64),
            _ => bail!("failed to find an integer of {bytes} bytes"),
        }
    }

    /// As the simulator spells it; it knows bf16 as a structure of two bytes.
    pub(crate) fn spelling(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bytes2",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 | Self::U16 => 2,
            Self::F32 | Self::U32 => 4,
            Self::U64 => 8,
        }
    }

    /// The largest relative error of rounding to the type, and of a few
    /// roundings and library functions of fp32 before that.
    fn relative_error(self) -> f64 {
        let arithmetic = 2f64.powi(-20);
        match self {
            Self::F32 => arithmetic,
            Self::F16 => arithmetic + 2f64.powi(-11),
            Self::Bf16 => arithmetic + 2f64.powi(-8),
            Self::U16 | Self::U32 | Self::U64 => 0.0,
        }
    }

    pub(crate) fn encode(self, values: &[f64]) -> Vec<u8> {
        let each = |&value: &f64| match self {
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            Self::U16 => (value as u16).to_le_bytes().to_vec(),
            Self::U32 => (value as u32).to_le_bytes().to_vec(),
            Self::U64 => (value as u64).to_le_bytes().to_vec(),
        };
        values.iter().flat_map(each).collect()
    }

    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f64> {
        let each = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            let bits = u64::from_le_bytes(wide);
            match self {
                Self::F32 => f64::from(f32::from_bits(bits as u32)),
                Self::F16 => f16::from_bits(bits as u16).to_f64(),
                Self::Bf16 => bf16::from_bits(bits as u16).to_f64(),
                Self::U16 | Self::U32 | Self::U64 => bits as f64,
            }
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
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// `count` values between `low` and `high` that the element type has.
    pub(crate) fn values(
        &mut self,
        element: Element,
        count: usize,
        low: f64,
        high: f64,
    ) -> Vec<f64> {
        let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let values: Vec<f64> = (0..count).map(|_| low + unit(self.bits()) * (high - low)).collect();
        element.rounded(&values)
    }
}

/// Compares what a kernel that computes in fp32 left with exact results.
///
/// `absolute` is what sums whose terms cancel may be off beside the relative
/// error of the element type.
pub(crate) fn close(element: Element, got: &[f64], want: &[f64], absolute: f64) -> Result<()> {
    ensure!(got.len() == want.len(), "{} elements for {}", got.len(), want.len());
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let same = got == want || (got.is_nan() && want.is_nan());
        let allowed = element.relative_error() * want.abs() + absolute;
        ensure!(
            same || (got - want).abs() <= allowed,
            "element {at} is {got}, should be {want} (give or take {allowed:e})"
        );
    }
    Ok(())
}
