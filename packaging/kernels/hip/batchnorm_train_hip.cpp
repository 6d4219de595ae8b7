// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Spatial batch normalisation in training, and its gradients: every channel
// has the mean and variance of all its pixels in the batch.
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16; weights, statistics and their gradients are fp32
// -DLAYOUT=0|1       NCHW, NHWC
// One block of WG threads per channel.

#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef LAYOUT
#error "LAYOUT must be defined: 0 = NCHW, 1 = NHWC"
#endif
#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

namespace {

// Where the i-th value of this block's channel lies.
__device__ inline size_t offset(size_t i, int channels, int pixels) {
#if LAYOUT == 0
    return (i / pixels * channels + blockIdx.x) * pixels + i % pixels;
#elif LAYOUT == 1
    (void)pixels;
    return i * channels + blockIdx.x;
#else
#error "LAYOUT must be 0 (NCHW) or 1 (NHWC)"
#endif
}

}  // namespace

// Saves the mean and the reciprocal of the standard deviation for the
// gradients, and moves the running statistics towards this batch's by
// `momentum`; the running variance is the unbiased one.
extern "C" __global__ void __launch_bounds__(WG)
    batchnorm_train_forward(const element* x, const float* gamma, const float* beta, element* y,
                            float* saved_mean, float* saved_scale, float* running_mean,
                            float* running_variance, int batch, int channels, int pixels,
                            float epsilon, float momentum) {
    __shared__ float slots[reduce_slots];
    const size_t count = static_cast<size_t>(batch) * pixels;
    float mean = 0.0f;
    for (size_t i = threadIdx.x; i < count; i += WG) {
        mean += to_float(x[offset(i, channels, pixels)]);
    }
    mean = block_reduce<Sum>(mean, slots) / count;
    float spread = 0.0f;
    for (size_t i = threadIdx.x; i < count; i += WG) {
        const float off = to_float(x[offset(i, channels, pixels)]) - mean;
        spread += off * off;
    }
    spread = block_reduce<Sum>(spread, slots);
    const float scale = 1.0f / sqrtf(spread / count + epsilon);
    const float factor = scale * gamma[blockIdx.x], shift = beta[blockIdx.x];
    for (size_t i = threadIdx.x; i < count; i += WG) {
        const size_t at = offset(i, channels, pixels);
        y[at] = to_element((to_float(x[at]) - mean) * factor + shift);
    }
    if (threadIdx.x == 0) {
        const float unbiased = spread / (count > 1 ? count - 1 : 1);
        saved_mean[blockIdx.x] = mean;
        saved_scale[blockIdx.x] = scale;
        running_mean[blockIdx.x] += momentum * (mean - running_mean[blockIdx.x]);
        running_variance[blockIdx.x] += momentum * (unbiased - running_variance[blockIdx.x]);
    }
}

extern "C" __global__ void __launch_bounds__(WG)
    batchnorm_train_backward(const element* x, const element* dy, const float* gamma,
                             const float* saved_mean, const float* saved_scale, element* dx,
                             float* dgamma, float* dbeta, int batch, int channels, int pixels) {
    __shared__ float slots[reduce_slots];
    const size_t count = static_cast<size_t>(batch) * pixels;
    const float mean = saved_mean[blockIdx.x], scale = saved_scale[blockIdx.x];
    float along = 0.0f, total = 0.0f;
    for (size_t i = threadIdx.x; i < count; i += WG) {
        const size_t at = offset(i, channels, pixels);
        const float gradient = to_float(dy[at]);
        along += gradient * (to_float(x[at]) - mean) * scale;
        total += gradient;
    }
    along = block_reduce<Sum>(along, slots);
    total = block_reduce<Sum>(total, slots);
    const float factor = gamma[blockIdx.x] * scale;
    for (size_t i = threadIdx.x; i < count; i += WG) {
        const size_t at = offset(i, channels, pixels);
        const float normal = (to_float(x[at]) - mean) * scale;
        const float gradient = to_float(dy[at]);
        dx[at] = to_element(factor * (gradient - total / count - normal * (along / count)));
    }
    if (threadIdx.x == 0) {
        dgamma[blockIdx.x] = along;
        dbeta[blockIdx.x] = total;
    }
}
