// What the sources that rocFFT generates want beyond the words that the
// built-in library's kernels know.
#pragma once

#include <stdint.h>

#include "../../../hip/shim/hip/hip_runtime.h"

#define __host__
#define __forceinline__ inline
// Work-group memory whose size the launch decides is one array of the
// program's (`lds_uchar`); the other kind, a static variable, is renamed to
// this word.
#undef __shared__
#define __shared__
#define gfxpack_static_shared static

inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
