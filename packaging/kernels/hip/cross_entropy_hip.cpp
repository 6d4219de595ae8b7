// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Cross entropy of logits [rows][classes] against class numbers, with label
// smoothing, and its gradient.
//
// -DDATA_TYPE=0|1|2  of the logits: fp32, fp16, bf16; losses are fp32
// One block of WG threads per row.
//
// A row whose class is `ignored` has loss and gradient 0. One whose class does
// not exist has NaN for both: the caller's mistake shows, and no memory
// outside the row is touched.

#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

// Also writes the logarithm of each row's sum of exponentials, which the
// gradient needs.
extern "C" __global__ void __launch_bounds__(WG)
    cross_entropy_forward(const element* logits, const long long* targets, float* losses,
                          float* log_sums, int classes, long long ignored, float smoothing) {
    __shared__ float slots[reduce_slots];
    const element* row = logits + static_cast<size_t>(blockIdx.x) * classes;
    float largest = Max::identity();
    float total = 0.0f;
    for (int i = threadIdx.x; i < classes; i += WG) {
        const float logit = to_float(row[i]);
        largest = fmaxf(largest, logit);
        total += logit;
    }
    largest = block_reduce<Max>(largest, slots);
    total = block_reduce<Sum>(total, slots);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < classes; i += WG) {
        sum += expf(to_float(row[i]) - largest);
    }
    const float log_sum = largest + logf(block_reduce<Sum>(sum, slots));
    if (threadIdx.x == 0) {
        const long long target = targets[blockIdx.x];
        float loss = 0.0f;
        if (target != ignored) {
            loss = __builtin_nanf("");
            if (target >= 0 && target < classes) {
                const float sharp = log_sum - to_float(row[target]);
                const float flat = log_sum - total / classes;
                loss = (1.0f - smoothing) * sharp + smoothing * flat;
            }
        }
        losses[blockIdx.x] = loss;
        log_sums[blockIdx.x] = log_sum;
    }
}

extern "C" __global__ void __launch_bounds__(WG)
    cross_entropy_backward(const element* logits, const long long* targets,
                           const float* log_sums, const float* loss_gradients,
                           element* gradients, int classes, long long ignored, float smoothing) {
    const size_t start = static_cast<size_t>(blockIdx.x) * classes;
    const long long target = targets[blockIdx.x];
    const float log_sum = log_sums[blockIdx.x];
    float scale = target == ignored ? 0.0f : loss_gradients[blockIdx.x];
    if (target != ignored && (target < 0 || target >= classes)) {
        scale = __builtin_nanf("");
    }
    for (int i = threadIdx.x; i < classes; i += WG) {
        const float wanted = smoothing / classes + (i == target ? 1.0f - smoothing : 0.0f);
        const float found = expf(to_float(logits[start + i]) - log_sum);
        gradients[start + i] = to_element(scale * (found - wanted));
    }
}
