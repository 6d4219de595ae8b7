// SPDX-License-Identifier: MIT OR Apache-2.0
//
// NCHW images laid out as matrices whose product with the filters is the convolution (im2col), and
// the gradient of that matrix summed back into images (col2im).
//
//   -DDATA_TYPE=0..3   -DWG=<work-group size>
//
// The matrix of one image is [C * R * S, output H * output W], those of a batch one after another.

#include "gfxpack_cl_types.h"

#ifndef WG
#define WG 256
#endif

// im2col moves elements without looking at them; a half can't even be read as one without
// cl_khr_fp16.
#if DATA_TYPE == GFXPACK_FP32
typedef uint gfxpack_element;
#elif DATA_TYPE == GFXPACK_FP16 || DATA_TYPE == GFXPACK_BF16
typedef ushort gfxpack_element;
#elif DATA_TYPE == GFXPACK_INT8
typedef uchar gfxpack_element;
#else
#error "DATA_TYPE is 0 to 3"
#endif

// Pairs are height, then width.
typedef struct {
    int channels;
    int input[2];
    int output[2];
    int filter[2];
    int stride[2];
    int padding[2];
    int dilation[2];
} gfxpack_columns;

// One work-item per element of the matrix; dimension 1 counts the images. Padding becomes zeros.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_im2col(const global gfxpack_element *images, global gfxpack_element *columns,
               const gfxpack_columns shape)
{
    const uint places = shape.output[0] * shape.output[1];
    const uint window = shape.filter[0] * shape.filter[1];
    const uint count = shape.channels * window * places;
    images += get_global_id(1) * shape.channels * shape.input[0] * shape.input[1];
    columns += get_global_id(1) * count;

    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const int place = i % places;
        const int row = i / places;
        const int s = row % shape.filter[1];
        const int r = row / shape.filter[1] % shape.filter[0];
        const int c = row / window;
        const int y = place / shape.output[1] * shape.stride[0] - shape.padding[0] +
                      r * shape.dilation[0];
        const int x = place % shape.output[1] * shape.stride[1] - shape.padding[1] +
                      s * shape.dilation[1];
        const bool inside = y >= 0 && y < shape.input[0] && x >= 0 && x < shape.input[1];
        columns[i] =
            inside ? images[((size_t)c * shape.input[0] + y) * shape.input[1] + x] : 0;
    }
}

#if GFXPACK_IS_FLOAT
// One work-item per element of the images: it gathers what im2col copied from it.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_col2im(const global gfxpack_data *columns, global gfxpack_data *images,
               const gfxpack_columns shape)
{
    const uint places = shape.output[0] * shape.output[1];
    const uint window = shape.filter[0] * shape.filter[1];
    const uint plane = shape.input[0] * shape.input[1];
    const uint count = shape.channels * plane;
    images += get_global_id(1) * count;
    columns += get_global_id(1) * shape.channels * window * places;

    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        const int c = i / plane;
        const int y = i % plane / shape.input[1];
        const int x = i % shape.input[1];

        float sum = 0.0f;
        for (int r = 0; r < shape.filter[0]; ++r) {
            const int y_scaled = y + shape.padding[0] - r * shape.dilation[0];
            const int oy = y_scaled / shape.stride[0];
            if (y_scaled < 0 || oy * shape.stride[0] != y_scaled || oy >= shape.output[0]) {
                continue;
            }
            for (int s = 0; s < shape.filter[1]; ++s) {
                const int x_scaled = x + shape.padding[1] - s * shape.dilation[1];
                const int ox = x_scaled / shape.stride[1];
                if (x_scaled < 0 || ox * shape.stride[1] != x_scaled || ox >= shape.output[1]) {
                    continue;
                }
                const size_t row = ((size_t)c * shape.filter[0] + r) * shape.filter[1] + s;
                sum += gfxpack_load(columns, row * places + oy * shape.output[1] + ox);
            }
        }
        gfxpack_store(images, i, sum);
    }
}
#endif
