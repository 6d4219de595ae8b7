// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rows of a table by number, and the gradient of the table.
//
// -DDATA_TYPE=0|1|2  of the rows: fp32, fp16, bf16; the table's gradient is fp32
// One block of WG threads per number. Numbers outside the table give zeros and
// no gradient.

#include "gfxpack_hip_types.hpp"

#ifndef WG
#define WG 256
#endif

using namespace gfxpack;

extern "C" __global__ void __launch_bounds__(WG)
    embedding_forward(const element* table, const long long* numbers, element* rows,
                      long long table_rows, int width) {
    const long long number = numbers[blockIdx.x];
    const bool known = number >= 0 && number < table_rows;
    const size_t to = static_cast<size_t>(blockIdx.x) * width;
    for (int i = threadIdx.x; i < width; i += WG) {
        rows[to + i] = known ? table[static_cast<size_t>(number) * width + i] : to_element(0.0f);
    }
}

// Adds to `gradient`, which the caller has cleared. Rows with number `padding`
// add nothing; -1 for none. The order of equal numbers' sums is not fixed.
extern "C" __global__ void __launch_bounds__(WG)
    embedding_backward(const element* row_gradients, const long long* numbers, float* gradient,
                       long long table_rows, int width, long long padding) {
    const long long number = numbers[blockIdx.x];
    if (number < 0 || number >= table_rows || number == padding) {
        return;
    }
    const size_t from = static_cast<size_t>(blockIdx.x) * width;
    for (int i = threadIdx.x; i < width; i += WG) {
        atomicAdd(&gradient[static_cast<size_t>(number) * width + i],
                  to_float(row_gradients[from + i]));
    }
}
