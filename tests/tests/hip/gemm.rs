//! Reference for the matrix product.

use anyhow::Result;

use super::launch::Launch;
use super::numbers::Random;
use super::options::Options;

/// A stored matrix: lines of `columns` elements, `pitch` apart.
#[derive(Clone, Copy)]
struct Stored {
    rows: usize,
    columns: usize,
    pitch: usize,
}

impl Stored {
    fn new(rows: usize, columns: usize, transposed: bool) -> Self {
        let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
        Self { rows, columns, pitch: columns + 3 }
    }

    /// Elements from one matrix of the batch to the next; the last matrix
    /// ends with its last element, so that reading on is seen.
    fn stride(&self) -> usize {
        self.rows * self.pitch + 1
    }

    fn length(&self, batch: usize) -> usize {
        (batch - 1) * self.stride() + (self.rows - 1) * self.pitch + self.columns
    }

    fn at(&self, transposed: bool, row: usize, column: usize) -> usize {
        if transposed { column * self.pitch + row } else { row * self.pitch + column }
    }
}

/// More than one tile each way with a rest, less than one, one step of the
/// common dimension with and without rest.
const SIZES: &[[usize; 3]] = &[[70, 67, 19], [5, 33, 16], [1, 1, 1], [64, 32, 40]];
const BATCH: usize = 2;

pub(crate) fn tiled(options: &Options) -> Result<Vec<Launch>> {
    let element = options.element()?;
    let tile = options.number_or("TILE", 64)?;
    let (turn_a, turn_b) = (options.flag("TRANSPOSE_A"), options.flag("TRANSPOSE_B"));
    let mut random = Random::new(3);
    let mut launches = Vec::new();
    for (&[m, n, k], (alpha, beta)) in SIZES.iter().zip([(0.5, 0.25), (1.0, 0.0)].iter().cycle()) {
        let (a, b) = (Stored::new(m, k, turn_a), Stored::new(k, n, turn_b));
        let c = Stored::new(m, n, false);
        let a_values = random.values(element, a.length(BATCH), -1.0, 1.0);
        let b_values = random.values(element, b.length(BATCH), -1.0, 1.0);
        // Without beta, what C held must not reach the result.
        let c_before = match *beta {
            0.0 => vec![f64::NAN; c.length(BATCH)],
            _ => random.values(element, c.length(BATCH), -1.0, 1.0),
        };
        let mut c_after = c_before.clone();
        for batch in 0..BATCH {
            let (a0, b0, c0) = (batch * a.stride(), batch * b.stride(), batch * c.stride());
            for row in 0..m {
                for column in 0..n {
                    let sum: f64 = (0..k)
                        .map(|i| {
                            let left = a_values[a0 + a.at(turn_a, row, i)];
                            left * b_values[b0 + b.at(turn_b, i, column)]
                        })
                        .sum();
                    let to = &mut c_after[c0 + c.at(false, row, column)];
                    *to = alpha * sum + if *beta == 0.0 { 0.0 } else { beta * *to };
                }
            }
        }
        let tiles = |length: usize| length.div_ceil(tile) as u32;
        let grid = [tiles(n), tiles(m), BATCH as u32];
        launches.push(
            Launch::new("gemm_tiled", grid, [256, 1, 1])
                .input(element, &a_values)
                .input(element, &b_values)
                .update(element, &c_before, c_after, k as f64 * 2f64.powi(-22))
                .i32(m)
                .i32(n)
                .i32(k)
                .i32(a.pitch)
                .i32(b.pitch)
                .i32(c.pitch)
                .i64(a.stride() as i64)
                .i64(b.stride() as i64)
                .i64(c.stride() as i64)
                .f32(*alpha)
                .f32(*beta),
        );
    }
    Ok(launches)
}
