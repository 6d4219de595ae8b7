// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Batch normalisation of a packed NCHW tensor by the mean and variance of the batch itself.
//
//   -DMODE=<number below>   -DDATA_TYPE=0..2   -DRUNNING   -DWG=<work-group size>
//
// With RUNNING, averages over the batches are kept up for the time of inference.

#include "gfxpack_cl_group.h"
#include "gfxpack_cl_types.h"

#define GFXPACK_PER_ACTIVATION 0  // statistics for every one of C * H * W places, over N
#define GFXPACK_SPATIAL 1         // statistics for every channel, over N * H * W

#ifndef MODE
#error "MODE is one of the numbers above"
#endif

#ifdef RUNNING
#define GFXPACK_RUNNING_PARAMETERS                                                                 \
    , global float *running_mean, global float *running_variance, const float factor

// The running variance is that of the population, so the estimate of a sample of `count` is freed
// of its bias; one sample has none to give, and counts as it is.
static inline void gfxpack_update(global float *running_mean, global float *running_variance,
                                  const float factor, uint parameter, float mean, float variance,
                                  uint count)
{
    const float unbiased = count > 1 ? variance * ((float)count / (float)(count - 1)) : variance;
    running_mean[parameter] += factor * (mean - running_mean[parameter]);
    running_variance[parameter] += factor * (unbiased - running_variance[parameter]);
}
#define GFXPACK_UPDATE(parameter, mean, variance, count)                                           \
    gfxpack_update(running_mean, running_variance, factor, parameter, mean, variance, count)
#else
#define GFXPACK_RUNNING_PARAMETERS
#define GFXPACK_UPDATE(parameter, mean, variance, count)
#endif

#if MODE == GFXPACK_SPATIAL

// One work-group per channel.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_batch_norm_training(const global gfxpack_data *x, global gfxpack_data *y,
                            const global float *weight, const global float *bias,
                            global float *saved_mean, global float *saved_inverse, const uint batch,
                            const uint channels, const uint places,
                            const float epsilon GFXPACK_RUNNING_PARAMETERS)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);
    const uint channel = get_group_id(0);
    const uint count = batch * places;
    const size_t image = (size_t)channels * places;
    const global gfxpack_data *x_channel = x + (size_t)channel * places;
    global gfxpack_data *y_channel = y + (size_t)channel * places;

    float sum = 0.0f;
    for (uint i = lane; i < count; i += WG) {
        sum += gfxpack_load(x_channel, i / places * image + i % places);
    }
    const float mean = gfxpack_group_sum(scratch, sum) / count;

    // From the distances, not as E[x^2] - mean^2: that cancels where the mean is large.
    float squares = 0.0f;
    for (uint i = lane; i < count; i += WG) {
        const float distance = gfxpack_load(x_channel, i / places * image + i % places) - mean;
        squares += distance * distance;
    }
    const float variance = gfxpack_group_sum(scratch, squares) / count;
    const float inverse = rsqrt(variance + epsilon);

    const float scale = weight[channel] * inverse;
    for (uint i = lane; i < count; i += WG) {
        const size_t at = i / places * image + i % places;
        gfxpack_store(y_channel, at, (gfxpack_load(x_channel, at) - mean) * scale + bias[channel]);
    }
    if (lane == 0) {
        saved_mean[channel] = mean;
        saved_inverse[channel] = inverse;
        GFXPACK_UPDATE(channel, mean, variance, count);
    }
}

#else

// One work-item per place.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_batch_norm_training(const global gfxpack_data *x, global gfxpack_data *y,
                            const global float *weight, const global float *bias,
                            global float *saved_mean, global float *saved_inverse, const uint batch,
                            const uint channels, const uint places,
                            const float epsilon GFXPACK_RUNNING_PARAMETERS)
{
    const uint image = channels * places;
    const uint place = get_global_id(0);
    if (place >= image) {
        return;
    }

    float sum = 0.0f;
    for (uint n = 0; n < batch; ++n) {
        sum += gfxpack_load(x, (size_t)n * image + place);
    }
    const float mean = sum / batch;

    float squares = 0.0f;
    for (uint n = 0; n < batch; ++n) {
        const float distance = gfxpack_load(x, (size_t)n * image + place) - mean;
        squares += distance * distance;
    }
    const float variance = squares / batch;
    const float inverse = rsqrt(variance + epsilon);

    const float scale = weight[place] * inverse;
    for (uint n = 0; n < batch; ++n) {
        const size_t at = (size_t)n * image + place;
        gfxpack_store(y, at, (gfxpack_load(x, at) - mean) * scale + bias[place]);
    }
    saved_mean[place] = mean;
    saved_inverse[place] = inverse;
    GFXPACK_UPDATE(place, mean, variance, batch);
}

#endif
