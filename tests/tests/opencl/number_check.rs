//! Counting infinities, NaN and other special numbers.

use std::num::FpCategory;

use anyhow::{Context as _, Result};
use half::{bf16, f16};

use super::case::Case;
use super::numbers::{Dtype, Random, equal};

fn category(dtype: Dtype, bytes: &[u8]) -> Result<FpCategory> {
    match (dtype, bytes) {
        (Dtype::Fp32, &[a, b, c, d]) => Ok(f32::from_le_bytes([a, b, c, d]).classify()),
        (Dtype::Fp16, &[a, b]) => Ok(f16::from_le_bytes([a, b]).classify()),
        (Dtype::Bf16, &[a, b]) => Ok(bf16::from_le_bytes([a, b]).classify()),
        _ => anyhow::bail!("integers are always numbers"),
    }
}

pub(crate) fn check(case: &Case<'_>) -> Result<()> {
    let dtype = case.dtype()?;
    let mut random = Random::new(22);
    let count = 5 * case.number("WG")? + 7;
    let plain = dtype.encode(&random.values(dtype, count, -3.0, 3.0));
    // Random bits: of half floats, every 32nd is infinite or no number.
    let noise: Vec<u8> = (0..count * dtype.size()).map(|_| random.bits() as u8).collect();
    // All zero but for a few.
    let mut sparse = vec![0.0; count];
    sparse[3] = f64::NAN;
    sparse[count - 1] = f64::NEG_INFINITY;
    sparse[400] = -0.0;
    sparse[700] = 2f64.powi(if dtype == Dtype::Fp16 { -24 } else { -130 });
    for bytes in [plain, noise, dtype.encode(&sparse)] {
        check_bytes(case, dtype, &bytes)?;
    }
    Ok(())
}

fn check_bytes(case: &Case<'_>, dtype: Dtype, bytes: &[u8]) -> Result<()> {
    let mut want = [0u32; 4];
    for element in bytes.chunks_exact(dtype.size()) {
        match category(dtype, element)? {
            FpCategory::Nan => want[0] += 1,
            FpCategory::Infinite => want[1] += 1,
            FpCategory::Subnormal => want[2] += 1,
            FpCategory::Zero => want[3] += 1,
            FpCategory::Normal => (),
        }
    }

    let x = case.input_bytes(bytes)?;
    let counts = case.memory_bytes(&[0; 16])?;
    let ranks = [u32::MAX, 0].map(u32::to_le_bytes).concat();
    let ranks = case.memory_bytes(&ranks)?;
    let count = bytes.len() / dtype.size();
    let mut launch =
        case.kernel("gfxpack_number_check")?.memory(&x)?.value(count as u32)?.memory(&counts)?;
    if case.flag("EXTREMES") {
        launch = launch.memory(&ranks)?;
    }
    launch.run([3, 1, 1])?;
    let words = |bytes: &[u8]| -> Vec<u32> {
        let words = bytes.chunks_exact(4).map(|word| word.iter().rev());
        words.map(|word| word.fold(0, |word, byte| word << 8 | u32::from(*byte))).collect()
    };
    equal("counts", &words(&case.read_bytes(&counts)?), &want)?;

    if case.flag("EXTREMES") {
        let finite: Vec<f64> =
            dtype.decode(bytes).into_iter().filter(|value| value.is_finite()).collect();
        let smallest = finite.iter().copied().reduce(f64::min).context("nothing is finite")?;
        let largest = finite.iter().copied().reduce(f64::max).context("nothing is finite")?;
        let got: Vec<f64> =
            words(&case.read_bytes(&ranks)?).iter().map(|rank| of_rank(dtype, *rank)).collect();
        equal("extremes", &got, &[smallest, largest])?;
    }
    Ok(())
}

/// The element that has a rank, as the kernel's comment says.
fn of_rank(dtype: Dtype, rank: u32) -> f64 {
    let sign = 1u32 << (8 * dtype.size() - 1);
    let (magnitude, factor) = if rank >= sign { (rank - sign, 1.0) } else { (sign - rank, -1.0) };
    factor * dtype.decode(&magnitude.to_le_bytes()[..dtype.size()])[0]
}
