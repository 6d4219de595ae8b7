// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reductions over a work-group of WG work-items along dimension 0.
//
// Trees in local memory, always of the same shape: the result depends on no scheduling, so equal
// inputs give equal bits. Every work-item of the group has to get there, and all get the result.

#ifndef GFXPACK_CL_GROUP_H
#define GFXPACK_CL_GROUP_H

#ifndef WG
#define WG 256
#endif
#if WG < 1 || (WG & (WG - 1)) != 0
#error "WG is a power of two: the trees halve it"
#endif

// The barrier at the end lets the caller use the scratch memory again at once.
#define GFXPACK_DEFINE_GROUP_REDUCTION(name, type, combine)                                        \
    static inline type name(local type *scratch, type value)                                       \
    {                                                                                              \
        const uint lane = get_local_id(0);                                                         \
        scratch[lane] = value;                                                                     \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        for (uint step = WG / 2; step > 0; step /= 2) {                                            \
            if (lane < step) {                                                                     \
                scratch[lane] = combine(scratch[lane], scratch[lane + step]);                      \
            }                                                                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        const type result = scratch[0];                                                            \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        return result;                                                                             \
    }

#define GFXPACK_PLUS(a, b) ((a) + (b))

GFXPACK_DEFINE_GROUP_REDUCTION(gfxpack_group_sum, float, GFXPACK_PLUS)
GFXPACK_DEFINE_GROUP_REDUCTION(gfxpack_group_max, float, fmax)

#endif
