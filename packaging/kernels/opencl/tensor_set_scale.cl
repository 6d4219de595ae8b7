// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Filling a strided tensor with one value, and multiplying it in place.
//
//   -DDATA_TYPE=0..4   -DWG=<work-group size>

#include "gfxpack_cl_dims.h"
#include "gfxpack_cl_types.h"

#ifndef WG
#define WG 256
#endif

// A float would not hold every int32.
#if GFXPACK_IS_FLOAT
typedef float gfxpack_scalar;
typedef float gfxpack_product;
#else
typedef int gfxpack_scalar;
typedef long gfxpack_product;
#endif

kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_tensor_set(global gfxpack_data *y, const uint count, const gfxpack_dims lengths,
                   const gfxpack_dims strides, const gfxpack_scalar value)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        gfxpack_store(y, gfxpack_offset(i, lengths, strides), value);
    }
}

kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_tensor_scale(global gfxpack_data *y, const uint count, const gfxpack_dims lengths,
                     const gfxpack_dims strides, const gfxpack_scalar alpha)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const size_t at = gfxpack_offset(i, lengths, strides);
        gfxpack_store(y, at, (gfxpack_product)gfxpack_load(y, at) * alpha);
    }
}
