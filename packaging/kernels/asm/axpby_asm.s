// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Scales and adds fp32 vectors: y[i] = alpha * x[i] + beta * y[i], for i below
// count. The product with alpha is not rounded before the sum.
//
// VEC=1|2|4  elements per work-item
// WG         work-items per group
// BETA=0|1   0: y = alpha * x, y is not read and the argument beta not used
//
// ceil(count / VEC) work-items, rounded up to whole groups.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_vector
gp_require_below BETA, 2

.set s_group, 2
.set s_x, 4
.set s_y, 6
.set s_count, 8
.set s_alpha, 9
.set s_beta, 10
.set s_scratch, 12
.set s_from, 16
.set s_to, 18
.set v_lane, 0
.set v_offset, 1
.set v_x, 2
.set v_y, 6

.macro axpby width:req, element:req
    gp_address s_from, s_x, \element, 4
    gp_address s_to, s_y, \element, 4
    v_lshlrev_b32 v[v_offset], \width / 2 + 2, v[v_lane]
    gp_load 4 * \width, v_x, v_offset, s_from
    .if BETA
        gp_load 4 * \width, v_y, v_offset, s_to
    .endif
    s_waitcnt vmcnt(0)
    .set i, 0
    .rept \width
        .if BETA
            v_mul_f32 v[v_y + i], s[s_beta], v[v_y + i]
            v_fma_f32 v[v_x + i], v[v_x + i], s[s_alpha], v[v_y + i]
        .else
            v_mul_f32 v[v_x + i], s[s_alpha], v[v_x + i]
        .endif
        .set i, i + 1
    .endr
    gp_store 4 * \width, v_x, v_offset, s_to
.endm

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: axpby_f32
    .symbol: axpby_f32.kd
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
      - { .name: count, .offset: 16, .size: 4, .value_kind: by_value }
      - { .name: alpha, .offset: 20, .size: 4, .value_kind: by_value }
      - { .name: beta, .offset: 24, .size: 4, .value_kind: by_value }
...
.end_amdgpu_metadata
.endm

gp_begin_kernel axpby_f32
    s_load_dwordx4 s[s_x:s_y + 1], s[0:1], 0x0
    s_load_dwordx2 s[s_count:s_alpha], s[0:1], 0x10
    s_load_dword s[s_beta], s[0:1], 0x18
    s_waitcnt lgkmcnt(0)
    gp_for_elements s_count, s_group, v_lane, s_scratch, axpby
gp_end_kernel axpby_f32, 28
