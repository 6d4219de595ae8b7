// Stands in for HIP's header, so that a kernel source compiles as plain C++
// for the host: the words of the kernel language, and what the kernels call.
// Names as HIP spells them; a kernel that needs one more adds it here.
#pragma once

#include <math.h>
#include <stddef.h>
#include <string.h>

#define __global__
#define __device__
#define __launch_bounds__(threads)
// Blocks run one after another, so one copy does. A section of its own lets
// the simulator overwrite all of it between blocks.
#define __shared__ static __attribute__((section("gfxpack_lds")))

namespace simulator {

struct Index {
    unsigned x, y, z;
};

// Returns when all threads of the block have called it.
void block_barrier();

// Every lane of the wave calls it; gives what lane `source` passed.
unsigned exchange(unsigned value, int source);

// Of the calling thread in its wave.
int lane();

}  // namespace simulator

extern simulator::Index threadIdx, blockIdx, blockDim, gridDim;
extern int warpSize;

inline void __syncthreads() { simulator::block_barrier(); }

inline float __shfl_xor(float value, int mask) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    bits = simulator::exchange(bits, simulator::lane() ^ mask);
    memcpy(&value, &bits, sizeof value);
    return value;
}

// One host thread runs all of the grid.
inline float atomicAdd(float* at, float value) {
    const float before = *at;
    *at = before + value;
    return before;
}
