// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reduces the rows of a packed fp32 matrix, one wave per row:
// y[row] = scale * (x[row][0] op x[row][1] op ...).
//
// OP=0|1|2|3  sum, maximum, minimum, sum of squares
// WG          work-items per group: WG / 64 rows per group on gfx9, WG / 32 after
//
// Within a wave the lanes combine by DPP row shifts, four rows of 16 lanes
// (two on gfx10 and later) by way of scalar registers.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_below OP, 4

.set s_group, 2
.set s_x, 4
.set s_y, 6
.set s_rows, 8
.set s_columns, 9
.set s_scale, 10
.set s_row, 11
.set s_from, 12
.set s_to, 14
.set s_saved, 16
.set s_step, 18
.set s_lane_row, 20
.set v_lane, 0
.set v_wave, 1
.set v_offset, 2
.set v_value, 3
.set v_result, 4

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: row_reduce_f32
    .symbol: row_reduce_f32.kd
    .kernarg_segment_size: 28
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: \lanes
    .sgpr_count: \sgprs
    .vgpr_count: \vgprs
    .max_flat_workgroup_size: \group
    .reqd_workgroup_size: [ \group, 1, 1 ]
    .args:
      - { .name: input, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: output, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: rows, .offset: 16, .size: 4, .value_kind: by_value }
      - { .name: columns, .offset: 20, .size: 4, .value_kind: by_value }
      - { .name: scale, .offset: 24, .size: 4, .value_kind: by_value }
...
.end_amdgpu_metadata
.endm

// v[result] = v[result] op s or v.
.macro combine with:vararg
    .if OP == 1
        v_max_f32 v[v_result], \with
    .elseif OP == 2
        v_min_f32 v[v_result], \with
    .else
        v_add_f32 v[v_result], \with
    .endif
.endm

// Each lane takes the lane `distance` below within its row of 16; lanes that
// have none keep their value, since without bound_ctrl they are not written.
.macro take_from_below distance:req
    // Two wait states between a vector write and a DPP read of it.
    s_nop 1
    .if OP == 1
        v_max_f32_dpp v[v_result], v[v_result], v[v_result] row_shr:\distance row_mask:0xf bank_mask:0xf
    .elseif OP == 2
        v_min_f32_dpp v[v_result], v[v_result], v[v_result] row_shr:\distance row_mask:0xf bank_mask:0xf
    .else
        v_add_f32_dpp v[v_result], v[v_result], v[v_result] row_shr:\distance row_mask:0xf bank_mask:0xf
    .endif
.endm

gp_begin_kernel row_reduce_f32
    s_load_dwordx4 s[s_x:s_y + 1], s[0:1], 0x0
    s_load_dwordx2 s[s_rows:s_columns], s[0:1], 0x10
    s_load_dword s[s_scale], s[0:1], 0x18
    // The wave's number in the group is the same in all its lanes.
    v_lshrrev_b32 v[v_wave], gp_wave_log2, v[v_lane]
    s_nop 1
    v_readfirstlane_b32 s[s_row], v[v_wave]
    v_and_b32 v[v_lane], gp_wave - 1, v[v_lane]
    v_lshlrev_b32 v[v_offset], 2, v[v_lane]
    s_mul_i32 s[s_group], s[s_group], WG / gp_wave
    s_add_u32 s[s_row], s[s_row], s[s_group]
    .if OP == 1
        v_mov_b32 v[v_result], 0xff800000
    .elseif OP == 2
        v_mov_b32 v[v_result], 0x7f800000
    .else
        v_mov_b32 v[v_result], 0
    .endif
    s_waitcnt lgkmcnt(0)
    s_cmp_ge_u32 s[s_row], s[s_rows]
    s_cbranch_scc1 .Ldone
    gp_address s_to, s_y, s_row, 4

    // The row starts row * columns elements into x: a product of 64 bits.
    s_mul_hi_u32 s[s_from + 1], s[s_row], s[s_columns]
    s_mul_i32 s[s_from], s[s_row], s[s_columns]
    s_lshl_b64 s[s_from:s_from + 1], s[s_from:s_from + 1], 2
    s_add_u32 s[s_from], s[s_from], s[s_x]
    s_addc_u32 s[s_from + 1], s[s_from + 1], s[s_x + 1]

.Lnext_columns:
    s_cmp_eq_u32 s[s_columns], 0
    s_cbranch_scc1 .Lrow_read
    gp_lanes_below s_columns, v_lane, s_saved
    gp_load 4, v_value, v_offset, s_from
    s_waitcnt vmcnt(0)
    .if OP == 3
        v_fma_f32 v[v_result], v[v_value], v[v_value], v[v_result]
    .else
        combine v[v_value], v[v_result]
    .endif
    gp_lanes_restore s_saved
    s_add_u32 s[s_from], s[s_from], gp_wave * 4
    s_addc_u32 s[s_from + 1], s[s_from + 1], 0
    s_min_u32 s[s_step], s[s_columns], gp_wave
    s_sub_u32 s[s_columns], s[s_columns], s[s_step]
    s_branch .Lnext_columns

.Lrow_read:
    take_from_below 1
    take_from_below 2
    take_from_below 4
    take_from_below 8
    // Now the last lane of each row of 16 has the row's result.
    s_nop 1
    .set row, 0
    .rept gp_wave / 16
        v_readlane_b32 s[s_lane_row + row], v[v_result], row * 16 + 15
        .set row, row + 1
    .endr
    s_nop 1
    v_mov_b32 v[v_result], s[s_lane_row]
    .set row, 1
    .rept gp_wave / 16 - 1
        combine s[s_lane_row + row], v[v_result]
        .set row, row + 1
    .endr
    v_mul_f32 v[v_result], s[s_scale], v[v_result]
    gp_lanes_first_only
    // Lane 0's offset is 0.
    gp_store 4, v_result, v_offset, s_to
.Ldone:
gp_end_kernel row_reduce_f32, 28
