// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Softmax and its gradient along the middle dimension of [outer][length][inner].
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16
// -DLOG              log-softmax instead
// One block of WG threads per line: outer * inner blocks.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

extern "C" __global__ void __launch_bounds__(WG)
    softmax_forward(const element* x, element* y, int length, int inner) {
    __shared__ float slots[reduce_slots];
    const Line line(blockIdx.x, length, inner);
    float largest = Max::identity();
    for (int i = threadIdx.x; i < length; i += WG) {
        largest = fmaxf(largest, to_float(x[line.at(i)]));
    }
    largest = block_reduce<Max>(largest, slots);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < length; i += WG) {
        sum += expf(to_float(x[line.at(i)]) - largest);
    }
    sum = block_reduce<Sum>(sum, slots);
#ifdef LOG
    const float shift = largest + logf(sum);
#else
    const float scale = 1.0f / sum;
#endif
    for (int i = threadIdx.x; i < length; i += WG) {
        const float value = to_float(x[line.at(i)]);
#ifdef LOG
        y[line.at(i)] = to_element(value - shift);
#else
        y[line.at(i)] = to_element(expf(value - largest) * scale);
#endif
    }
}

// From the forward result y and its gradient dy.
extern "C" __global__ void __launch_bounds__(WG)
    softmax_backward(const element* y, const element* dy, element* dx, int length, int inner) {
    __shared__ float slots[reduce_slots];
    const Line line(blockIdx.x, length, inner);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < length; i += WG) {
        const float gradient = to_float(dy[line.at(i)]);
#ifdef LOG
        sum += gradient;
#else
        sum += gradient * to_float(y[line.at(i)]);
#endif
    }
    sum = block_reduce<Sum>(sum, slots);
    for (int i = threadIdx.x; i < length; i += WG) {
        const float gradient = to_float(dy[line.at(i)]);
        const float value = to_float(y[line.at(i)]);
#ifdef LOG
        dx[line.at(i)] = to_element(gradient - expf(value) * sum);
#else
        dx[line.at(i)] = to_element((gradient - sum) * value);
#endif
    }
}
