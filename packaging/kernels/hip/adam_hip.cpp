// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One step of Adam over a flat parameter. The moments are fp32.
//
// -DDATA_TYPE=0|1|2  of parameter and gradient: fp32, fp16, bf16
// -DDECOUPLED        AdamW: the decay acts on the parameter, not through the gradient
// -DAMSGRAD          divide by the largest second moment so far
// -DMASTER           an fp32 copy of the parameter is the one that is updated
// Any grid of blocks of WG threads.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

// By value in the kernel arguments: eight 32-bit floats in this order. The
// corrections are 1 - beta^step: the host has them in higher precision.
struct AdamSettings {
    float rate, beta1, beta2, epsilon, decay;
    float correction1, correction2;
    float gradient_scale;
};

// `master` and `largest` are read and written with MASTER and AMSGRAD only.
extern "C" __global__ void __launch_bounds__(WG)
    adam_step(element* parameter, const element* gradient, float* first, float* second,
              float* largest, float* master, AdamSettings s, long long count) {
    const size_t total = static_cast<size_t>(count);
    for (size_t i = global_thread(); i < total; i += global_threads()) {
#ifdef MASTER
        float value = master[i];
#else
        float value = to_float(parameter[i]);
#endif
        float slope = to_float(gradient[i]) * s.gradient_scale;
#ifdef DECOUPLED
        value -= s.rate * s.decay * value;
#else
        slope += s.decay * value;
#endif
        const float moment1 = first[i] + (1.0f - s.beta1) * (slope - first[i]);
        const float moment2 = second[i] + (1.0f - s.beta2) * (slope * slope - second[i]);
        first[i] = moment1;
        second[i] = moment2;
#ifdef AMSGRAD
        const float divisor2 = fmaxf(largest[i], moment2);
        largest[i] = divisor2;
#else
        const float divisor2 = moment2;
#endif
        const float divisor = sqrtf(divisor2 / s.correction2) + s.epsilon;
        value -= s.rate * (moment1 / s.correction1) / divisor;
#ifdef MASTER
        master[i] = value;
#endif
        parameter[i] = to_element(value);
    }
}
