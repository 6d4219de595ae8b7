// SPDX-License-Identifier: MIT OR Apache-2.0
//
// C = alpha * op(A) * op(B) + beta * C for row-major matrices, batched with
// strides, through LDS tiles.
//
// -DDATA_TYPE=0|1|2             fp32, fp16, bf16; sums are fp32
// -DTRANSPOSE_A, -DTRANSPOSE_B  the operand is stored transposed
// -DTILE=32|64                  edge of the square of C that a block makes (64 unless given)
// Blocks have 256 threads; the grid is (columns / TILE, rows / TILE, batch), rounded up.

#include "gfxpack_hip_types.hpp"

#ifndef TILE
#define TILE 64
#endif
#if TILE != 32 && TILE != 64
#error "TILE must be 32 or 64"
#endif

using namespace gfxpack;

namespace {

constexpr int threads = 256;
constexpr int side = 16;            // threads along each edge of the tile
constexpr int micro = TILE / side;  // elements of C per thread along each edge
constexpr int depth = 16;           // of the common dimension per step

// One more column than the tile has: a column's elements fall on different banks.
using Slab = float[depth][TILE + 1];

// Fills slab[k][i] with the matrix element at (first + i, k0 + k), 0 beyond
// the edges. `Across` tells that neighbours in i are neighbours in memory;
// threads go along the memory either way.
template <bool Across>
__device__ inline void load(Slab& slab, const element* matrix, int pitch, int first, int count,
                            int k0, int k_count) {
    for (int at = threadIdx.x; at < TILE * depth; at += threads) {
        const int i = Across ? at % TILE : at / depth;
        const int k = Across ? at / TILE : at % depth;
        const size_t line = Across ? k0 + k : first + i;
        const size_t column = Across ? first + i : k0 + k;
        const bool exists = first + i < count && k0 + k < k_count;
        slab[k][i] = exists ? to_float(matrix[line * pitch + column]) : 0.0f;
    }
}

#ifdef TRANSPOSE_A
constexpr bool a_across = true;
#else
constexpr bool a_across = false;
#endif
#ifdef TRANSPOSE_B
constexpr bool b_across = false;
#else
constexpr bool b_across = true;
#endif

}  // namespace

// m x n is C's size, k the common dimension. Pitches are in elements, from one
// stored row to the next; strides from one matrix of the batch to the next.
// C is not read where beta is 0, so it may hold anything then.
extern "C" __global__ void __launch_bounds__(256)
    gemm_tiled(const element* a, const element* b, element* c, int m, int n, int k, int a_pitch,
               int b_pitch, int c_pitch, long long a_stride, long long b_stride,
               long long c_stride, float alpha, float beta) {
    __shared__ Slab a_slab;
    __shared__ Slab b_slab;
    a += blockIdx.z * a_stride;
    b += blockIdx.z * b_stride;
    c += blockIdx.z * c_stride;
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    const int y = threadIdx.x / side, x = threadIdx.x % side;

    float sums[micro][micro] = {};
    for (int k0 = 0; k0 < k; k0 += depth) {
        load<a_across>(a_slab, a, a_pitch, first_row, m, k0, k);
        load<b_across>(b_slab, b, b_pitch, first_column, n, k0, k);
        __syncthreads();
        for (int kk = 0; kk < depth; ++kk) {
            float lefts[micro], rights[micro];
            for (int i = 0; i < micro; ++i) {
                lefts[i] = a_slab[kk][y + i * side];
                rights[i] = b_slab[kk][x + i * side];
            }
            for (int i = 0; i < micro; ++i) {
                for (int j = 0; j < micro; ++j) {
                    sums[i][j] += lefts[i] * rights[j];
                }
            }
        }
        __syncthreads();
    }

    for (int i = 0; i < micro; ++i) {
        for (int j = 0; j < micro; ++j) {
            const int row = first_row + y + i * side, column = first_column + x + j * side;
            if (row < m && column < n) {
                element& to = c[static_cast<size_t>(row) * c_pitch + column];
                const float kept = beta != 0.0f ? beta * to_float(to) : 0.0f;
                to = to_element(alpha * sums[i][j] + kept);
            }
        }
    }
}
