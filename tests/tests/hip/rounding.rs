//! Reference for the conversion to bf16, which the kernels implement bit by bit. The compiler
//! converts to fp16.

use anyhow::Result;
use half::bf16;

use super::launch::Launch;
use super::numbers::Element;
use super::options::Options;

/// Every exponent and sign, with mantissas around the ties, the carry into
/// the exponent, and the NaNs that a cut would make infinities.
pub(crate) fn stores(_: &Options) -> Result<Vec<Launch>> {
    const MANTISSAS: [u32; 12] = [
        0, 1, 0x7fff, 0x8000, 0x8001, 0x1_7fff, 0x1_8000, 0x1_8001, 0x7f_7fff, 0x7f_8000,
        0x7f_8001, 0x7f_ffff,
    ];
    let bits: Vec<u32> =
        (0..0x200).flat_map(|head| MANTISSAS.map(|mantissa| head << 23 | mantissa)).collect();
    let wanted = bits.iter().map(|&bits| f64::from(bf16::from_f32(f32::from_bits(bits)).to_bits()));
    let values: Vec<f64> = bits.iter().map(|&bits| f64::from(bits)).collect();
    Ok(vec![
        Launch::blocks("store_bits", 2, 256)
            .input(Element::U32, &values)
            .output(Element::U16, wanted.collect(), 0.0)
            .i32(values.len()),
    ])
}
