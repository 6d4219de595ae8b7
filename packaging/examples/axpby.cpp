// SPDX-License-Identifier: MIT

#include <hip/hip_runtime.h>

// y = alpha * x + beta * y. Without BETA, y is not read.
extern "C" __global__ void axpby(const TYPE* x, TYPE* y, TYPE alpha, TYPE beta, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i < count)
    {
#ifdef BETA
        y[i] = alpha * x[i] + beta * y[i];
#else
        y[i] = alpha * x[i];
#endif
    }
}
