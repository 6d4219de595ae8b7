// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Layer normalisation over the rows of [rows][columns], and its gradients.
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16; statistics and weights' gradients are fp32
// -DRMS              RMS normalisation: no mean is taken off, no bias added
// One block of WG threads per row, except for the weights' gradients.

#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

// Writes the rows' statistics for the gradients: mean (0 with RMS) and the
// reciprocal of the standard deviation. With RMS `beta` is not read.
extern "C" __global__ void __launch_bounds__(WG)
    layernorm_forward(const element* x, const element* gamma, const element* beta, element* y,
                      float* means, float* scales, int columns, float epsilon) {
    __shared__ float slots[reduce_slots];
    const size_t row = static_cast<size_t>(blockIdx.x) * columns;
    float mean = 0.0f;
#ifndef RMS
    for (int i = threadIdx.x; i < columns; i += WG) {
        mean += to_float(x[row + i]);
    }
    mean = block_reduce<Sum>(mean, slots) / columns;
#endif
    // A second pass over the row: the difference of two large sums would lose
    // the variance of data far from 0.
    float variance = 0.0f;
    for (int i = threadIdx.x; i < columns; i += WG) {
        const float off = to_float(x[row + i]) - mean;
        variance += off * off;
    }
    variance = block_reduce<Sum>(variance, slots) / columns;
    const float scale = 1.0f / sqrtf(variance + epsilon);
    for (int i = threadIdx.x; i < columns; i += WG) {
        const float normal = (to_float(x[row + i]) - mean) * scale;
#ifdef RMS
        y[row + i] = to_element(normal * to_float(gamma[i]));
#else
        y[row + i] = to_element(normal * to_float(gamma[i]) + to_float(beta[i]));
#endif
    }
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        scales[blockIdx.x] = scale;
    }
}

extern "C" __global__ void __launch_bounds__(WG)
    layernorm_backward(const element* x, const element* dy, const element* gamma,
                       const float* means, const float* scales, element* dx, int columns) {
    __shared__ float slots[reduce_slots];
    const size_t row = static_cast<size_t>(blockIdx.x) * columns;
    const float mean = means[blockIdx.x], scale = scales[blockIdx.x];
    float along = 0.0f;
    float total = 0.0f;
    for (int i = threadIdx.x; i < columns; i += WG) {
        const float normal = (to_float(x[row + i]) - mean) * scale;
        const float gradient = to_float(dy[row + i]) * to_float(gamma[i]);
        along += gradient * normal;
        total += gradient;
    }
    along = block_reduce<Sum>(along, slots) / columns;
#ifdef RMS
    total = 0.0f;
#else
    total = block_reduce<Sum>(total, slots) / columns;
#endif
    for (int i = threadIdx.x; i < columns; i += WG) {
        const float normal = (to_float(x[row + i]) - mean) * scale;
        const float gradient = to_float(dy[row + i]) * to_float(gamma[i]);
        dx[row + i] = to_element(scale * (gradient - total - normal * along));
    }
}

// Gradients of gamma and beta. A block of 32 x 8 threads takes 32 columns,
// each line of threads every eighth row; columns / 32 blocks, rounded up.
extern "C" __global__ void __launch_bounds__(256)
    layernorm_backward_weights(const element* x, const element* dy, const float* means,
                               const float* scales, float* dgamma, float* dbeta, int rows,
                               int columns) {
    __shared__ float gammas[8][33];
    __shared__ float betas[8][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float gamma_sum = 0.0f, beta_sum = 0.0f;
    if (column < columns) {
        for (int row = threadIdx.y; row < rows; row += 8) {
            const size_t at = static_cast<size_t>(row) * columns + column;
            const float gradient = to_float(dy[at]);
            gamma_sum += gradient * (to_float(x[at]) - means[row]) * scales[row];
            beta_sum += gradient;
        }
    }
    gammas[threadIdx.y][threadIdx.x] = gamma_sum;
    betas[threadIdx.y][threadIdx.x] = beta_sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int line = 1; line < 8; ++line) {
            gamma_sum += gammas[line][threadIdx.x];
            beta_sum += betas[line][threadIdx.x];
        }
        dgamma[column] = gamma_sum;
        dbeta[column] = beta_sum;
    }
}
