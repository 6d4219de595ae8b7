// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What an element in memory is, chosen by -DDATA_TYPE: 0 = fp32, 1 = fp16,
// 2 = bf16. Arithmetic is done in fp32 whatever the element is.
#pragma once

#include <hip/hip_runtime.h>

#ifndef DATA_TYPE
#error "DATA_TYPE must be defined: 0 = fp32, 1 = fp16, 2 = bf16"
#elif DATA_TYPE < 0 || DATA_TYPE > 2
#error "DATA_TYPE must be 0 (fp32), 1 (fp16) or 2 (bf16)"
#endif

namespace gfxpack {

// The upper half of an fp32. A type of its own, so that no integer
// conversion can be taken for a numeric one.
struct bf16 {
    unsigned short bits;
};

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(_Float16 value) { return static_cast<float>(value); }
__device__ inline float to_float(bf16 value) {
    const unsigned bits = static_cast<unsigned>(value.bits) << 16;
    float wide;
    __builtin_memcpy(&wide, &bits, sizeof wide);
    return wide;
}

template <class T>
__device__ inline T from_float(float value) {
    return static_cast<T>(value);
}

// Rounds to nearest, ties to even. A NaN keeps its sign and stays a NaN: the
// rounding carry could turn it into an infinity otherwise.
template <>
__device__ inline bf16 from_float<bf16>(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return bf16{static_cast<unsigned short>((bits >> 16) | 0x40u)};
    }
    const unsigned carry = 0x7fffu + ((bits >> 16) & 1u);
    return bf16{static_cast<unsigned short>((bits + carry) >> 16)};
}

#if DATA_TYPE == 0
using element = float;
#elif DATA_TYPE == 1
using element = _Float16;
#else
using element = bf16;
#endif

__device__ inline element to_element(float value) { return from_float<element>(value); }

}  // namespace gfxpack
