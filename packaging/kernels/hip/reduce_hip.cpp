// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reduction of the middle dimension of [outer][length][inner].
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16; the partial results are fp32
// -DOP=0..5          sum, mean, product, maximum, minimum, Euclidean norm
// Blocks have WG threads.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef OP
#error "OP must be defined: 0 = sum, 1 = mean, 2 = product, 3 = maximum, 4 = minimum, 5 = norm"
#endif
#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

namespace {

#if OP == 0 || OP == 1 || OP == 5
using Op = Sum;
#elif OP == 2
using Op = Product;
#elif OP == 3
using Op = Max;
#elif OP == 4
using Op = Min;
#else
#error "OP must be 0 to 5"
#endif

__device__ inline float before(float value) { return OP == 5 ? value * value : value; }

__device__ inline float after(float value, int length) {
    if (OP == 1) {
        return value / length;
    }
    return OP == 5 ? sqrtf(value) : value;
}

}  // namespace

// For long lines: one block per result, outer * inner blocks.
extern "C" __global__ void __launch_bounds__(WG)
    reduce_line(const element* x, element* y, int length, int inner, float alpha, float beta) {
    __shared__ float slots[reduce_slots];
    const Line line(blockIdx.x, length, inner);
    float result = Op::identity();
    for (int i = threadIdx.x; i < length; i += WG) {
        result = Op::apply(result, before(to_float(x[line.at(i)])));
    }
    result = block_reduce<Op>(result, slots);
    if (threadIdx.x == 0) {
        const float kept = beta != 0.0f ? beta * to_float(y[blockIdx.x]) : 0.0f;
        y[blockIdx.x] = to_element(alpha * after(result, length) + kept);
    }
}

// For short lines, or where `inner` is wide enough that neighbouring threads
// read neighbouring elements: one thread per result; any grid.
extern "C" __global__ void __launch_bounds__(WG)
    reduce_many(const element* x, element* y, int outer, int length, int inner, float alpha,
                float beta) {
    const size_t lines = static_cast<size_t>(outer) * inner;
    for (size_t i = global_thread(); i < lines; i += global_threads()) {
        const Line line(i, length, inner);
        float result = Op::identity();
        for (int j = 0; j < length; ++j) {
            result = Op::apply(result, before(to_float(x[line.at(j)])));
        }
        const float kept = beta != 0.0f ? beta * to_float(y[i]) : 0.0f;
        y[i] = to_element(alpha * after(result, length) + kept);
    }
}
