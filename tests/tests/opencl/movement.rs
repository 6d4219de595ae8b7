//! Transpositions and layouts, which only move bytes.

use anyhow::Result;

use super::case::Case;
use super::numbers::{Random, equal};

/// What memory nobody wrote to holds.
const UNTOUCHED: u8 = 0xff;

fn noise(count: usize) -> Vec<u8> {
    let mut random = Random::new(17);
    (0..count).map(|_| random.bits() as u8).collect()
}

/// Copies an element of `size` bytes.
fn place(size: usize, from: &[u8], from_at: usize, to: &mut [u8], to_at: usize) {
    to[to_at * size..(to_at + 1) * size]
        .copy_from_slice(&from[from_at * size..(from_at + 1) * size]);
}

pub(crate) fn check_transpose(case: &Case<'_>) -> Result<()> {
    let size = case.number("ELEMENT_SIZE")?;
    let tile = case.number("TILE")?;
    let batch = 2;
    for (rows, columns) in [(45, 70), (1, 33), (64, 32), (7, 1)] {
        let (x_leading, y_leading) = (columns + 3, rows + 1);
        let (x_batch, y_batch) = (rows * x_leading + 5, columns * y_leading + 2);
        let x = noise(batch * x_batch * size);
        let mut want = vec![UNTOUCHED; batch * y_batch * size];
        for b in 0..batch {
            for row in 0..rows {
                for column in 0..columns {
                    let from = b * x_batch + row * x_leading + column;
                    let to = b * y_batch + column * y_leading + row;
                    place(size, &x, from, &mut want, to);
                }
            }
        }

        let x = case.input_bytes(&x)?;
        let y = case.memory_bytes(&vec![UNTOUCHED; want.len()])?;
        case.kernel("gfxpack_transpose")?
            .memory(&x)?
            .memory(&y)?
            .value(rows as u32)?
            .value(columns as u32)?
            .value(x_leading as u32)?
            .value(y_leading as u32)?
            .value(x_batch as u64)?
            .value(y_batch as u64)?
            .run([columns.div_ceil(tile), rows.div_ceil(tile), batch])?;
        equal("y", &case.read_bytes(&y)?, &want)?;
    }
    Ok(())
}

pub(crate) fn check_layout(case: &Case<'_>) -> Result<()> {
    if case.number("CONVERSION")? < 2 { check_nhwc(case) } else { check_blocked(case) }
}

fn check_nhwc(case: &Case<'_>) -> Result<()> {
    let size = case.number("ELEMENT_SIZE")?;
    let to_nhwc = case.number("CONVERSION")? == 0;
    let batch = 2;
    for (channels, padded, places) in [(19, 24, 35), (16, 16, 16), (3, 4, 100), (40, 40, 1)] {
        let nchw = batch * channels * places;
        let nhwc = batch * padded * places;
        let x = noise(if to_nhwc { nchw } else { nhwc } * size);
        // Every element of either destination is written, padding included.
        let mut want = vec![0; if to_nhwc { nhwc } else { nchw } * size];
        for n in 0..batch {
            for c in 0..channels {
                for p in 0..places {
                    let plain = (n * channels + c) * places + p;
                    let last = (n * places + p) * padded + c;
                    let (from, to) = if to_nhwc { (plain, last) } else { (last, plain) };
                    place(size, &x, from, &mut want, to);
                }
            }
        }

        let x = case.input_bytes(&x)?;
        let y = case.memory_bytes(&vec![UNTOUCHED; want.len()])?;
        case.kernel("gfxpack_layout")?
            .memory(&x)?
            .memory(&y)?
            .value(channels as u32)?
            .value(padded as u32)?
            .value(places as u32)?
            .run([places.div_ceil(16), padded.div_ceil(16), batch])?;
        equal("y", &case.read_bytes(&y)?, &want)?;
    }
    Ok(())
}

fn check_blocked(case: &Case<'_>) -> Result<()> {
    let size = case.number("ELEMENT_SIZE")?;
    let block = case.number("BLOCK")?;
    let to_blocked = case.number("CONVERSION")? == 2;
    let batch = 2;
    for (channels, places) in [(19usize, 70usize), (16, 64), (3, 5)] {
        let blocks = channels.div_ceil(block);
        let plain_count = batch * channels * places;
        let blocked_count = batch * blocks * places * block;
        let x = noise(if to_blocked { plain_count } else { blocked_count } * size);
        let mut want = vec![0; if to_blocked { blocked_count } else { plain_count } * size];
        for n in 0..batch {
            for c in 0..channels {
                for p in 0..places {
                    let plain = (n * channels + c) * places + p;
                    let blocked = ((n * blocks + c / block) * places + p) * block + c % block;
                    let (from, to) = if to_blocked { (plain, blocked) } else { (blocked, plain) };
                    place(size, &x, from, &mut want, to);
                }
            }
        }

        let x = case.input_bytes(&x)?;
        let y = case.memory_bytes(&vec![UNTOUCHED; want.len()])?;
        case.kernel("gfxpack_layout")?
            .memory(&x)?
            .memory(&y)?
            .value(channels as u32)?
            .value(places as u32)?
            .run([places.div_ceil(64), blocks, batch])?;
        equal("y", &case.read_bytes(&y)?, &want)?;
    }
    Ok(())
}
