// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Forward 2D convolution of NCHW images with square filters of a size known to the compiler: the
// part of the input under a 16 by 16 tile of the output is held in local memory and serves several
// filters at once.
//
//   -DFILTER=<size>   -DSTRIDE=<stride>   -DDATA_TYPE=0..2   -DITEM_FILTERS=<filters per item>

#include "gfxpack_cl_types.h"

#if !defined(FILTER) || FILTER < 1 || !defined(STRIDE) || STRIDE < 1
#error "FILTER and STRIDE are the filter's size and the stride"
#endif
#ifndef ITEM_FILTERS
#define ITEM_FILTERS 4
#endif

#define GFXPACK_TILE 16
#define GFXPACK_INPUT_TILE ((GFXPACK_TILE - 1) * STRIDE + FILTER)

// Launched over work-groups [tiles along W, tiles along H, N * groups * blocks], where blocks is
// the number of ITEM_FILTERS filters that a group's filters come to, rounded up.
kernel __attribute__((reqd_work_group_size(GFXPACK_TILE, GFXPACK_TILE, 1))) void
gfxpack_conv_direct(const global gfxpack_data *input, const global gfxpack_data *weights,
                    global gfxpack_data *output, const int channels, const int filters,
                    const int groups, const int height, const int width, const int output_height,
                    const int output_width, const int padding_y, const int padding_x)
{
    local float tile[GFXPACK_INPUT_TILE][GFXPACK_INPUT_TILE];
    const int c_group = channels / groups;
    const int k_group = filters / groups;
    const int blocks = (k_group + ITEM_FILTERS - 1) / ITEM_FILTERS;

    const int column = get_local_id(0);
    const int row = get_local_id(1);
    const int ox = get_group_id(0) * GFXPACK_TILE + column;
    const int oy = get_group_id(1) * GFXPACK_TILE + row;
    const int block = (int)get_group_id(2) % blocks;
    const int group = (int)get_group_id(2) / blocks % groups;
    const int n = (int)get_group_id(2) / blocks / groups;

    // Filters past the group's last are computed as that one, and not stored.
    const int k_first = block * ITEM_FILTERS;
    const int y_first = (int)get_group_id(1) * GFXPACK_TILE * STRIDE - padding_y;
    const int x_first = (int)get_group_id(0) * GFXPACK_TILE * STRIDE - padding_x;

    float sums[ITEM_FILTERS];
#pragma unroll
    for (int i = 0; i < ITEM_FILTERS; ++i) {
        sums[i] = 0.0f;
    }

    for (int c = 0; c < c_group; ++c) {
        const global gfxpack_data *plane =
            input + ((size_t)n * channels + group * c_group + c) * height * width;
        for (int i = row * GFXPACK_TILE + column; i < GFXPACK_INPUT_TILE * GFXPACK_INPUT_TILE;
             i += GFXPACK_TILE * GFXPACK_TILE) {
            const int y = y_first + i / GFXPACK_INPUT_TILE;
            const int x = x_first + i % GFXPACK_INPUT_TILE;
            const bool inside = y >= 0 && y < height && x >= 0 && x < width;
            tile[i / GFXPACK_INPUT_TILE][i % GFXPACK_INPUT_TILE] =
                inside ? gfxpack_load(plane, (size_t)y * width + x) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll
        for (int i = 0; i < ITEM_FILTERS; ++i) {
            const int k = group * k_group + min(k_first + i, k_group - 1);
            const global gfxpack_data *filter =
                weights + ((size_t)k * c_group + c) * FILTER * FILTER;
#pragma unroll
            for (int r = 0; r < FILTER; ++r) {
#pragma unroll
                for (int s = 0; s < FILTER; ++s) {
                    sums[i] += tile[row * STRIDE + r][column * STRIDE + s] *
                               gfxpack_load(filter, r * FILTER + s);
                }
            }
        }
        // The next channel's tile must not overwrite what others still read.
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (oy < output_height && ox < output_width) {
#pragma unroll
        for (int i = 0; i < ITEM_FILTERS; ++i) {
            if (k_first + i < k_group) {
                const int k = group * k_group + k_first + i;
                gfxpack_store(output,
                              (((size_t)n * filters + k) * output_height + oy) * output_width + ox,
                              sums[i]);
            }
        }
    }
}
