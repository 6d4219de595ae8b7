// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Images moved from one memory layout to another, channels padded with zeros where the
// destination has more.
//
//   -DCONVERSION=<number below>   -DELEMENT_SIZE=1|2|4   -DBLOCK=<channels per block>
//
// The blocked layout is [N, ceil(C / BLOCK), H, W, BLOCK].

#define GFXPACK_NCHW_TO_NHWC 0
#define GFXPACK_NHWC_TO_NCHW 1
#define GFXPACK_NCHW_TO_BLOCKED 2
#define GFXPACK_BLOCKED_TO_NCHW 3

#if !defined(CONVERSION) || CONVERSION < 0 || CONVERSION > 3
#error "CONVERSION is one of the numbers above"
#endif

#if ELEMENT_SIZE == 1
typedef uchar gfxpack_element;
#elif ELEMENT_SIZE == 2
typedef ushort gfxpack_element;
#elif ELEMENT_SIZE == 4
typedef uint gfxpack_element;
#else
#error "ELEMENT_SIZE is 1, 2 or 4 bytes"
#endif

#if CONVERSION == GFXPACK_NCHW_TO_NHWC || CONVERSION == GFXPACK_NHWC_TO_NCHW

#define GFXPACK_TILE 16

// `channels` is what NCHW has, `padded` (at least as many) what NHWC has. Both layouts are
// contiguous along one of channel and place, so tiles go through local memory.
// Launched over work-groups [tiles along H * W, tiles along the padded channels, N].
kernel __attribute__((reqd_work_group_size(GFXPACK_TILE, GFXPACK_TILE, 1))) void
gfxpack_layout(const global gfxpack_element *x, global gfxpack_element *y, const uint channels,
               const uint padded, const uint places)
{
    // One column more than needed: a column of the tile then lies in different banks.
    local gfxpack_element tile[GFXPACK_TILE][GFXPACK_TILE + 1];
    const uint n = get_group_id(2);
    const uint across = get_local_id(0);
    const uint down = get_local_id(1);
    const uint first_place = get_group_id(0) * GFXPACK_TILE;
    const uint first_channel = get_group_id(1) * GFXPACK_TILE;

#if CONVERSION == GFXPACK_NCHW_TO_NHWC
    const uint from_channel = first_channel + down;
    const uint from_place = first_place + across;
    gfxpack_element value = 0;
    if (from_channel < channels && from_place < places) {
        value = x[((size_t)n * channels + from_channel) * places + from_place];
    }
    tile[down][across] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint to_channel = first_channel + across;
    const uint to_place = first_place + down;
    if (to_channel < padded && to_place < places) {
        y[((size_t)n * places + to_place) * padded + to_channel] = tile[across][down];
    }
#else
    const uint from_channel = first_channel + across;
    const uint from_place = first_place + down;
    if (from_channel < channels && from_place < places) {
        tile[down][across] = x[((size_t)n * places + from_place) * padded + from_channel];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint to_channel = first_channel + down;
    const uint to_place = first_place + across;
    if (to_channel < channels && to_place < places) {
        y[((size_t)n * channels + to_channel) * places + to_place] = tile[across][down];
    }
#endif
}

#else

#if !defined(BLOCK) || BLOCK < 2
#error "BLOCK is the number of channels that lie together"
#endif

// A work-item moves one block of channels of one place: on the blocked side that is contiguous, on
// the other its neighbours move the neighbouring places.
// Launched over [H * W, blocks, N].
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
gfxpack_layout(const global gfxpack_element *x, global gfxpack_element *y, const uint channels,
               const uint places)
{
    const uint place = get_global_id(0);
    const uint block = get_global_id(1);
    const uint n = get_global_id(2);
    if (place >= places) {
        return;
    }
    const size_t blocked = (((size_t)n * get_global_size(1) + block) * places + place) * BLOCK;
    const size_t plain = ((size_t)n * channels + (size_t)block * BLOCK) * places + place;

#pragma unroll
    for (uint i = 0; i < BLOCK; ++i) {
        const bool present = block * BLOCK + i < channels;
#if CONVERSION == GFXPACK_NCHW_TO_BLOCKED
        gfxpack_element value = 0;
        if (present) {
            value = x[plain + (size_t)i * places];
        }
        y[blocked + i] = value;
#else
        if (present) {
            y[plain + (size_t)i * places] = x[blocked + i];
        }
#endif
    }
}

#endif
