// SPDX-License-Identifier: MIT

// Multiplies every element of a vector.
kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void
scale(global float *y, const float factor)
{
    y[get_global_id(0)] *= factor;
}
