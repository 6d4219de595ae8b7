// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sets dwords to one value: y[i] = value, for i below count.
//
// VEC=1|2|4  dwords per work-item
// WG         work-items per group
//
// ceil(count / VEC) work-items, rounded up to whole groups.

.include "gfxpack_asm.inc"
gp_require_group
gp_require_vector

.set s_group, 2
.set s_y, 4
.set s_count, 6
.set s_value, 7
.set s_scratch, 8
.set s_to, 12
.set v_lane, 0
.set v_offset, 1
.set v_data, 2

.macro fill width:req, element:req
    gp_address s_to, s_y, \element, 4
    v_lshlrev_b32 v[v_offset], \width / 2 + 2, v[v_lane]
    .set i, 0
    .rept \width
        v_mov_b32 v[v_data + i], s[s_value]
        .set i, i + 1
    .endr
    gp_store 4 * \width, v_data, v_offset, s_to
.endm

.macro kernel_metadata vgprs:req, sgprs:req, lanes:req, group:req
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - .name: fill_dwords
    .symbol: fill_dwords.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: \lanes
    .sgpr_count: \sgprs
    .vgpr_count: \vgprs
    .max_flat_workgroup_size: \group
    .reqd_workgroup_size: [ \group, 1, 1 ]
    .args:
      - { .name: output, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: count, .offset: 8, .size: 4, .value_kind: by_value }
      - { .name: value, .offset: 12, .size: 4, .value_kind: by_value }
...
.end_amdgpu_metadata
.endm

gp_begin_kernel fill_dwords
    s_load_dwordx4 s[s_y:s_value], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    gp_for_elements s_count, s_group, v_lane, s_scratch, fill
gp_end_kernel fill_dwords, 16
