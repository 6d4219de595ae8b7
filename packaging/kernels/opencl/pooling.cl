// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Pooling of packed NCDHW tensors (a 2D image has depth 1), and its gradient.
//
//   -DPOOLING=<number below>   -DDATA_TYPE=0..2   -DINDEX_BITS=8|32   -DWG=<work-group size>
//
// Largest-element pooling remembers where the element was. With INDEX_BITS=8 that is its place in
// the window (of at most 255 elements), with 32 its place in the D * H * W volume.

#include "gfxpack_cl_types.h"

#define GFXPACK_POOLING_MAX 0
#define GFXPACK_POOLING_AVERAGE 1            // of the whole window, padding counted as zeros
#define GFXPACK_POOLING_AVERAGE_EXCLUSIVE 2  // of those elements of the window that there are

#if !defined(POOLING) || POOLING < 0 || POOLING > 2
#error "POOLING is one of the numbers above"
#endif
#ifndef WG
#define WG 256
#endif

#if POOLING == GFXPACK_POOLING_MAX
#if INDEX_BITS == 8
typedef uchar gfxpack_index;
#elif INDEX_BITS == 32
typedef uint gfxpack_index;
#else
#error "INDEX_BITS is 8 or 32"
#endif
#endif

// Each as depth, height, width.
typedef struct {
    int input[3];
    int output[3];
    int window[3];
    int stride[3];
    int padding[3];
} gfxpack_pooling;

// A window cut to the input: from `start` to before `end`; `origin` is where it starts uncut.
typedef struct {
    int origin[3];
    int start[3];
    int end[3];
} gfxpack_window;

static inline gfxpack_window gfxpack_window_of(const gfxpack_pooling *shape, const int *output)
{
    gfxpack_window window;
#pragma unroll
    for (int dim = 0; dim < 3; ++dim) {
        window.origin[dim] = output[dim] * shape->stride[dim] - shape->padding[dim];
        window.start[dim] = max(window.origin[dim], 0);
        window.end[dim] = min(window.origin[dim] + shape->window[dim], shape->input[dim]);
    }
    return window;
}

#if POOLING != GFXPACK_POOLING_MAX
// What the sum over a window is divided by. A window wholly in the padding holds nothing: its
// average is 0, not 0 / 0.
static inline float gfxpack_divisor(const gfxpack_pooling *shape, const gfxpack_window *window)
{
    int count = 1;
#pragma unroll
    for (int dim = 0; dim < 3; ++dim) {
#if POOLING == GFXPACK_POOLING_AVERAGE_EXCLUSIVE
        count *= max(window->end[dim] - window->start[dim], 0);
#else
        count *= shape->window[dim];
#endif
    }
    return max(count, 1);
}
#endif

static inline void gfxpack_place(uint index, const int *lengths, int *place)
{
    place[2] = index % lengths[2];
    index /= lengths[2];
    place[1] = index % lengths[1];
    place[0] = index / lengths[1];
}

#if POOLING == GFXPACK_POOLING_MAX
// What the largest element at (d, h, w) is remembered by.
static inline uint gfxpack_index_of(const gfxpack_pooling *shape, const gfxpack_window *window,
                                    int d, int h, int w)
{
#if INDEX_BITS == 8
    d -= window->origin[0];
    h -= window->origin[1];
    w -= window->origin[2];
    return (d * shape->window[1] + h) * shape->window[2] + w;
#else
    return (d * shape->input[1] + h) * shape->input[2] + w;
#endif
}
#endif

// One work-item per element of the output; dimension 1 counts the N * C volumes. Every window of
// largest-element pooling has to meet the input.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_pooling_forward(const global gfxpack_data *x, global gfxpack_data *y,
#if POOLING == GFXPACK_POOLING_MAX
                        global gfxpack_index *index,
#endif
                        const gfxpack_pooling shape)
{
    const uint inputs = shape.input[0] * shape.input[1] * shape.input[2];
    const uint outputs = shape.output[0] * shape.output[1] * shape.output[2];
    const uint output = get_global_id(0);
    if (output >= outputs) {
        return;
    }
    x += get_global_id(1) * inputs;

    int place[3];
    gfxpack_place(output, shape.output, place);
    const gfxpack_window window = gfxpack_window_of(&shape, place);

#if POOLING == GFXPACK_POOLING_MAX
    float result = -INFINITY;
    uint found = gfxpack_index_of(&shape, &window, window.start[0], window.start[1],
                                  window.start[2]);
#else
    float result = 0.0f;
#endif
    for (int d = window.start[0]; d < window.end[0]; ++d) {
        for (int h = window.start[1]; h < window.end[1]; ++h) {
            for (int w = window.start[2]; w < window.end[2]; ++w) {
                const float value =
                    gfxpack_load(x, ((size_t)d * shape.input[1] + h) * shape.input[2] + w);
#if POOLING == GFXPACK_POOLING_MAX
                // Of equals the first; a NaN is passed on.
                if (value > result || isnan(value)) {
                    result = value;
                    found = gfxpack_index_of(&shape, &window, d, h, w);
                }
#else
                result += value;
#endif
            }
        }
    }

    const size_t to = get_global_id(1) * outputs + output;
#if POOLING == GFXPACK_POOLING_MAX
    index[to] = (gfxpack_index)found;
#else
    result /= gfxpack_divisor(&shape, &window);
#endif
    gfxpack_store(y, to, result);
}

// One work-item per element of the input: it gathers from all windows that it lies in, which needs
// no atomics and always adds in the same order.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_pooling_backward(const global gfxpack_data *dy, global gfxpack_data *dx,
#if POOLING == GFXPACK_POOLING_MAX
                         const global gfxpack_index *index,
#endif
                         const gfxpack_pooling shape)
{
    const uint inputs = shape.input[0] * shape.input[1] * shape.input[2];
    const uint outputs = shape.output[0] * shape.output[1] * shape.output[2];
    const uint input = get_global_id(0);
    if (input >= inputs) {
        return;
    }
    dy += get_global_id(1) * outputs;
#if POOLING == GFXPACK_POOLING_MAX
    index += get_global_id(1) * outputs;
#endif

    int place[3];
    gfxpack_place(input, shape.input, place);
    int first[3];
    int last[3];
#pragma unroll
    for (int dim = 0; dim < 3; ++dim) {
        const int padded = place[dim] + shape.padding[dim];
        const int before = padded - shape.window[dim];
        first[dim] = before < 0 ? 0 : before / shape.stride[dim] + 1;
        last[dim] = min(padded / shape.stride[dim], shape.output[dim] - 1);
    }

    float sum = 0.0f;
    int output[3];
    for (output[0] = first[0]; output[0] <= last[0]; ++output[0]) {
        for (output[1] = first[1]; output[1] <= last[1]; ++output[1]) {
            for (output[2] = first[2]; output[2] <= last[2]; ++output[2]) {
                const size_t from =
                    ((size_t)output[0] * shape.output[1] + output[1]) * shape.output[2] + output[2];
                const gfxpack_window window = gfxpack_window_of(&shape, output);
#if POOLING == GFXPACK_POOLING_MAX
                if (index[from] ==
                    gfxpack_index_of(&shape, &window, place[0], place[1], place[2])) {
                    sum += gfxpack_load(dy, from);
                }
#else
                sum += gfxpack_load(dy, from) / gfxpack_divisor(&shape, &window);
#endif
            }
        }
    }
    gfxpack_store(dx, get_global_id(1) * inputs + input, sum);
}
