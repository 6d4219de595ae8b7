// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A strided tensor copied into another of any element type and any strides.
//
//   -DSRC_TYPE=0..4   -DDST_TYPE=0..4   -DDIMS=1..5   -DWG=<work-group size>
//
// Floating types are rounded to nearest even, and so are they to integers, which are kept within
// their range (a NaN becomes 0). Equal types are copied bit by bit: no NaN changes its payload and
// no denormal is flushed.

#include "gfxpack_cl_dims.h"
#include "gfxpack_cl_types.h"

#if !defined(SRC_TYPE) || !defined(DST_TYPE)
#error "SRC_TYPE and DST_TYPE are numbers of gfxpack_cl_types.h"
#endif

// By way of float an int32 would be rounded twice.
#if SRC_TYPE == GFXPACK_INT32 && (DST_TYPE == GFXPACK_FP16 || DST_TYPE == GFXPACK_BF16)
#error "int32 is cast to no 16 bit float"
#endif

#ifndef WG
#define WG 256
#endif

// Equal types move as integers of their width.
#if SRC_TYPE != DST_TYPE
typedef GFXPACK_STORAGE(SRC_TYPE) gfxpack_source;
typedef GFXPACK_STORAGE(DST_TYPE) gfxpack_destination;
#elif SRC_TYPE == GFXPACK_FP32 || SRC_TYPE == GFXPACK_INT32
typedef uint gfxpack_source;
typedef uint gfxpack_destination;
#elif SRC_TYPE == GFXPACK_INT8
typedef uchar gfxpack_source;
typedef uchar gfxpack_destination;
#else
typedef ushort gfxpack_source;
typedef ushort gfxpack_destination;
#endif

kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_tensor_cast(const global gfxpack_source *x, global gfxpack_destination *y, const uint count,
                    const gfxpack_dims lengths, const gfxpack_dims x_strides,
                    const gfxpack_dims y_strides)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const size_t from = gfxpack_offset(i, lengths, x_strides);
        const size_t to = gfxpack_offset(i, lengths, y_strides);
#if SRC_TYPE == DST_TYPE
        y[to] = x[from];
#elif SRC_TYPE <= GFXPACK_BF16 && DST_TYPE > GFXPACK_BF16
        GFXPACK_STORE(DST_TYPE)(y, to, convert_int_sat_rte(GFXPACK_LOAD(SRC_TYPE)(x, from)));
#else
        GFXPACK_STORE(DST_TYPE)(y, to, GFXPACK_LOAD(SRC_TYPE)(x, from));
#endif
    }
}
