// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Layer normalisation of the rows of a packed [rows, length] tensor, and its gradients:
// y = (x - mean) / sqrt(variance + epsilon), times weight plus bias where AFFINE is defined.
//
//   -DDATA_TYPE=0..2   -DAFFINE   -DWG=<work-group size>

#include "gfxpack_cl_group.h"
#include "gfxpack_cl_types.h"

// Columns that one work-group of the weight gradient takes side by side, so that neighbours in
// memory are read together; the work-items left over share out the rows.
#define GFXPACK_COLUMNS 16
#define GFXPACK_ROWS (WG / GFXPACK_COLUMNS)

#ifdef AFFINE
#define GFXPACK_WEIGHT(i) gfxpack_load(weight, i)
#define GFXPACK_BIAS(i) gfxpack_load(bias, i)
#else
#define GFXPACK_WEIGHT(i) 1.0f
#define GFXPACK_BIAS(i) 0.0f
#endif

// Keeps mean and 1 / sqrt(variance + epsilon) of every row for the backward pass.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_layer_norm_forward(const global gfxpack_data *x,
#ifdef AFFINE
                           const global gfxpack_data *weight, const global gfxpack_data *bias,
#endif
                           global gfxpack_data *y, global float *mean, global float *inverse,
                           const uint rows, const uint length, const float epsilon)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);

    for (uint row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const size_t start = (size_t)row * length;

        float sum = 0.0f;
        for (uint i = lane; i < length; i += WG) {
            sum += gfxpack_load(x, start + i);
        }
        const float centre = gfxpack_group_sum(scratch, sum) / length;

        // From the distances, not as E[x^2] - mean^2: that cancels where the mean is large.
        float squares = 0.0f;
        for (uint i = lane; i < length; i += WG) {
            const float distance = gfxpack_load(x, start + i) - centre;
            squares += distance * distance;
        }
        const float scale = rsqrt(gfxpack_group_sum(scratch, squares) / length + epsilon);

        for (uint i = lane; i < length; i += WG) {
            const float normal = (gfxpack_load(x, start + i) - centre) * scale;
            gfxpack_store(y, start + i, normal * GFXPACK_WEIGHT(i) + GFXPACK_BIAS(i));
        }
        if (lane == 0) {
            mean[row] = centre;
            inverse[row] = scale;
        }
    }
}

kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_layer_norm_backward(const global gfxpack_data *x, const global gfxpack_data *dy,
#ifdef AFFINE
                            const global gfxpack_data *weight,
#endif
                            const global float *mean, const global float *inverse,
                            global gfxpack_data *dx, const uint rows, const uint length)
{
    local float scratch[WG];
    const uint lane = get_local_id(0);

    for (uint row = get_group_id(0); row < rows; row += get_num_groups(0)) {
        const size_t start = (size_t)row * length;
        const float centre = mean[row];
        const float scale = inverse[row];

        float sum = 0.0f;
        float product = 0.0f;
        for (uint i = lane; i < length; i += WG) {
            const float slope = gfxpack_load(dy, start + i) * GFXPACK_WEIGHT(i);
            sum += slope;
            product += slope * (gfxpack_load(x, start + i) - centre) * scale;
        }
        sum = gfxpack_group_sum(scratch, sum) / length;
        product = gfxpack_group_sum(scratch, product) / length;

        for (uint i = lane; i < length; i += WG) {
            const float slope = gfxpack_load(dy, start + i) * GFXPACK_WEIGHT(i);
            const float normal = (gfxpack_load(x, start + i) - centre) * scale;
            gfxpack_store(dx, start + i, scale * (slope - sum - normal * product));
        }
    }
}

#ifdef AFFINE
// The gradients of weight and bias: sums over all rows. One work-group per 16 columns.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_layer_norm_backward_weight(const global gfxpack_data *x, const global gfxpack_data *dy,
                                   const global float *mean, const global float *inverse,
                                   global gfxpack_data *dweight, global gfxpack_data *dbias,
                                   const uint rows, const uint length)
{
    local float weights[WG];
    local float biases[WG];
    const uint lane = get_local_id(0);
    const uint phase = lane / GFXPACK_COLUMNS;
    const uint column = get_group_id(0) * GFXPACK_COLUMNS + lane % GFXPACK_COLUMNS;

    float weight = 0.0f;
    float bias = 0.0f;
    if (column < length) {
        for (uint row = phase; row < rows; row += GFXPACK_ROWS) {
            const size_t at = (size_t)row * length + column;
            const float slope = gfxpack_load(dy, at);
            weight += slope * (gfxpack_load(x, at) - mean[row]) * inverse[row];
            bias += slope;
        }
    }
    weights[lane] = weight;
    biases[lane] = bias;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = GFXPACK_ROWS / 2; step > 0; step /= 2) {
        if (phase < step) {
            weights[lane] += weights[lane + step * GFXPACK_COLUMNS];
            biases[lane] += biases[lane + step * GFXPACK_COLUMNS];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (phase == 0 && column < length) {
        gfxpack_store(dweight, column, weights[lane]);
        gfxpack_store(dbias, column, biases[lane]);
    }
}
#endif
