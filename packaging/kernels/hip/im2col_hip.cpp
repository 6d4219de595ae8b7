// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Unfolds one image into the matrix whose product with the weights is the
// convolution, and folds such a matrix back.
//
// -DDATA_TYPE=0|1|2  fp32, fp16, bf16
// -DLAYOUT=0|1       of the image: NCHW, NHWC
// The matrix has a line per (channel, filter row, filter column) and a column
// per output pixel. Any grid of blocks of WG threads.

#include "gfxpack_hip_conv.hpp"
#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

// One thread per element of the matrix. `image` picks one of the batch.
extern "C" __global__ void __launch_bounds__(WG)
    im2col(const element* images, element* matrix, ConvShape s, int image) {
    const Images in = input_of(s);
    const size_t pixels = static_cast<size_t>(s.out_height) * s.out_width;
    const size_t taps = static_cast<size_t>(s.filter_height) * s.filter_width;
    const size_t total = in.channels * taps * pixels;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const int pixel = static_cast<int>(i % pixels);
        const int tap = static_cast<int>(i / pixels % taps);
        const int channel = static_cast<int>(i / pixels / taps);
        const int row = input_index(pixel / s.out_width, tap / s.filter_width, s.stride_height,
                                    s.pad_height, s.dilation_height);
        const int column = input_index(pixel % s.out_width, tap % s.filter_width, s.stride_width,
                                       s.pad_width, s.dilation_width);
        const bool real = inside(row, in.height) && inside(column, in.width);
        matrix[i] = real ? images[in.offset(image, channel, row, column)] : to_element(0.0f);
    }
}

// One thread per pixel and channel of the image, which sums all elements of
// the matrix that came from it.
extern "C" __global__ void __launch_bounds__(WG)
    col2im(const element* matrix, element* images, ConvShape s, int image) {
    const Images in = input_of(s);
    const size_t pixels = static_cast<size_t>(s.out_height) * s.out_width;
    const size_t total = static_cast<size_t>(in.channels) * in.height * in.width;
    for (size_t i = global_thread(); i < total; i += global_threads()) {
        const Images::Position to = in.position(i);
        float sum = 0.0f;
        for (int r = 0; r < s.filter_height; ++r) {
            const int row = output_index(to.row, r, s.stride_height, s.pad_height,
                                         s.dilation_height, s.out_height);
            for (int q = 0; row >= 0 && q < s.filter_width; ++q) {
                const int column = output_index(to.column, q, s.stride_width, s.pad_width,
                                                s.dilation_width, s.out_width);
                if (column >= 0) {
                    const size_t line =
                        (static_cast<size_t>(to.channel) * s.filter_height + r) * s.filter_width + q;
                    const size_t pixel = static_cast<size_t>(row) * s.out_width + column;
                    sum += to_float(matrix[line * pixels + pixel]);
                }
            }
        }
        images[in.offset(image, to.channel, to.row, to.column)] = to_element(sum);
    }
}
