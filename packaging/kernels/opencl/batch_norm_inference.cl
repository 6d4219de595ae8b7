// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Batch normalisation of a packed NCHW tensor with given mean and variance.
//
//   -DMODE=<number below>   -DDATA_TYPE=0..2   -DWG=<work-group size>

#include "gfxpack_cl_types.h"

#define GFXPACK_PER_ACTIVATION 0  // parameters for every one of C * H * W places
#define GFXPACK_SPATIAL 1         // parameters for every channel

#ifndef MODE
#error "MODE is one of the numbers above"
#endif
#ifndef WG
#define WG 256
#endif

// Launched over [places (H * W), C, N]: no index has to be divided. Parameters are floats whatever
// the element type, for their small differences matter.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_batch_norm_inference(const global gfxpack_data *x, global gfxpack_data *y,
                             const global float *mean, const global float *variance,
                             const global float *weight, const global float *bias,
                             const uint places, const float epsilon)
{
    const uint channel = get_global_id(1);
    const size_t plane = (get_global_id(2) * get_global_size(1) + channel) * places;

    for (uint place = get_global_id(0); place < places; place += get_global_size(0)) {
#if MODE == GFXPACK_SPATIAL
        const size_t parameter = channel;
#else
        const size_t parameter = (size_t)channel * places + place;
#endif
        const float scale = weight[parameter] * rsqrt(variance[parameter] + epsilon);
        const float value = (gfxpack_load(x, plane + place) - mean[parameter]) * scale;
        gfxpack_store(y, plane + place, value + bias[parameter]);
    }
}
