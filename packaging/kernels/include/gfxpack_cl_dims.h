// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Lengths and strides of tensors of up to five dimensions, passed to kernels by value.

#ifndef GFXPACK_CL_DIMS_H
#define GFXPACK_CL_DIMS_H

#define GFXPACK_MAX_DIMS 5

#ifndef DIMS
#define DIMS GFXPACK_MAX_DIMS
#endif
#if DIMS < 1 || DIMS > GFXPACK_MAX_DIMS
#error "DIMS is 1 to 5"
#endif

// The host always passes five numbers; the first DIMS count, slowest dimension first. Strides are
// in elements, and 0 repeats the same element along a dimension (broadcast).
typedef struct {
    uint at[GFXPACK_MAX_DIMS];
} gfxpack_dims;

// Element counts fit 32 bits; what a stride makes of them may not.
static inline size_t gfxpack_offset(uint index, gfxpack_dims lengths, gfxpack_dims strides)
{
    size_t offset = 0;
#pragma unroll
    for (int dim = DIMS - 1; dim > 0; --dim) {
        const uint slower = index / lengths.at[dim];
        offset += (size_t)(index - slower * lengths.at[dim]) * strides.at[dim];
        index = slower;
    }
    return offset + (size_t)index * strides.at[0];
}

#endif
