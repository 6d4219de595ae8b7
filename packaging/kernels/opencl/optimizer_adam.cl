// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One step of Adam.
//
//   -DDATA_TYPE=0..2   -DDECOUPLED   -DAMSGRAD   -DWG=<work-group size>
//
// DECOUPLED takes the weight decay off the weights themselves (AdamW) instead of adding it to the
// gradient; AMSGRAD divides by the largest second moment so far.

#include "gfxpack_cl_types.h"

#ifndef WG
#define WG 256
#endif

// correction1 and correction2 are 1 - beta1^step and 1 - beta2^step: the host computes them once,
// in double precision. The moments are floats whatever the element type.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_adam(global gfxpack_data *weights, const global gfxpack_data *gradients,
             global float *moment1, global float *moment2,
#ifdef AMSGRAD
             global float *largest2,
#endif
             const uint count, const float rate, const float beta1, const float beta2,
             const float epsilon, const float decay, const float correction1,
             const float correction2)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        float weight = gfxpack_load(weights, i);
        float gradient = gfxpack_load(gradients, i);
#ifdef DECOUPLED
        weight -= rate * decay * weight;
#else
        gradient += decay * weight;
#endif
        const float first = beta1 * moment1[i] + (1.0f - beta1) * gradient;
        const float second = beta2 * moment2[i] + (1.0f - beta2) * gradient * gradient;
        moment1[i] = first;
        moment2[i] = second;
#ifdef AMSGRAD
        const float scale = fmax(largest2[i], second);
        largest2[i] = scale;
#else
        const float scale = second;
#endif
        const float divisor = sqrt(scale / correction2) + epsilon;
        gfxpack_store(weights, i, weight - rate * (first / correction1) / divisor);
    }
}
