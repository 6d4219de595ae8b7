// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Two tensors combined element by element: c = op(alpha_a * a, alpha_b * b) + beta * c.
//
//   -DOP=<number below>   -DDATA_TYPE=0..2   -DDIMS=1..5   -DWG=<work-group size>

#include "gfxpack_cl_dims.h"
#include "gfxpack_cl_types.h"

#define GFXPACK_ADD 0
#define GFXPACK_MUL 1
#define GFXPACK_MIN 2
#define GFXPACK_MAX 3

#if OP == GFXPACK_ADD
#define GFXPACK_COMBINE(a, b) ((a) + (b))
#elif OP == GFXPACK_MUL
#define GFXPACK_COMBINE(a, b) ((a) * (b))
#elif OP == GFXPACK_MIN
#define GFXPACK_COMBINE(a, b) fmin(a, b)
#elif OP == GFXPACK_MAX
#define GFXPACK_COMBINE(a, b) fmax(a, b)
#else
#error "OP is one of the numbers above"
#endif

#ifndef WG
#define WG 256
#endif

// The lengths are those of c. Where a or b has length 1 along a dimension, its stride there is 0.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_tensor_elementwise(const global gfxpack_data *a, const global gfxpack_data *b,
                           global gfxpack_data *c, const uint count, const gfxpack_dims lengths,
                           const gfxpack_dims a_strides, const gfxpack_dims b_strides,
                           const gfxpack_dims c_strides, const float alpha_a, const float alpha_b,
                           const float beta)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const float left = gfxpack_load(a, gfxpack_offset(i, lengths, a_strides));
        const float right = gfxpack_load(b, gfxpack_offset(i, lengths, b_strides));
        const float value = GFXPACK_COMBINE(alpha_a * left, alpha_b * right);
        const size_t to = gfxpack_offset(i, lengths, c_strides);
        gfxpack_store(c, to, GFXPACK_BLEND(1.0f, value, beta, c, to));
    }
}
