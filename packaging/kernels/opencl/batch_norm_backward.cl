// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Gradients of batch normalisation of a packed NCHW tensor: of x, weight and bias.
//
//   -DMODE=<number below>   -DDATA_TYPE=0..2   -DUSE_SAVED   -DWG=<work-group size>
//
// With USE_SAVED, mean and 1 / sqrt(variance + epsilon) come from the forward pass; without, they
// are computed again, for callers that kept nothing.

#include "gfxpack_cl_group.h"
#include "gfxpack_cl_types.h"

#define GFXPACK_PER_ACTIVATION 0  // statistics for every one of C * H * W places, over N
#define GFXPACK_SPATIAL 1         // statistics for every channel, over N * H * W

#ifndef MODE
#error "MODE is one of the numbers above"
#endif

#ifdef USE_SAVED
#define GFXPACK_STATISTICS const global float *saved_mean, const global float *saved_inverse
#else
#define GFXPACK_STATISTICS const float epsilon
#endif

#if MODE == GFXPACK_SPATIAL

// One work-group per channel.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_batch_norm_backward(const global gfxpack_data *x, const global gfxpack_data *dy,
                            global gfxpack_data *dx, const global float *weight,
                            global float *dweight, global float *dbias, const uint batch,
                            const uint channels, const uint places, GFXPACK_STATISTICS)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);
    const uint channel = get_group_id(0);
    const uint count = batch * places;
    const size_t image = (size_t)channels * places;
    x += (size_t)channel * places;
    dy += (size_t)channel * places;
    dx += (size_t)channel * places;

#ifdef USE_SAVED
    const float mean = saved_mean[channel];
    const float inverse = saved_inverse[channel];
#else
    float total = 0.0f;
    for (uint i = lane; i < count; i += WG) {
        total += gfxpack_load(x, i / places * image + i % places);
    }
    const float mean = gfxpack_group_sum(scratch, total) / count;
    float squares = 0.0f;
    for (uint i = lane; i < count; i += WG) {
        const float distance = gfxpack_load(x, i / places * image + i % places) - mean;
        squares += distance * distance;
    }
    const float inverse = rsqrt(gfxpack_group_sum(scratch, squares) / count + epsilon);
#endif

    float sum = 0.0f;
    float product = 0.0f;
    for (uint i = lane; i < count; i += WG) {
        const size_t at = i / places * image + i % places;
        const float slope = gfxpack_load(dy, at);
        sum += slope;
        product += slope * (gfxpack_load(x, at) - mean) * inverse;
    }
    sum = gfxpack_group_sum(scratch, sum);
    product = gfxpack_group_sum(scratch, product);

    const float scale = weight[channel] * inverse;
    for (uint i = lane; i < count; i += WG) {
        const size_t at = i / places * image + i % places;
        const float normal = (gfxpack_load(x, at) - mean) * inverse;
        gfxpack_store(dx, at, scale * (gfxpack_load(dy, at) - (sum + normal * product) / count));
    }
    if (lane == 0) {
        dweight[channel] = product;
        dbias[channel] = sum;
    }
}

#else

// One work-item per place.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_batch_norm_backward(const global gfxpack_data *x, const global gfxpack_data *dy,
                            global gfxpack_data *dx, const global float *weight,
                            global float *dweight, global float *dbias, const uint batch,
                            const uint channels, const uint places, GFXPACK_STATISTICS)
{
    const uint image = channels * places;
    const uint place = get_global_id(0);
    if (place >= image) {
        return;
    }

#ifdef USE_SAVED
    const float mean = saved_mean[place];
    const float inverse = saved_inverse[place];
#else
    float total = 0.0f;
    for (uint n = 0; n < batch; ++n) {
        total += gfxpack_load(x, (size_t)n * image + place);
    }
    const float mean = total / batch;
    float squares = 0.0f;
    for (uint n = 0; n < batch; ++n) {
        const float distance = gfxpack_load(x, (size_t)n * image + place) - mean;
        squares += distance * distance;
    }
    const float inverse = rsqrt(squares / batch + epsilon);
#endif

    float sum = 0.0f;
    float product = 0.0f;
    for (uint n = 0; n < batch; ++n) {
        const size_t at = (size_t)n * image + place;
        const float slope = gfxpack_load(dy, at);
        sum += slope;
        product += slope * (gfxpack_load(x, at) - mean) * inverse;
    }

    const float scale = weight[place] * inverse;
    for (uint n = 0; n < batch; ++n) {
        const size_t at = (size_t)n * image + place;
        const float normal = (gfxpack_load(x, at) - mean) * inverse;
        gfxpack_store(dx, at, scale * (gfxpack_load(dy, at) - (sum + normal * product) / batch));
    }
    dweight[place] = product;
    dbias[place] = sum;
}

#endif
