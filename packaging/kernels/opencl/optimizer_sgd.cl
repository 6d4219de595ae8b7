// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One step of stochastic gradient descent with momentum and weight decay.
//
//   -DDATA_TYPE=0..2   -DNESTEROV   -DWG=<work-group size>
//
// Weights and gradients have the element type; the velocity is a float whatever that is, since it
// sums many small steps.

#include "gfxpack_cl_types.h"

#ifndef WG
#define WG 256
#endif

kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_sgd(global gfxpack_data *weights, const global gfxpack_data *gradients,
            global float *velocity, const uint count, const float rate, const float momentum,
            const float dampening, const float decay)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        const float weight = gfxpack_load(weights, i);
        const float gradient = gfxpack_load(gradients, i) + decay * weight;
        const float speed = momentum * velocity[i] + (1.0f - dampening) * gradient;
        velocity[i] = speed;
#ifdef NESTEROV
        const float step = gradient + momentum * speed;
#else
        const float step = speed;
#endif
        gfxpack_store(weights, i, weight - rate * step);
    }
}
