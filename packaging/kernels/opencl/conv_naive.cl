// SPDX-License-Identifier: MIT OR Apache-2.0
//
// 2D convolution (cross-correlation) by its definition, for any filter, stride, padding, dilation
// and number of groups: what remains when no faster kernel takes a problem, and what those are
// compared with.
//
//   -DDIRECTION=<number below>   -DLAYOUT=<number below>   -DDATA_TYPE=0..2   -DWG=<group size>

#include "gfxpack_cl_group.h"
#include "gfxpack_cl_types.h"

#define GFXPACK_FORWARD 0
#define GFXPACK_BACKWARD_DATA 1
#define GFXPACK_BACKWARD_WEIGHTS 2

#define GFXPACK_NCHW 0  // images NCHW, filters [K, C / groups, R, S]
#define GFXPACK_NHWC 1  // images NHWC, filters [K, R, S, C / groups]

#if !defined(DIRECTION) || DIRECTION < 0 || DIRECTION > 2
#error "DIRECTION is one of the numbers above"
#endif
#if !defined(LAYOUT) || LAYOUT < 0 || LAYOUT > 1
#error "LAYOUT is one of the numbers above"
#endif

// Pairs are height, then width. Channels are those of all groups together.
typedef struct {
    int batch;
    int channels;
    int filters;
    int groups;
    int input[2];
    int output[2];
    int filter[2];
    int stride[2];
    int padding[2];
    int dilation[2];
} gfxpack_convolution;

static inline size_t gfxpack_image_at(int n, int c, int y, int x, int channels, const int *size)
{
#if LAYOUT == GFXPACK_NCHW
    return (((size_t)n * channels + c) * size[0] + y) * size[1] + x;
#else
    return (((size_t)n * size[0] + y) * size[1] + x) * channels + c;
#endif
}

#if DIRECTION != GFXPACK_BACKWARD_WEIGHTS
static inline size_t gfxpack_filter_at(int k, int c, int r, int s, int channels, const int *size)
{
#if LAYOUT == GFXPACK_NCHW
    return (((size_t)k * channels + c) * size[0] + r) * size[1] + s;
#else
    return (((size_t)k * size[0] + r) * size[1] + s) * channels + c;
#endif
}
#endif

// An index into an image of `channels` channels, taken apart in the order that memory has, so that
// neighbouring work-items write neighbouring elements.
static inline void gfxpack_image_place(uint index, int channels, const int *size, int *n, int *c,
                                       int *y, int *x)
{
#if LAYOUT == GFXPACK_NCHW
    *x = index % size[1];
    index /= size[1];
    *y = index % size[0];
    index /= size[0];
    *c = index % channels;
    *n = index / channels;
#else
    *c = index % channels;
    index /= channels;
    *x = index % size[1];
    index /= size[1];
    *y = index % size[0];
    *n = index / size[0];
#endif
}

#if DIRECTION == GFXPACK_FORWARD

// One work-item per element of the output.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_conv_naive_forward(const global gfxpack_data *input, const global gfxpack_data *weights,
                           global gfxpack_data *output, const gfxpack_convolution conv)
{
    const uint count = conv.batch * conv.filters * conv.output[0] * conv.output[1];
    const int c_group = conv.channels / conv.groups;
    const int k_group = conv.filters / conv.groups;

    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        int n, k, oy, ox;
        gfxpack_image_place(i, conv.filters, conv.output, &n, &k, &oy, &ox);
        const int c_first = k / k_group * c_group;

        float sum = 0.0f;
        for (int r = 0; r < conv.filter[0]; ++r) {
            const int y = oy * conv.stride[0] - conv.padding[0] + r * conv.dilation[0];
            if (y < 0 || y >= conv.input[0]) {
                continue;
            }
            for (int s = 0; s < conv.filter[1]; ++s) {
                const int x = ox * conv.stride[1] - conv.padding[1] + s * conv.dilation[1];
                if (x < 0 || x >= conv.input[1]) {
                    continue;
                }
                for (int c = 0; c < c_group; ++c) {
                    sum += gfxpack_load(input, gfxpack_image_at(n, c_first + c, y, x, conv.channels,
                                                                conv.input)) *
                           gfxpack_load(weights,
                                        gfxpack_filter_at(k, c, r, s, c_group, conv.filter));
                }
            }
        }
        gfxpack_store(output, i, sum);
    }
}

#elif DIRECTION == GFXPACK_BACKWARD_DATA

// One work-item per element of the input's gradient.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_conv_naive_backward_data(const global gfxpack_data *doutput,
                                 const global gfxpack_data *weights, global gfxpack_data *dinput,
                                 const gfxpack_convolution conv)
{
    const uint count = conv.batch * conv.channels * conv.input[0] * conv.input[1];
    const int c_group = conv.channels / conv.groups;
    const int k_group = conv.filters / conv.groups;

    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        int n, c, y, x;
        gfxpack_image_place(i, conv.channels, conv.input, &n, &c, &y, &x);
        const int k_first = c / c_group * k_group;

        float sum = 0.0f;
        for (int r = 0; r < conv.filter[0]; ++r) {
            // The output row whose filter row r lies on y, where there is one.
            const int y_scaled = y + conv.padding[0] - r * conv.dilation[0];
            const int oy = y_scaled / conv.stride[0];
            if (y_scaled < 0 || oy * conv.stride[0] != y_scaled || oy >= conv.output[0]) {
                continue;
            }
            for (int s = 0; s < conv.filter[1]; ++s) {
                const int x_scaled = x + conv.padding[1] - s * conv.dilation[1];
                const int ox = x_scaled / conv.stride[1];
                if (x_scaled < 0 || ox * conv.stride[1] != x_scaled || ox >= conv.output[1]) {
                    continue;
                }
                for (int k = k_first; k < k_first + k_group; ++k) {
                    sum += gfxpack_load(doutput, gfxpack_image_at(n, k, oy, ox, conv.filters,
                                                                  conv.output)) *
                           gfxpack_load(weights, gfxpack_filter_at(k, c % c_group, r, s, c_group,
                                                                   conv.filter));
                }
            }
        }
        gfxpack_store(dinput, i, sum);
    }
}

#else

// One work-group per weight: there are few weights, and each is a sum over the whole batch.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
gfxpack_conv_naive_backward_weights(const global gfxpack_data *input,
                                    const global gfxpack_data *doutput,
                                    global gfxpack_data *dweights, const gfxpack_convolution conv)
{
    local float scratch[WG];
    const int c_group = conv.channels / conv.groups;
    const int k_group = conv.filters / conv.groups;
    const uint count = conv.batch * conv.output[0] * conv.output[1];

    // A filter lies in memory as one image of c_group channels does.
    int k, c, r, s;
    gfxpack_image_place(get_group_id(0), c_group, conv.filter, &k, &c, &r, &s);
    const int channel = k / k_group * c_group + c;

    float sum = 0.0f;
    for (uint i = get_local_id(0); i < count; i += WG) {
        const int ox = i % conv.output[1];
        const int oy = i / conv.output[1] % conv.output[0];
        const int n = i / conv.output[1] / conv.output[0];
        const int y = oy * conv.stride[0] - conv.padding[0] + r * conv.dilation[0];
        const int x = ox * conv.stride[1] - conv.padding[1] + s * conv.dilation[1];
        if (y >= 0 && y < conv.input[0] && x >= 0 && x < conv.input[1]) {
            sum += gfxpack_load(input, gfxpack_image_at(n, channel, y, x, conv.channels,
                                                        conv.input)) *
                   gfxpack_load(doutput, gfxpack_image_at(n, k, oy, ox, conv.filters, conv.output));
        }
    }
    sum = gfxpack_group_sum(scratch, sum);
    if (get_local_id(0) == 0) {
        gfxpack_store(dweights, get_group_id(0), sum);
    }
}

#endif
