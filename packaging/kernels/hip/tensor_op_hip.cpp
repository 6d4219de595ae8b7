// SPDX-License-Identifier: MIT OR Apache-2.0
//
// C = (alpha_a * A) op (alpha_b * B) + beta * C over tensors of up to five
// dimensions with any strides; a stride of 0 broadcasts.
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16
// -DOP=0|1|2|3       add, multiply, minimum, maximum
// Any grid of blocks of WG threads.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef OP
#error "OP must be defined: 0 = add, 1 = multiply, 2 = minimum, 3 = maximum"
#endif
#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

// By value in the kernel arguments: twenty 32-bit integers in this order.
// Lengths that are not needed are 1. Strides are in elements.
struct TensorLayout {
    int lengths[5];
    int a_strides[5];
    int b_strides[5];
    int c_strides[5];
};

namespace {

__device__ inline float combine(float a, float b) {
#if OP == 0
    return a + b;
#elif OP == 1
    return a * b;
#elif OP == 2
    return fminf(a, b);
#elif OP == 3
    return fmaxf(a, b);
#else
#error "OP must be 0 to 3"
#endif
}

}  // namespace

// C is not read where beta is 0. C may be A or B if their strides agree.
extern "C" __global__ void __launch_bounds__(WG)
    tensor_op(const element* a, const element* b, element* c, TensorLayout layout, float alpha_a,
              float alpha_b, float beta) {
    size_t total = 1;
    for (int d = 0; d < 5; ++d) {
        total *= layout.lengths[d];
    }
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        size_t left = i, at_a = 0, at_b = 0, at_c = 0;
        for (int d = 4; d >= 0; --d) {
            const size_t index = left % layout.lengths[d];
            left /= layout.lengths[d];
            at_a += index * layout.a_strides[d];
            at_b += index * layout.b_strides[d];
            at_c += index * layout.c_strides[d];
        }
        const float kept = beta != 0.0f ? beta * to_float(c[at_c]) : 0.0f;
        c[at_c] =
            to_element(combine(alpha_a * to_float(a[at_a]), alpha_b * to_float(b[at_b])) + kept);
    }
}
