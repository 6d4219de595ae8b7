//! References for kernels that move elements: transposes and embeddings.

use anyhow::Result;

use super::launch::Launch;
use super::numbers::{Element, Random};
use super::options::Options;

pub(crate) fn transpose(options: &Options) -> Result<Vec<Launch>> {
    let bytes = options.number("ELEMENT_BYTES")?;
    let element = Element::of_bytes(bytes)?;
    // All values differ where the type has room; every byte of it is used.
    let limit = 2f64.powi(8 * bytes.min(6) as i32);
    let mut random = Random::new(9);
    let mut launches = Vec::new();
    for [batch, rows, columns] in [[2, 37, 70], [1, 32, 64], [3, 1, 33], [1, 1, 1]] {
        let before: Vec<f64> = random
            .values(Element::U64, batch * rows * columns, 0.0, limit)
            .into_iter()
            .map(f64::floor)
            .collect();
        let mut after = Vec::new();
        for matrix in before.chunks(rows * columns) {
            for column in 0..columns {
                after.extend((0..rows).map(|row| matrix[row * columns + column]));
            }
        }
        let tiles = |length: usize| length.div_ceil(32) as u32;
        let grid = [tiles(columns), tiles(rows), batch as u32];
        launches.push(
            Launch::new("transpose_tiled", grid, [32, 8, 1])
                .input(element, &before)
                .output(element, after, 0.0)
                .i32(rows)
                .i32(columns),
        );
    }
    Ok(launches)
}

pub(crate) fn embedding(options: &Options) -> Result<Vec<Launch>> {
    const ROWS: i64 = 11;
    const PADDING: i64 = 3;
    let element = options.element()?;
    let group = options.group()?;
    let mut random = Random::new(10);
    let mut launches = Vec::new();
    for width in [1, 37, 300] {
        let table = random.values(element, ROWS as usize * width, -1.0, 1.0);
        let mut numbers: Vec<i64> = (0..20).map(|_| random.below(ROWS as usize) as i64).collect();
        // Just outside on both sides, far outside, one to be left out.
        numbers.extend([-1, ROWS, i64::MAX, i64::MIN, PADDING]);
        let gradients = random.values(element, numbers.len() * width, -1.0, 1.0);
        let before = random.values(Element::F32, table.len(), -1.0, 1.0);
        let (mut rows, mut after) = (Vec::new(), before.clone());
        for (number, gradient) in numbers.iter().zip(gradients.chunks(width)) {
            if !(0..ROWS).contains(number) {
                rows.extend(vec![0.0; width]);
                continue;
            }
            let range = *number as usize * width..(*number as usize + 1) * width;
            rows.extend_from_slice(&table[range.clone()]);
            if *number != PADDING {
                after[range].iter_mut().zip(gradient).for_each(|(to, from)| *to += from);
            }
        }
        let launch = |kernel| Launch::blocks(kernel, numbers.len(), group);
        launches.push(
            launch("embedding_forward")
                .input(element, &table)
                .integers(&numbers)
                .output(element, rows, 0.0)
                .i64(ROWS)
                .i32(width),
        );
        launches.push(
            launch("embedding_backward")
                .input(element, &gradients)
                .integers(&numbers)
                .update(Element::F32, &before, after, 1e-5)
                .i64(ROWS)
                .i32(width)
                .i64(PADDING),
        );
    }
    Ok(launches)
}
