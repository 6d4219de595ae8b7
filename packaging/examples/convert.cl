// SPDX-License-Identifier: MIT

// Converts a vector from one type into another. Sums and products of half need an extension;
// reading and writing them does not.
#define float_load(x, i) x[i]
#define float_store(value, y, i) y[i] = (value)
#define half_load(x, i) vload_half(i, x)
#define half_store(value, y, i) vstore_half_rte(value, i, y)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

kernel void convert(const global FROM *x, global TO *y, const uint count)
{
    const size_t i = get_global_id(0);
    if (i < count) {
        PASTE(TO, _store)(PASTE(FROM, _load)(x, i), y, i);
    }
}
