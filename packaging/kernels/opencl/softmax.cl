// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Softmax along the middle dimension of a packed [outer, length, inner] tensor, and its gradient.
// Over the channels of NCHW inner is H * W; over whole instances it is 1.
//
//   -DALGORITHM=<number below>   -DDATA_TYPE=0..2   -DWG=<work-group size>

#include "gfxpack_cl_group.h"
#include "gfxpack_cl_types.h"

#define GFXPACK_SOFTMAX_FAST 0      // e^x / sum e^x: overflows where x is large
#define GFXPACK_SOFTMAX_ACCURATE 1  // the same of x - max x, which can't
#define GFXPACK_SOFTMAX_LOG 2       // its logarithm

#if !defined(ALGORITHM) || ALGORITHM < 0 || ALGORITHM > 2
#error "ALGORITHM is one of the numbers above"
#endif

// y = alpha * softmax(x) + beta * y. Each work-group takes one vector after another.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_softmax_forward(const global gfxpack_data *x, global gfxpack_data *y, const uint outer,
                        const uint length, const uint inner, const float alpha, const float beta)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);
    const uint vectors = outer * inner;

    for (uint vector = get_group_id(0); vector < vectors; vector += get_num_groups(0)) {
        const size_t start = (size_t)(vector / inner) * length * inner + vector % inner;

        float largest = 0.0f;
#if ALGORITHM != GFXPACK_SOFTMAX_FAST
        largest = -INFINITY;
        for (uint i = lane; i < length; i += WG) {
            largest = fmax(largest, gfxpack_load(x, start + (size_t)i * inner));
        }
        largest = gfxpack_group_max(scratch, largest);
#endif

        float sum = 0.0f;
        for (uint i = lane; i < length; i += WG) {
            sum += exp(gfxpack_load(x, start + (size_t)i * inner) - largest);
        }
        sum = gfxpack_group_sum(scratch, sum);

#if ALGORITHM == GFXPACK_SOFTMAX_LOG
        const float shift = largest + log(sum);
#else
        const float scale = 1.0f / sum;
#endif
        for (uint i = lane; i < length; i += WG) {
            const size_t at = start + (size_t)i * inner;
#if ALGORITHM == GFXPACK_SOFTMAX_LOG
            const float value = gfxpack_load(x, at) - shift;
#else
            const float value = exp(gfxpack_load(x, at) - largest) * scale;
#endif
            gfxpack_store(y, at, GFXPACK_BLEND(alpha, value, beta, y, at));
        }
    }
}

// dx = alpha * gradient + beta * dx, from the result y of the forward pass.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_softmax_backward(const global gfxpack_data *y, const global gfxpack_data *dy,
                         global gfxpack_data *dx, const uint outer, const uint length,
                         const uint inner, const float alpha, const float beta)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);
    const uint vectors = outer * inner;

    for (uint vector = get_group_id(0); vector < vectors; vector += get_num_groups(0)) {
        const size_t start = (size_t)(vector / inner) * length * inner + vector % inner;

        float sum = 0.0f;
        for (uint i = lane; i < length; i += WG) {
            const size_t at = start + (size_t)i * inner;
#if ALGORITHM == GFXPACK_SOFTMAX_LOG
            sum += gfxpack_load(dy, at);
#else
            sum += gfxpack_load(dy, at) * gfxpack_load(y, at);
#endif
        }
        sum = gfxpack_group_sum(scratch, sum);

        for (uint i = lane; i < length; i += WG) {
            const size_t at = start + (size_t)i * inner;
#if ALGORITHM == GFXPACK_SOFTMAX_LOG
            const float value = gfxpack_load(dy, at) - exp(gfxpack_load(y, at)) * sum;
#else
            const float value = gfxpack_load(y, at) * (gfxpack_load(dy, at) - sum);
#endif
            gfxpack_store(dx, at, GFXPACK_BLEND(alpha, value, beta, dx, at));
        }
    }
}
