// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Rectified linear units, forward, fp32: y[i] = f(x[i]), for i below count.
// In place where x is y. A NaN becomes 0, as with fmaxf.
//
// VEC=1|2|4     elements per work-item
// WG            work-items per group
// MODE=0|1|2    f(x) = max(x, 0)
//               f(x) = max(x, 0) + parameter * min(x, 0)   (leaky)
//               f(x) = min(max(x, 0), parameter)           (clipped)
//
// ceil(count / VEC) work-items, rounded up to whole groups.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_vector
gp_require_below MODE, 3

.set s_group, 2
.set s_x, 4
.set s_y, 6
.set s_count, 8
.set s_parameter, 9
.set s_scratch, 10
.set s_from, 14
.set s_to, 16
.set v_lane, 0
.set v_offset, 1
.set v_data, 2
.set v_below, 6

.macro relu width:req, element:req
    gp_address s_from, s_x, \element, 4
    gp_address s_to, s_y, \element, 4
    v_lshlrev_b32 v[v_offset], \width / 2 + 2, v[v_lane]
    gp_load 4 * \width, v_data, v_offset, s_from
    s_waitcnt vmcnt(0)
    .set i, 0
    .rept \width
        .if MODE == 1
            v_min_f32 v[v_below], 0, v[v_data + i]
        .endif
        v_max_f32 v[v_data + i], 0, v[v_data + i]
        .if MODE == 1
            v_fma_f32 v[v_data + i], v[v_below], s[s_parameter], v[v_data + i]
        .elseif MODE == 2
            v_min_f32 v[v_data + i], s[s_parameter], v[v_data + i]
        .endif
        .set i, i + 1
    .endr
    gp_store 4 * \width, v_data, v_offset, s_to
.endm

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: relu_forward_f32
    .symbol: relu_forward_f32.kd
    .kernarg_segment_size: 24
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
      - { .name: parameter, .offset: 20, .size: 4, .value_kind: by_value }
...
.end_amdgpu_metadata
.endm

gp_begin_kernel relu_forward_f32
    s_load_dwordx4 s[s_x:s_y + 1], s[0:1], 0x0
    s_load_dwordx2 s[s_count:s_parameter], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    gp_for_elements s_count, s_group, v_lane, s_scratch, relu
gp_end_kernel relu_forward_f32, 24
