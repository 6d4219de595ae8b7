// Stores fp32 values, given as bits, as the element type and gives its bits:
// the conversions of gfxpack_hip_types.hpp by themselves.

#include "gfxpack_hip_index.hpp"
#include "gfxpack_hip_types.hpp"

extern "C" __global__ void store_bits(const unsigned* values, unsigned short* bits, int count) {
    static_assert(sizeof(gfxpack::element) == sizeof *bits, "DATA_TYPE is 1 or 2");
    for (size_t i = gfxpack::global_thread(); i < static_cast<size_t>(count);
         i += gfxpack::global_threads()) {
        float value;
        memcpy(&value, &values[i], sizeof value);
        const gfxpack::element stored = gfxpack::to_element(value);
        memcpy(&bits[i], &stored, sizeof stored);
    }
}
