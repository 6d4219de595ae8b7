// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Transposes every matrix of a batch: [batch][rows][columns] becomes
// [batch][columns][rows]. NCHW to NHWC is rows = C, columns = H * W.
//
// -DELEMENT_BYTES=1|2|4|8  the elements are moved as they are
// Blocks have 32 x 8 threads; the grid is (columns / 32, rows / 32, batch), rounded up.

#include <hip/hip_runtime.h>

#ifndef ELEMENT_BYTES
#error "ELEMENT_BYTES must be defined: 1, 2, 4 or 8"
#elif ELEMENT_BYTES == 1
using word = unsigned char;
#elif ELEMENT_BYTES == 2
using word = unsigned short;
#elif ELEMENT_BYTES == 4
using word = unsigned int;
#elif ELEMENT_BYTES == 8
using word = unsigned long long;
#else
#error "ELEMENT_BYTES must be 1, 2, 4 or 8"
#endif

namespace {
constexpr int tile = 32;
constexpr int lines = 8;
}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    transpose_tiled(const word* in, word* out, int rows, int columns) {
    // The spare column puts a column's elements on different banks.
    __shared__ word square[tile][tile + 1];
    const size_t matrix = static_cast<size_t>(blockIdx.z) * rows * columns;
    const int x = threadIdx.x;
    const int row0 = blockIdx.y * tile, column0 = blockIdx.x * tile;
    for (int y = threadIdx.y; y < tile; y += lines) {
        const int row = row0 + y, column = column0 + x;
        if (row < rows && column < columns) {
            square[y][x] = in[matrix + static_cast<size_t>(row) * columns + column];
        }
    }
    __syncthreads();
    // Threads go along the rows of the result now: x counts the old rows.
    for (int y = threadIdx.y; y < tile; y += lines) {
        const int row = row0 + x, column = column0 + y;
        if (row < rows && column < columns) {
            out[matrix + static_cast<size_t>(column) * rows + row] = square[x][y];
        }
    }
}
