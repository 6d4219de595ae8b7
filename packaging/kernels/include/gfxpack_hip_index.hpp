// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Which part of the work a thread does: flat indices over a one-dimensional
// grid, and lines along one dimension of a tensor. Offsets are 64 bits wide.
#pragma once

#include <hip/hip_runtime.h>

namespace gfxpack {

__device__ inline size_t global_thread() {
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// The step of a loop in which any grid, however small, covers all the work.
__device__ inline size_t global_threads() {
    return static_cast<size_t>(gridDim.x) * blockDim.x;
}

// The elements of a packed tensor [outer][length][inner] that differ in the
// middle index only: the unit of softmax and of reductions.
struct Line {
    size_t start;
    size_t step;

    __device__ Line(size_t line, size_t length, size_t inner)
        : start(line / inner * length * inner + line % inner), step(inner) {}

    __device__ size_t at(size_t i) const { return start + i * step; }
};

}  // namespace gfxpack
