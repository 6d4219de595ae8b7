// SPDX-License-Identifier: MIT

#include "element.h"

// y[column][row] = x[row][column], by way of tiles in local memory.
kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1))) void
transpose(const global element *x, global element *y, const uint rows, const uint columns)
{
    // One column more than needed: a column of the tile then lies in different banks.
    local element tile[TILE][TILE + 1];
    const uint row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    const uint across = get_local_id(0);

    for (uint down = get_local_id(1); down < TILE; down += ROWS) {
        if (row + down < rows && column + across < columns) {
            tile[down][across] = x[(size_t)(row + down) * columns + column + across];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint down = get_local_id(1); down < TILE; down += ROWS) {
        if (column + down < columns && row + across < rows) {
            y[(size_t)(column + down) * rows + row + across] = tile[across][down];
        }
    }
}
