// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The shape of a two-dimensional convolution, and where its tensors' elements
// lie in the layout chosen by -DLAYOUT: 0 = NCHW (weights KCYX), 1 = NHWC
// (weights KYXC).
#pragma once

#include <hip/hip_runtime.h>

#ifndef LAYOUT
#error "LAYOUT must be defined: 0 = NCHW, 1 = NHWC"
#elif LAYOUT < 0 || LAYOUT > 1
#error "LAYOUT must be 0 (NCHW) or 1 (NHWC)"
#endif

namespace gfxpack {

// By value in the kernel arguments: sixteen 32-bit integers in this order.
// Channels count over all groups.
struct ConvShape {
    int batch, in_channels, in_height, in_width;
    int out_channels, out_height, out_width;
    int filter_height, filter_width;
    int stride_height, stride_width;
    int pad_height, pad_width;
    int dilation_height, dilation_width;
    int groups;
};

// A packed tensor of images: batch x channels x height x width in meaning,
// whatever the layout.
struct Images {
    int channels, height, width;

    struct Position {
        int image, channel, row, column;
    };

    __device__ size_t offset(int image, int channel, int row, int column) const {
        const size_t n = image, c = channel, h = row, w = column;
#if LAYOUT == 0
        return ((n * channels + c) * height + h) * width + w;
#else
        return ((n * height + h) * width + w) * channels + c;
#endif
    }

    __device__ Position position(size_t offset) const {
        Position at;
#if LAYOUT == 0
        at.column = static_cast<int>(offset % width);
        at.row = static_cast<int>(offset / width % height);
        at.channel = static_cast<int>(offset / width / height % channels);
#else
        at.channel = static_cast<int>(offset % channels);
        at.column = static_cast<int>(offset / channels % width);
        at.row = static_cast<int>(offset / channels / width % height);
#endif
        at.image = static_cast<int>(offset / channels / height / width);
        return at;
    }
};

__device__ inline Images input_of(const ConvShape& shape) {
    return Images{shape.in_channels, shape.in_height, shape.in_width};
}

__device__ inline Images output_of(const ConvShape& shape) {
    return Images{shape.out_channels, shape.out_height, shape.out_width};
}

// The weights, seen as one image of in_channels / groups channels per output channel.
__device__ inline Images weights_of(const ConvShape& shape) {
    return Images{shape.in_channels / shape.groups, shape.filter_height, shape.filter_width};
}

// The row (or column) of the input that a filter tap meets; may lie in the padding.
__device__ inline int input_index(int out, int tap, int stride, int pad, int dilation) {
    return out * stride - pad + tap * dilation;
}

// The row (or column) of the output whose filter tap meets `in`; -1 where there is none.
__device__ inline int output_index(int in, int tap, int stride, int pad, int dilation, int size) {
    const int shifted = in + pad - tap * dilation;
    if (shifted < 0 || shifted % stride != 0) {
        return -1;
    }
    const int out = shifted / stride;
    return out < size ? out : -1;
}

__device__ inline bool inside(int index, int size) { return index >= 0 && index < size; }

}  // namespace gfxpack
