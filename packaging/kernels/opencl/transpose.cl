// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Transposition of a batch of matrices of any element type, by way of tiles in local memory.
//
//   -DELEMENT_SIZE=1|2|4|8   -DTILE=<tile's edge>

#if ELEMENT_SIZE == 1
typedef uchar gfxpack_element;
#elif ELEMENT_SIZE == 2
typedef ushort gfxpack_element;
#elif ELEMENT_SIZE == 4
typedef uint gfxpack_element;
#elif ELEMENT_SIZE == 8
typedef ulong gfxpack_element;
#else
#error "ELEMENT_SIZE is 1, 2, 4 or 8 bytes"
#endif

#ifndef TILE
#define TILE 32
#endif
// Rows of a tile that are moved at once: 256 work-items, or one tile where it is smaller.
#define GFXPACK_ROWS (256 / TILE < TILE ? 256 / TILE : TILE)

// y[b][column][row] = x[b][row][column]. Leading dimensions and batch strides are in elements.
// Launched over work-groups [tiles along the columns, tiles along the rows, batch].
kernel __attribute__((reqd_work_group_size(TILE, GFXPACK_ROWS, 1))) void
gfxpack_transpose(const global gfxpack_element *x, global gfxpack_element *y, const uint rows,
                  const uint columns, const uint x_leading, const uint y_leading,
                  const ulong x_batch, const ulong y_batch)
{
    // One column more than needed: a column of the tile then lies in different banks.
    local gfxpack_element tile[TILE][TILE + 1];
    const uint first_row = get_group_id(1) * TILE;
    const uint first_column = get_group_id(0) * TILE;
    const uint across = get_local_id(0);
    x += get_group_id(2) * x_batch;
    y += get_group_id(2) * y_batch;

    for (uint down = get_local_id(1); down < TILE; down += GFXPACK_ROWS) {
        if (first_row + down < rows && first_column + across < columns) {
            tile[down][across] = x[(size_t)(first_row + down) * x_leading + first_column + across];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint down = get_local_id(1); down < TILE; down += GFXPACK_ROWS) {
        if (first_column + down < columns && first_row + across < rows) {
            y[(size_t)(first_column + down) * y_leading + first_row + across] = tile[across][down];
        }
    }
}
