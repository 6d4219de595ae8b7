// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reductions over a wave and over a block. Waves of 32 and of 64 lanes both
// work: the same source serves gfx9 and gfx10.
#pragma once

#include <hip/hip_runtime.h>

namespace gfxpack {

struct Sum {
    static __device__ float identity() { return 0.0f; }
    static __device__ float apply(float a, float b) { return a + b; }
};

struct Product {
    static __device__ float identity() { return 1.0f; }
    static __device__ float apply(float a, float b) { return a * b; }
};

struct Max {
    static __device__ float identity() { return -__builtin_inff(); }
    static __device__ float apply(float a, float b) { return fmaxf(a, b); }
};

struct Min {
    static __device__ float identity() { return __builtin_inff(); }
    static __device__ float apply(float a, float b) { return fminf(a, b); }
};

// Every lane gets the result. All lanes of the wave must call.
template <class Op>
__device__ inline float wave_reduce(float value) {
    for (int distance = warpSize / 2; distance > 0; distance /= 2) {
        value = Op::apply(value, __shfl_xor(value, distance));
    }
    return value;
}

// Room for one value per wave of the largest block, waves of 32 lanes assumed.
constexpr int reduce_slots = 32;

// Every thread of a one-dimensional block gets the result, in the same order
// of operations each time. All threads must call; `slots` is in LDS, holds
// `reduce_slots` values and is free again afterwards.
template <class Op>
__device__ inline float block_reduce(float value, float* slots) {
    value = wave_reduce<Op>(value);
    const int lane = static_cast<int>(threadIdx.x) % warpSize;
    if (lane == 0) {
        slots[threadIdx.x / warpSize] = value;
    }
    __syncthreads();
    const int waves = static_cast<int>(blockDim.x) / warpSize;
    value = slots[0];
    for (int wave = 1; wave < waves; ++wave) {
        value = Op::apply(value, slots[wave]);
    }
    __syncthreads();
    return value;
}

}  // namespace gfxpack
