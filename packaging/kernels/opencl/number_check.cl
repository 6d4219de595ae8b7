// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts the elements of a packed tensor that are NaN, infinite, denormal or zero, and finds the
// smallest and largest finite ones: what one asks of a network that stopped learning.
//
//   -DDATA_TYPE=0..2   -DEXTREMES   -DWG=<work-group size>

#include "gfxpack_cl_types.h"

#ifndef WG
#define WG 256
#endif

// Elements are told apart by their bits: arithmetic may flush denormals to zero.
#if DATA_TYPE == GFXPACK_FP32
typedef uint gfxpack_bits;
#define GFXPACK_SIGN 0x80000000u
#define GFXPACK_EXPONENT 0x7f800000u
#elif DATA_TYPE == GFXPACK_FP16
typedef ushort gfxpack_bits;
#define GFXPACK_SIGN 0x8000u
#define GFXPACK_EXPONENT 0x7c00u
#elif DATA_TYPE == GFXPACK_BF16
typedef ushort gfxpack_bits;
#define GFXPACK_SIGN 0x8000u
#define GFXPACK_EXPONENT 0x7f80u
#else
#error "integers are always numbers"
#endif

#define GFXPACK_KINDS 4  // NaN, infinite, denormal, zero

#ifdef EXTREMES
// Ordered as unsigned numbers like the elements are ordered as numbers.
static inline uint gfxpack_rank(uint bits)
{
    return bits & GFXPACK_SIGN ? GFXPACK_SIGN - (bits & ~GFXPACK_SIGN) : GFXPACK_SIGN + bits;
}
#endif

// `counts` are four numbers that the host has set to zero, in the order above. With EXTREMES,
// `ranks` are set to the largest uint and zero, and become the ranks of the smallest and largest
// finite element; rank >= sign bit is the element rank - sign bit, less is minus (sign bit - rank).
// Sums, minima and maxima of integers: atomics give the same whatever their order.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_number_check(const global gfxpack_bits *x, const uint count, global uint *counts
#ifdef EXTREMES
                     ,
                     global uint *ranks
#endif
)
{
    local uint group_counts[GFXPACK_KINDS];
    const uint lane = get_local_id(0);
    if (lane < GFXPACK_KINDS) {
        group_counts[lane] = 0;
    }
#ifdef EXTREMES
    local uint group_ranks[2];
    if (lane == 0) {
        group_ranks[0] = UINT_MAX;
        group_ranks[1] = 0;
    }
    uint smallest = UINT_MAX;
    uint largest = 0;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

    uint own[GFXPACK_KINDS] = {0, 0, 0, 0};
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint bits = x[i];
        const uint size = bits & ~GFXPACK_SIGN;
        own[0] += size > GFXPACK_EXPONENT;
        own[1] += size == GFXPACK_EXPONENT;
        own[2] += size != 0 && (size & GFXPACK_EXPONENT) == 0;
        own[3] += size == 0;
#ifdef EXTREMES
        if (size < GFXPACK_EXPONENT) {
            smallest = min(smallest, gfxpack_rank(bits));
            largest = max(largest, gfxpack_rank(bits));
        }
#endif
    }
    // Most work-items have nothing to report, and then need no atomics.
    for (uint kind = 0; kind < GFXPACK_KINDS; ++kind) {
        if (own[kind] != 0) {
            atomic_add(&group_counts[kind], own[kind]);
        }
    }
#ifdef EXTREMES
    atomic_min(&group_ranks[0], smallest);
    atomic_max(&group_ranks[1], largest);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

    if (lane < GFXPACK_KINDS && group_counts[lane] != 0) {
        atomic_add(&counts[lane], group_counts[lane]);
    }
#ifdef EXTREMES
    if (lane == 0) {
        atomic_min(&ranks[0], group_ranks[0]);
        atomic_max(&ranks[1], group_ranks[1]);
    }
#endif
}
