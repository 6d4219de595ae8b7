// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Gated linear units: the input's middle dimension, twice `length` long, is
// cut into values and gates; the result is value * activation(gate).
//
// -DDATA_TYPE=0|1|2   fp32, fp16, bf16
// -DACTIVATION=0|1|2  sigmoid (GLU), SiLU (SwiGLU), GELU (GeGLU)
// Input [outer][2 * length][inner], result [outer][length][inner].
// Any grid of blocks of WG threads.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef ACTIVATION
#error "ACTIVATION must be defined: 0 = sigmoid, 1 = SiLU, 2 = GELU"
#endif
#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

namespace {

struct Activated {
    float value, slope;
};

__device__ inline Activated activate(float gate) {
#if ACTIVATION == 0 || ACTIVATION == 1
    const float sigmoid = 1.0f / (1.0f + expf(-gate));
#if ACTIVATION == 0
    return Activated{sigmoid, sigmoid * (1.0f - sigmoid)};
#else
    return Activated{gate * sigmoid, sigmoid * (1.0f + gate * (1.0f - sigmoid))};
#endif
#elif ACTIVATION == 2
    const float below = 0.5f * (1.0f + erff(gate * 0.70710678f));
    const float density = 0.39894228f * expf(-0.5f * gate * gate);
    return Activated{gate * below, below + gate * density};
#else
#error "ACTIVATION must be 0, 1 or 2"
#endif
}

// Where the value of the i-th result lies in the input; its gate lies `half` behind.
struct Halves {
    size_t half;

    __device__ Halves(int length, int inner) : half(static_cast<size_t>(length) * inner) {}
    __device__ size_t value(size_t i) const { return i / half * 2 * half + i % half; }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(WG)
    glu_forward(const element* x, element* y, int outer, int length, int inner) {
    const Halves halves(length, inner);
    const size_t total = outer * halves.half;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const size_t at = halves.value(i);
        const Activated gate = activate(to_float(x[at + halves.half]));
        y[i] = to_element(to_float(x[at]) * gate.value);
    }
}

extern "C" __global__ void __launch_bounds__(WG)
    glu_backward(const element* x, const element* dy, element* dx, int outer, int length,
                 int inner) {
    const Halves halves(length, inner);
    const size_t total = outer * halves.half;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const size_t at = halves.value(i);
        const Activated gate = activate(to_float(x[at + halves.half]));
        const float gradient = to_float(dy[i]);
        dx[at] = to_element(gradient * gate.value);
        dx[at + halves.half] = to_element(gradient * to_float(x[at]) * gate.slope);
    }
}
