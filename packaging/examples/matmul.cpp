// SPDX-License-Identifier: MIT

#include <hip/hip_runtime.h>

typedef float float4_t __attribute__((ext_vector_type(4)));

// c = a * b, of m by k and k by n, by the matrix cores of gfx908 and its successors: a wavefront of
// 64 lanes for each tile of 16 by 16. m and n are multiples of 16, k of 4.
extern "C" __global__ __launch_bounds__(64) void
matmul(const float* a, const float* b, float* c, unsigned n, unsigned k)
{
    const unsigned across = threadIdx.x % 16, down = threadIdx.x / 16;
    const unsigned row = blockIdx.y * 16, column = blockIdx.x * 16;
    float4_t sums = {0, 0, 0, 0};
    for(unsigned i = down; i < k; i += 4)
        sums = __builtin_amdgcn_mfma_f32_16x16x4f32(
            a[(row + across) * k + i], b[i * n + column + across], sums, 0, 0, 0);
    for(unsigned i = 0; i < 4; ++i)
        c[(row + down * 4 + i) * n + column + across] = sums[i];
}
