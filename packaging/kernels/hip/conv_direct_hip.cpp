// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Direct two-dimensional convolution without workspace, for shapes that no
// faster algorithm takes: any stride, padding, dilation and group count.
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16
// -DLAYOUT=0|1       NCHW, NHWC
// -DDIRECTION=0|1|2  forward, backward data, backward weights
// Blocks have WG threads.

#include "gfxpack_hip_conv.hpp"
#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_reduce.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef DIRECTION
#error "DIRECTION must be defined: 0 = forward, 1 = backward data, 2 = backward weights"
#endif
#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

#if DIRECTION == 0

// One thread per element of the output; any grid.
extern "C" __global__ void __launch_bounds__(WG)
    conv_direct_forward(const element* x, const element* w, element* y, ConvShape s) {
    const Images in = input_of(s), out = output_of(s), filter = weights_of(s);
    const int group_outputs = s.out_channels / s.groups;
    const size_t total = static_cast<size_t>(s.batch) * out.channels * out.height * out.width;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const Images::Position to = out.position(i);
        const int first = to.channel / group_outputs * filter.channels;
        float sum = 0.0f;
        for (int c = 0; c < filter.channels; ++c) {
            for (int r = 0; r < filter.height; ++r) {
                const int row =
                    input_index(to.row, r, s.stride_height, s.pad_height, s.dilation_height);
                if (!inside(row, in.height)) {
                    continue;
                }
                for (int q = 0; q < filter.width; ++q) {
                    const int column =
                        input_index(to.column, q, s.stride_width, s.pad_width, s.dilation_width);
                    if (inside(column, in.width)) {
                        sum += to_float(x[in.offset(to.image, first + c, row, column)]) *
                               to_float(w[filter.offset(to.channel, c, r, q)]);
                    }
                }
            }
        }
        y[i] = to_element(sum);
    }
}

#elif DIRECTION == 1

// One thread per element of the input's gradient, which gathers: no atomics,
// so the sum's order is fixed. Any grid.
extern "C" __global__ void __launch_bounds__(WG)
    conv_direct_backward_data(const element* dy, const element* w, element* dx, ConvShape s) {
    const Images in = input_of(s), out = output_of(s), filter = weights_of(s);
    const int group_outputs = s.out_channels / s.groups;
    const size_t total = static_cast<size_t>(s.batch) * in.channels * in.height * in.width;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const Images::Position to = in.position(i);
        const int first = to.channel / filter.channels * group_outputs;
        const int c = to.channel % filter.channels;
        float sum = 0.0f;
        for (int k = first; k < first + group_outputs; ++k) {
            for (int r = 0; r < filter.height; ++r) {
                const int row = output_index(to.row, r, s.stride_height, s.pad_height,
                                             s.dilation_height, out.height);
                if (row < 0) {
                    continue;
                }
                for (int q = 0; q < filter.width; ++q) {
                    const int column = output_index(to.column, q, s.stride_width, s.pad_width,
                                                    s.dilation_width, out.width);
                    if (column >= 0) {
                        sum += to_float(dy[out.offset(to.image, k, row, column)]) *
                               to_float(w[filter.offset(k, c, r, q)]);
                    }
                }
            }
        }
        dx[i] = to_element(sum);
    }
}

#elif DIRECTION == 2

// One block per element of the weights' gradient: its threads share the
// positions of the output. The grid has exactly that many blocks.
extern "C" __global__ void __launch_bounds__(WG)
    conv_direct_backward_weights(const element* x, const element* dy, element* dw, ConvShape s) {
    __shared__ float slots[reduce_slots];
    const Images in = input_of(s), out = output_of(s), filter = weights_of(s);
    const Images::Position tap = filter.position(blockIdx.x);
    const int k = tap.image;
    const int channel = k / (s.out_channels / s.groups) * filter.channels + tap.channel;
    const size_t plane = static_cast<size_t>(out.height) * out.width;
    float sum = 0.0f;
    for (size_t i = threadIdx.x; i < s.batch * plane; i += WG) {
        const int image = static_cast<int>(i / plane);
        const int out_row = static_cast<int>(i % plane) / out.width;
        const int out_column = static_cast<int>(i % plane) % out.width;
        const int row =
            input_index(out_row, tap.row, s.stride_height, s.pad_height, s.dilation_height);
        const int column =
            input_index(out_column, tap.column, s.stride_width, s.pad_width, s.dilation_width);
        if (inside(row, in.height) && inside(column, in.width)) {
            sum += to_float(x[in.offset(image, channel, row, column)]) *
                   to_float(dy[out.offset(image, k, out_row, out_column)]);
        }
    }
    sum = block_reduce<Sum>(sum, slots);
    if (threadIdx.x == 0) {
        dw[blockIdx.x] = to_element(sum);
    }
}

#else
#error "DIRECTION must be 0 (forward), 1 (backward data) or 2 (backward weights)"
#endif
