// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Local response normalisation of packed NCHW tensors, and its gradient:
// y = x * scale ^ -beta, scale = k + alpha / elements * sum of x^2 over the window.
//
//   -DLRN=<number below>   -DDATA_TYPE=0..2   -DKEEP_SCALE   -DWG=<work-group size>
//
// With KEEP_SCALE the scale is stored for the backward pass, which there is only then.

#include "gfxpack_cl_types.h"

#define GFXPACK_ACROSS_CHANNELS 0  // the window is `size` neighbouring channels
#define GFXPACK_WITHIN_CHANNEL 1   // the window is a square of `size` by `size`

#if !defined(LRN) || LRN < 0 || LRN > 1
#error "LRN is one of the numbers above"
#endif
#ifndef WG
#define WG 256
#endif

#if LRN == GFXPACK_ACROSS_CHANNELS
#define GFXPACK_ELEMENTS(size) ((float)(size))
#else
#define GFXPACK_ELEMENTS(size) ((float)(size) * (float)(size))
#endif

// The window is cut at the tensor's edge, but divided by in full. Of an even size, the middle is
// the left one of two: (size - 1) / 2 elements before it, the rest after.
#define GFXPACK_BEFORE(size) (((size) - 1) / 2)
#define GFXPACK_AFTER(size) ((size) / 2)

// Where the window around an element lies, in steps of the dimensions that it spans.
typedef struct {
    uint row_start, row_end;
    uint column_start, column_end;
    // Elements from one row, and column, to the next.
    size_t row_step, column_step;
    // Of the window's (0, 0).
    size_t base;
} gfxpack_region;

static inline gfxpack_region gfxpack_region_of(uint n, uint c, uint place, uint channels,
                                               uint height, uint width, uint before, uint after)
{
    const size_t plane = (size_t)height * width;
    gfxpack_region region;
#if LRN == GFXPACK_ACROSS_CHANNELS
    region.row_start = c > before ? c - before : 0;
    region.row_end = min(c + after + 1, channels);
    region.column_start = 0;
    region.column_end = 1;
    region.row_step = plane;
    region.column_step = 0;
    region.base = (size_t)n * channels * plane + place;
#else
    const uint row = place / width;
    const uint column = place % width;
    region.row_start = row > before ? row - before : 0;
    region.row_end = min(row + after + 1, height);
    region.column_start = column > before ? column - before : 0;
    region.column_end = min(column + after + 1, width);
    region.row_step = width;
    region.column_step = 1;
    region.base = ((size_t)n * channels + c) * plane;
#endif
    return region;
}

// Launched over [H * W, C, N].
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_lrn_forward(const global gfxpack_data *x, global gfxpack_data *y,
#ifdef KEEP_SCALE
                    global float *scale,
#endif
                    const uint height, const uint width, const uint size, const float alpha,
                    const float beta, const float k)
{
    const uint place = get_global_id(0);
    const uint c = get_global_id(1);
    const uint channels = get_global_size(1);
    const uint n = get_global_id(2);
    if (place >= height * width) {
        return;
    }

    const gfxpack_region region = gfxpack_region_of(n, c, place, channels, height, width,
                                                    GFXPACK_BEFORE(size), GFXPACK_AFTER(size));
    float sum = 0.0f;
    for (uint row = region.row_start; row < region.row_end; ++row) {
        for (uint column = region.column_start; column < region.column_end; ++column) {
            const float value = gfxpack_load(
                x, region.base + row * region.row_step + column * region.column_step);
            sum += value * value;
        }
    }

    const size_t at = ((size_t)n * channels + c) * height * width + place;
    const float divisor = k + alpha / GFXPACK_ELEMENTS(size) * sum;
    gfxpack_store(y, at, gfxpack_load(x, at) * pow(divisor, -beta));
#ifdef KEEP_SCALE
    scale[at] = divisor;
#endif
}

#ifdef KEEP_SCALE
// dx = dy * scale ^ -beta - 2 * alpha * beta / elements * x * sum of dy * y / scale over the
// elements whose windows x lies in: the window mirrored. y is not read but made from x again.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_lrn_backward(const global gfxpack_data *x, const global gfxpack_data *dy,
                     const global float *scale, global gfxpack_data *dx, const uint height,
                     const uint width, const uint size, const float alpha, const float beta)
{
    const uint place = get_global_id(0);
    const uint c = get_global_id(1);
    const uint channels = get_global_size(1);
    const uint n = get_global_id(2);
    if (place >= height * width) {
        return;
    }

    const gfxpack_region region = gfxpack_region_of(n, c, place, channels, height, width,
                                                    GFXPACK_AFTER(size), GFXPACK_BEFORE(size));
    float sum = 0.0f;
    for (uint row = region.row_start; row < region.row_end; ++row) {
        for (uint column = region.column_start; column < region.column_end; ++column) {
            const size_t from = region.base + row * region.row_step + column * region.column_step;
            sum += gfxpack_load(dy, from) * gfxpack_load(x, from) * pow(scale[from], -beta - 1.0f);
        }
    }

    const size_t at = ((size_t)n * channels + c) * height * width + place;
    const float own = gfxpack_load(dy, at) * pow(scale[at], -beta);
    const float factor = 2.0f * alpha * beta / GFXPACK_ELEMENTS(size);
    gfxpack_store(dx, at, own - factor * gfxpack_load(x, at) * sum);
}
#endif
