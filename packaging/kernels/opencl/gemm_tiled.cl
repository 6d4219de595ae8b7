// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Batched product of row-major matrices, c = alpha * op(a) * op(b) + beta * c, where op transposes
// its matrix or not: tiles of a and b in local memory, a small block of c in each work-item.
//
//   -DDATA_TYPE=0..2   -DTRANSPOSE_A   -DTRANSPOSE_B
//   -DTILE_M=  -DTILE_N=  -DTILE_K=       what a work-group has in local memory
//   -DITEM_M=  -DITEM_N=                  what a work-item computes

#include "gfxpack_cl_types.h"

#if !defined(TILE_M) || !defined(TILE_N) || !defined(TILE_K) || !defined(ITEM_M) || !defined(ITEM_N)
#error "the sizes of the tiles are not given"
#endif
#if TILE_M % ITEM_M != 0 || TILE_N % ITEM_N != 0
#error "a tile is a whole number of the work-items' blocks"
#endif

#define GFXPACK_ITEMS_M (TILE_M / ITEM_M)
#define GFXPACK_ITEMS_N (TILE_N / ITEM_N)
#define GFXPACK_ITEMS (GFXPACK_ITEMS_M * GFXPACK_ITEMS_N)

// Loads the tile whose corner is (first_k, first_other) of a matrix with `lines` by `k` elements
// (by its op), zeros outside. `along_k` says that its rows in memory run along k; neighbouring
// work-items read neighbours in memory either way.
static inline void gfxpack_load_tile(const global gfxpack_data *from, local float *tile, uint leading,
                                     bool along_k, uint lines, uint k, uint first_line,
                                     uint first_k, uint tile_lines)
{
    for (uint i = get_local_id(0); i < tile_lines * TILE_K; i += GFXPACK_ITEMS) {
        const uint line = along_k ? i / TILE_K : i % tile_lines;
        const uint depth = along_k ? i % TILE_K : i / tile_lines;
        const size_t at_line = first_line + line;
        const size_t at_k = first_k + depth;
        float value = 0.0f;
        if (at_line < lines && at_k < k) {
            value = gfxpack_load(from, along_k ? at_line * leading + at_k : at_k * leading + at_line);
        }
        // One element more than needed per row: rows then start in different banks.
        tile[depth * (tile_lines + 1) + line] = value;
    }
}

// op(a) is m by k, op(b) is k by n. Leading dimensions and batch strides are in elements.
// Launched over work-groups [tiles along n, tiles along m, batch].
kernel __attribute__((reqd_work_group_size(GFXPACK_ITEMS, 1, 1))) void
gfxpack_gemm(const global gfxpack_data *a, const global gfxpack_data *b, global gfxpack_data *c,
             const uint m, const uint n, const uint k, const uint a_leading, const uint b_leading,
             const uint c_leading, const ulong a_batch, const ulong b_batch, const ulong c_batch,
             const float alpha, const float beta)
{
    local float a_tile[TILE_K * (TILE_M + 1)];
    local float b_tile[TILE_K * (TILE_N + 1)];
    const uint first_m = get_group_id(1) * TILE_M;
    const uint first_n = get_group_id(0) * TILE_N;
    const uint item_m = get_local_id(0) / GFXPACK_ITEMS_N;
    const uint item_n = get_local_id(0) % GFXPACK_ITEMS_N;
    a += get_group_id(2) * a_batch;
    b += get_group_id(2) * b_batch;
    c += get_group_id(2) * c_batch;

    float sums[ITEM_M][ITEM_N];
#pragma unroll
    for (uint i = 0; i < ITEM_M; ++i) {
#pragma unroll
        for (uint j = 0; j < ITEM_N; ++j) {
            sums[i][j] = 0.0f;
        }
    }

    for (uint first_k = 0; first_k < k; first_k += TILE_K) {
#ifdef TRANSPOSE_A
        gfxpack_load_tile(a, a_tile, a_leading, false, m, k, first_m, first_k, TILE_M);
#else
        gfxpack_load_tile(a, a_tile, a_leading, true, m, k, first_m, first_k, TILE_M);
#endif
#ifdef TRANSPOSE_B
        gfxpack_load_tile(b, b_tile, b_leading, true, n, k, first_n, first_k, TILE_N);
#else
        gfxpack_load_tile(b, b_tile, b_leading, false, n, k, first_n, first_k, TILE_N);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);

        for (uint depth = 0; depth < TILE_K; ++depth) {
            float b_values[ITEM_N];
#pragma unroll
            for (uint j = 0; j < ITEM_N; ++j) {
                b_values[j] = b_tile[depth * (TILE_N + 1) + item_n + j * GFXPACK_ITEMS_N];
            }
#pragma unroll
            for (uint i = 0; i < ITEM_M; ++i) {
                const float a_value = a_tile[depth * (TILE_M + 1) + item_m + i * GFXPACK_ITEMS_M];
#pragma unroll
                for (uint j = 0; j < ITEM_N; ++j) {
                    sums[i][j] = fma(a_value, b_values[j], sums[i][j]);
                }
            }
        }
        // The next tiles must not overwrite what others still read.
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#pragma unroll
    for (uint i = 0; i < ITEM_M; ++i) {
        const uint row = first_m + item_m + i * GFXPACK_ITEMS_M;
#pragma unroll
        for (uint j = 0; j < ITEM_N; ++j) {
            const uint column = first_n + item_n + j * GFXPACK_ITEMS_N;
            if (row < m && column < n) {
                const size_t at = (size_t)row * c_leading + column;
                gfxpack_store(c, at, GFXPACK_BLEND(alpha, sums[i][j], beta, c, at));
            }
        }
    }
}
