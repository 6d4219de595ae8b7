// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Copies dwords: y[i] = x[i], for i below count. The buffers may be the same,
// but not overlap otherwise.
//
// VEC=1|2|4  dwords per work-item
// WG         work-items per group
//
// ceil(count / VEC) work-items, rounded up to whole groups.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_vector

.set s_group, 2
.set s_x, 4
.set s_y, 6
.set s_count, 8
.set s_scratch, 10
.set s_from, 14
.set s_to, 16
.set v_lane, 0
.set v_offset, 1
.set v_data, 2

.macro copy width:req, element:req
    gp_address s_from, s_x, \element, 4
    gp_address s_to, s_y, \element, 4
    v_lshlrev_b32 v[v_offset], \width / 2 + 2, v[v_lane]
    gp_load 4 * \width, v_data, v_offset, s_from
    s_waitcnt vmcnt(0)
    gp_store 4 * \width, v_data, v_offset, s_to
.endm

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: copy_dwords
    .symbol: copy_dwords.kd
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

gp_begin_kernel copy_dwords
    s_load_dwordx4 s[s_x:s_y + 1], s[0:1], 0x0
    s_load_dword s[s_count], s[0:1], 0x10
    s_waitcnt lgkmcnt(0)
    gp_for_elements s_count, s_group, v_lane, s_scratch, copy
gp_end_kernel copy_dwords, 20
