// SPDX-License-Identifier: MIT

#include <hip/hip_runtime.h>

#include "group_sum.hpp"

// The sum of each row of a matrix, a group of WG work-items to a row.
extern "C" __global__ __launch_bounds__(WG) void
row_sum(const TYPE* x, TYPE* sums, unsigned columns)
{
    TYPE sum = 0;
    for(unsigned column = threadIdx.x; column < columns; column += WG)
        sum += x[static_cast<size_t>(blockIdx.x) * columns + column];
    sum = group_sum<WG>(sum);
    if(threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}
