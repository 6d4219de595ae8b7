// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Casts between fp32 and fp16: y[i] = x[i] rounded to nearest, for i below count.
//
// VEC=1|2|4    elements per work-item
// WG           work-items per group
// WIDEN=0|1    0: fp32 to fp16; 1: fp16 to fp32
//
// ceil(count / VEC) work-items, rounded up to whole groups.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_vector
gp_require_below WIDEN, 2

.set x_bytes, 4 - 2 * WIDEN
.set y_bytes, 2 + 2 * WIDEN

.set s_group, 2
.set s_x, 4
.set s_y, 6
.set s_count, 8
.set s_scratch, 10
.set s_from, 14
.set s_to, 16
.set v_lane, 0
.set v_from, 1
.set v_to, 2
.set v_half, 4
.set v_wide, 8

// Rounds element `at`, and packs every second with the one before.
.macro narrow_one at:req
    v_cvt_f16_f32 v[v_wide + \at], v[v_wide + \at]
    .if \at & 1
        v_and_b32 v[v_wide + \at - 1], 0xffff, v[v_wide + \at - 1]
        v_lshl_or_b32 v[v_half + \at / 2], v[v_wide + \at], 16, v[v_wide + \at - 1]
    .endif
.endm

.macro widen_one at:req
    .if \at & 1
        v_lshrrev_b32 v[v_wide + \at], 16, v[v_half + \at / 2]
        v_cvt_f32_f16 v[v_wide + \at], v[v_wide + \at]
    .else
        v_cvt_f32_f16 v[v_wide + \at], v[v_half + \at / 2]
    .endif
.endm

.macro cast width:req, element:req
    gp_address s_from, s_x, \element, x_bytes
    gp_address s_to, s_y, \element, y_bytes
    v_lshlrev_b32 v[v_from], \width / 2 + x_bytes / 2, v[v_lane]
    v_lshlrev_b32 v[v_to], \width / 2 + y_bytes / 2, v[v_lane]
    .set i, 0
    .if WIDEN
        gp_load 2 * \width, v_half, v_from, s_from
        s_waitcnt vmcnt(0)
        .rept \width
            widen_one i
            .set i, i + 1
        .endr
        gp_store 4 * \width, v_wide, v_to, s_to
    .else
        gp_load 4 * \width, v_wide, v_from, s_from
        s_waitcnt vmcnt(0)
        .rept \width
            narrow_one i
            .set i, i + 1
        .endr
        .if \width == 1
            gp_store 2, v_wide, v_to, s_to
        .else
            gp_store 2 * \width, v_half, v_to, s_to
        .endif
    .endif
.endm

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: cast_f32_f16
    .symbol: cast_f32_f16.kd
    .kernarg_segment_size: 20
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
      - { .name: count, .offset: 16, .size: 4, .value_kind: by_value }
...
.end_amdgpu_metadata
.endm

gp_begin_kernel cast_f32_f16
    s_load_dwordx4 s[s_x:s_y + 1], s[0:1], 0x0
    s_load_dword s[s_count], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    gp_for_elements s_count, s_group, v_lane, s_scratch, cast
gp_end_kernel cast_f32_f16, 20
