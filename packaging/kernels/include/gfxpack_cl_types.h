// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Element types of the OpenCL C kernels: how each is stored, loaded and stored back.
//
// Arithmetic is done in float for every floating type: half is read with vload_half and written
// with vstore_half_rte, which need no cl_khr_fp16, and bfloat16 is a ushort converted by hand.
// A kernel is compiled for one type by -DDATA_TYPE=<number>; the numbers are part of the kernel
// keys and never change their meaning.

#ifndef GFXPACK_CL_TYPES_H
#define GFXPACK_CL_TYPES_H

#define GFXPACK_FP32 0
#define GFXPACK_FP16 1
#define GFXPACK_BF16 2
#define GFXPACK_INT8 3
#define GFXPACK_INT32 4

// Two levels, so that DATA_TYPE is replaced by its number before it is pasted.
#define GFXPACK_PASTE_(a, b) a##b
#define GFXPACK_PASTE(a, b) GFXPACK_PASTE_(a, b)

// What an element of the type is in memory.
typedef float gfxpack_storage_0;
typedef half gfxpack_storage_1;
typedef ushort gfxpack_storage_2;
typedef char gfxpack_storage_3;
typedef int gfxpack_storage_4;

#define GFXPACK_STORAGE(type) GFXPACK_PASTE(gfxpack_storage_, type)
#define GFXPACK_LOAD(type) GFXPACK_PASTE(gfxpack_load_, type)
#define GFXPACK_STORE(type) GFXPACK_PASTE(gfxpack_store_, type)

static inline float gfxpack_bf16_to_float(ushort value)
{
    return as_float((uint)value << 16);
}

// Rounds to nearest, ties to even. A NaN is cut off instead, with its quiet bit set: the rounding
// could carry into its exponent, and the cut alone could leave a mantissa of zero, an infinity.
static inline ushort gfxpack_float_to_bf16(float value)
{
    const uint bits = as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (ushort)((bits >> 16) | 0x0040u);
    }
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float gfxpack_load_0(const global float *from, size_t at)
{
    return from[at];
}
static inline float gfxpack_load_1(const global half *from, size_t at)
{
    return vload_half(at, from);
}
static inline float gfxpack_load_2(const global ushort *from, size_t at)
{
    return gfxpack_bf16_to_float(from[at]);
}
static inline int gfxpack_load_3(const global char *from, size_t at)
{
    return from[at];
}
static inline int gfxpack_load_4(const global int *from, size_t at)
{
    return from[at];
}

static inline void gfxpack_store_0(global float *to, size_t at, float value)
{
    to[at] = value;
}
static inline void gfxpack_store_1(global half *to, size_t at, float value)
{
    vstore_half_rte(value, at, to);
}
static inline void gfxpack_store_2(global ushort *to, size_t at, float value)
{
    to[at] = gfxpack_float_to_bf16(value);
}
// Integers are kept within their range instead of wrapping.
static inline void gfxpack_store_3(global char *to, size_t at, long value)
{
    to[at] = convert_char_sat(value);
}
static inline void gfxpack_store_4(global int *to, size_t at, long value)
{
    to[at] = convert_int_sat(value);
}

#ifdef DATA_TYPE
#if DATA_TYPE < GFXPACK_FP32 || DATA_TYPE > GFXPACK_INT32
#error "DATA_TYPE is none of the numbers in gfxpack_cl_types.h"
#endif

typedef GFXPACK_STORAGE(DATA_TYPE) gfxpack_data;
#define gfxpack_load GFXPACK_LOAD(DATA_TYPE)
#define gfxpack_store GFXPACK_STORE(DATA_TYPE)
#define GFXPACK_IS_FLOAT (DATA_TYPE <= GFXPACK_BF16)
#endif

// The alpha and beta of a DNN library: result = alpha * value + beta * what was there. With beta
// zero the destination is not read: it may be uninitialised, and 0 * NaN would be NaN.
#define GFXPACK_BLEND(alpha, value, beta, to, at)                                                  \
    ((beta) == 0.0f ? (alpha) * (value) : (alpha) * (value) + (beta) * gfxpack_load(to, at))

#endif
