// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Activation functions of packed tensors, and their gradients.
//
//   -DACTIVATION=<number below>   -DDATA_TYPE=0..2   -DWG=<work-group size>

#include "gfxpack_cl_types.h"

#define GFXPACK_RELU 0          // max(x, 0)
#define GFXPACK_LEAKY_RELU 1    // x, or alpha * x below 0
#define GFXPACK_TANH 2          // beta * tanh(alpha * x)
#define GFXPACK_SIGMOID 3       // 1 / (1 + e^-x)
#define GFXPACK_SOFTPLUS 4      // log(1 + e^x)
#define GFXPACK_ELU 5           // x, or alpha * (e^x - 1) below 0
#define GFXPACK_ABS 6           // |x|
#define GFXPACK_POWER 7         // (alpha + beta * x) ^ gamma
#define GFXPACK_CLIPPED_RELU 8  // min(max(x, 0), alpha)

#if !defined(ACTIVATION) || ACTIVATION < GFXPACK_RELU || ACTIVATION > GFXPACK_CLIPPED_RELU
#error "ACTIVATION is one of the numbers above"
#endif

#ifndef WG
#define WG 256
#endif

static inline float gfxpack_activate(float x, float alpha, float beta, float gamma)
{
#if ACTIVATION == GFXPACK_RELU
    // Asked this way round, a NaN stays one: hiding it would let a training run go astray.
    return x < 0.0f ? 0.0f : x;
#elif ACTIVATION == GFXPACK_LEAKY_RELU
    return x > 0.0f ? x : alpha * x;
#elif ACTIVATION == GFXPACK_TANH
    return beta * tanh(alpha * x);
#elif ACTIVATION == GFXPACK_SIGMOID
    return 1.0f / (1.0f + exp(-x));
#elif ACTIVATION == GFXPACK_SOFTPLUS
    // e^x alone would overflow for large x, where the result is just x.
    return fmax(x, 0.0f) + log1p(exp(-fabs(x)));
#elif ACTIVATION == GFXPACK_ELU
    return x > 0.0f ? x : alpha * expm1(x);
#elif ACTIVATION == GFXPACK_ABS
    return fabs(x);
#elif ACTIVATION == GFXPACK_POWER
    return pow(alpha + beta * x, gamma);
#else
    return x < 0.0f ? 0.0f : (x > alpha ? alpha : x);
#endif
}

// The derivative at x. It is had from x alone: the result of the forward pass need not be read,
// and was rounded to the element type.
static inline float gfxpack_activation_slope(float x, float alpha, float beta, float gamma)
{
#if ACTIVATION == GFXPACK_RELU
    return x > 0.0f ? 1.0f : 0.0f;
#elif ACTIVATION == GFXPACK_LEAKY_RELU
    return x > 0.0f ? 1.0f : alpha;
#elif ACTIVATION == GFXPACK_TANH
    const float t = tanh(alpha * x);
    return alpha * beta * (1.0f - t) * (1.0f + t);
#elif ACTIVATION == GFXPACK_SIGMOID
    // Symmetric in x; the smaller exponential keeps its digits far from 0.
    const float e = exp(-fabs(x));
    return e / ((1.0f + e) * (1.0f + e));
#elif ACTIVATION == GFXPACK_SOFTPLUS
    return 1.0f / (1.0f + exp(-x));
#elif ACTIVATION == GFXPACK_ELU
    return x > 0.0f ? 1.0f : alpha * exp(x);
#elif ACTIVATION == GFXPACK_ABS
    return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f);
#elif ACTIVATION == GFXPACK_POWER
    return gamma * beta * pow(alpha + beta * x, gamma - 1.0f);
#else
    return x > 0.0f && x < alpha ? 1.0f : 0.0f;
#endif
}

// y = f(x). Any number of work-items will do: each takes every get_global_size(0)-th element.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_activation_forward(const global gfxpack_data *x, global gfxpack_data *y, const uint count,
                           const float alpha, const float beta, const float gamma)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        gfxpack_store(y, i, gfxpack_activate(gfxpack_load(x, i), alpha, beta, gamma));
    }
}

// dx = dy * f'(x).
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_activation_backward(const global gfxpack_data *x, const global gfxpack_data *dy,
                            global gfxpack_data *dx, const uint count, const float alpha,
                            const float beta, const float gamma)
{
    for (size_t i = get_global_id(0); i < count; i += get_global_size(0)) {
        const float slope = gfxpack_activation_slope(gfxpack_load(x, i), alpha, beta, gamma);
        gfxpack_store(dx, i, gfxpack_load(dy, i) * slope);
    }
}
