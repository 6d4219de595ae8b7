// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reduction of the middle dimension of a packed [outer, length, inner] tensor to [outer, inner]:
// y = alpha * reduced + beta * y.
//
//   -DOP=<number below>   -DDATA_TYPE=0..2   -DINDICES   -DWG=<work-group size>
//
// With INDICES, which max and min allow, the index of the first such element is written as well.

#include "gfxpack_cl_types.h"

#define GFXPACK_SUM 0
#define GFXPACK_MEAN 1
#define GFXPACK_MAX 2
#define GFXPACK_MIN 3
#define GFXPACK_PRODUCT 4
#define GFXPACK_NORM2 5  // square root of the sum of squares

#if !defined(OP) || OP < 0 || OP > 5
#error "OP is one of the numbers above"
#endif
#if defined(INDICES) && OP != GFXPACK_MAX && OP != GFXPACK_MIN
#error "INDICES goes with max and min"
#endif

#ifndef WG
#define WG 256
#endif
#if WG < 1 || (WG & (WG - 1)) != 0
#error "WG is a power of two: the trees halve it"
#endif

// What is carried through a reduction. A NaN wins over numbers in max and min as it does in sums.
typedef struct {
    float value;
#ifdef INDICES
    uint index;
#endif
} gfxpack_reduced;

static inline gfxpack_reduced gfxpack_neutral(void)
{
    gfxpack_reduced none;
#if OP == GFXPACK_MAX
    none.value = -INFINITY;
#elif OP == GFXPACK_MIN
    none.value = INFINITY;
#elif OP == GFXPACK_PRODUCT
    none.value = 1.0f;
#else
    none.value = 0.0f;
#endif
#ifdef INDICES
    none.index = UINT_MAX;
#endif
    return none;
}

static inline gfxpack_reduced gfxpack_combine(gfxpack_reduced a, gfxpack_reduced b)
{
#if OP == GFXPACK_MAX || OP == GFXPACK_MIN
#if OP == GFXPACK_MAX
    const bool better = b.value > a.value;
#else
    const bool better = b.value < a.value;
#endif
    bool second = better || (isnan(b.value) && !isnan(a.value));
#ifdef INDICES
    // Of equals, the one that comes first in the tensor: the tree meets them in no such order.
    const bool equal = b.value == a.value || (isnan(b.value) && isnan(a.value));
    second = second || (equal && b.index < a.index);
#endif
    return second ? b : a;
#elif OP == GFXPACK_PRODUCT
    a.value *= b.value;
    return a;
#else
    a.value += b.value;
    return a;
#endif
}

static inline gfxpack_reduced gfxpack_element(const global gfxpack_data *x, size_t at, uint index)
{
    gfxpack_reduced element;
    element.value = gfxpack_load(x, at);
#if OP == GFXPACK_NORM2
    element.value *= element.value;
#endif
#ifdef INDICES
    element.index = index;
#endif
    return element;
}

static inline void gfxpack_write(gfxpack_reduced result, global gfxpack_data *y,
#ifdef INDICES
                                 global uint *indices,
#endif
                                 uint at, uint length, float alpha, float beta)
{
#if OP == GFXPACK_MEAN
    const float value = result.value / length;
#elif OP == GFXPACK_NORM2
    const float value = sqrt(result.value);
#else
    const float value = result.value;
#endif
    gfxpack_store(y, at, GFXPACK_BLEND(alpha, value, beta, y, at));
#ifdef INDICES
    indices[at] = result.index;
#endif
}

#ifdef INDICES
#define GFXPACK_INDICES_PARAMETER global uint *indices,
#define GFXPACK_INDICES_ARGUMENT indices,
#else
#define GFXPACK_INDICES_PARAMETER
#define GFXPACK_INDICES_ARGUMENT
#endif

// A work-group for every result: for long reductions.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_reduce_by_group(const global gfxpack_data *x, global gfxpack_data *y,
                        GFXPACK_INDICES_PARAMETER const uint outer, const uint length,
                        const uint inner, const float alpha, const float beta)
{
    local gfxpack_reduced scratch[WG];
    const uint lane = get_local_id(0);
    const uint results = outer * inner;

    for (uint at = get_group_id(0); at < results; at += get_num_groups(0)) {
        const size_t start = (size_t)(at / inner) * length * inner + at % inner;
        gfxpack_reduced own = gfxpack_neutral();
        for (uint i = lane; i < length; i += WG) {
            own = gfxpack_combine(own, gfxpack_element(x, start + (size_t)i * inner, i));
        }
        scratch[lane] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint step = WG / 2; step > 0; step /= 2) {
            if (lane < step) {
                scratch[lane] = gfxpack_combine(scratch[lane], scratch[lane + step]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) {
            gfxpack_write(scratch[0], y, GFXPACK_INDICES_ARGUMENT at, length, alpha, beta);
        }
        // The first work-item has read the result before the next round overwrites it.
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// A work-item for every result: for short reductions, and where neighbours lie side by side.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_reduce_by_item(const global gfxpack_data *x, global gfxpack_data *y,
                       GFXPACK_INDICES_PARAMETER const uint outer, const uint length,
                       const uint inner, const float alpha, const float beta)
{
    const uint results = outer * inner;
    for (uint at = get_global_id(0); at < results; at += get_global_size(0)) {
        const size_t start = (size_t)(at / inner) * length * inner + at % inner;
        gfxpack_reduced result = gfxpack_neutral();
        for (uint i = 0; i < length; ++i) {
            result = gfxpack_combine(result, gfxpack_element(x, start + (size_t)i * inner, i));
        }
        gfxpack_write(result, y, GFXPACK_INDICES_ARGUMENT at, length, alpha, beta);
    }
}
