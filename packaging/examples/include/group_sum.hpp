// SPDX-License-Identifier: MIT
#pragma once

// The sum over a group of SIZE work-items, a power of two: always in the same order, so that equal
// inputs give equal bits.
template <unsigned SIZE, typename T>
__device__ T group_sum(T value)
{
    __shared__ T values[SIZE];
    values[threadIdx.x] = value;
    for(unsigned half = SIZE / 2; half > 0; half /= 2)
    {
        __syncthreads();
        if(threadIdx.x < half)
            values[threadIdx.x] += values[threadIdx.x + half];
    }
    return values[0];
}
