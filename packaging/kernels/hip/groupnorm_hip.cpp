// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Group normalisation of NCHW images: the channels of a group of an image
// share mean and variance, which one pass finds (Welford's method).
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16
// One block of WG threads per group and image: batch * groups blocks.

#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif
static_assert((WG & (WG - 1)) == 0, "the tree of the reduction halves WG");

using namespace gfxpack;

namespace {

// Of `count` values: their mean, and the sum of squared distances from it.
struct Moments {
    float count, mean, spread;

    __device__ void add(float value) {
        count += 1.0f;
        const float off = value - mean;
        mean += off / count;
        spread += off * (value - mean);
    }

    // Chan's rule for two sets.
    __device__ void merge(const Moments& other) {
        const float both = count + other.count;
        if (other.count == 0.0f) {
            return;
        }
        const float off = other.mean - mean;
        mean += off * (other.count / both);
        spread += other.spread + off * off * (count * other.count / both);
        count = both;
    }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(WG)
    groupnorm_forward(const element* x, const element* gamma, const element* beta, element* y,
                      float* means, float* scales, int channels, int pixels, int groups,
                      float epsilon) {
    __shared__ float counts[WG], sums[WG], spreads[WG];
    const int thread = threadIdx.x;
    const int group_channels = channels / groups;
    const int first_channel = static_cast<int>(blockIdx.x % groups) * group_channels;
    const size_t length = static_cast<size_t>(group_channels) * pixels;
    const size_t start = blockIdx.x * length;

    Moments mine{0.0f, 0.0f, 0.0f};
    for (size_t i = thread; i < length; i += WG) {
        mine.add(to_float(x[start + i]));
    }
    for (int half = WG / 2; half > 0; half /= 2) {
        // The upper half hands over, the lower half takes.
        if (thread >= half && thread < 2 * half) {
            counts[thread] = mine.count;
            sums[thread] = mine.mean;
            spreads[thread] = mine.spread;
        }
        __syncthreads();
        if (thread < half) {
            mine.merge(Moments{counts[thread + half], sums[thread + half], spreads[thread + half]});
        }
    }
    if (thread == 0) {
        sums[0] = mine.mean;
        spreads[0] = 1.0f / sqrtf(mine.spread / length + epsilon);
        means[blockIdx.x] = sums[0];
        scales[blockIdx.x] = spreads[0];
    }
    __syncthreads();
    const float mean = sums[0], scale = spreads[0];
    for (size_t i = thread; i < length; i += WG) {
        const int channel = first_channel + static_cast<int>(i / pixels);
        const float normal = (to_float(x[start + i]) - mean) * scale;
        y[start + i] = to_element(normal * to_float(gamma[channel]) + to_float(beta[channel]));
    }
}
