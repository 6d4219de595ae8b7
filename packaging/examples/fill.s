// SPDX-License-Identifier: MIT

// y[i] = value, for i below count, in groups of WG work-items. The arguments' address is in s[0:1],
// the group in s2, the work-item in v0.
.set generation, .amdgcn.gfx_generation_number
.set accumulates, generation == 9 && ((.amdgcn.gfx_generation_minor == 0 && .amdgcn.gfx_generation_stepping == 10) || .amdgcn.gfx_generation_minor >= 4)

.text
.globl fill
.p2align 8
.type fill, @function
fill:
    s_load_dwordx4 s[4:7], s[0:1], 0x0  // y, count, value
    v_and_b32 v0, 0x3ff, v0             // above are other dimensions, from gfx90a on
    s_mul_i32 s2, s2, WG
    v_add3_u32 v0, v0, s2, 0
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v2, s7
.if generation == 9
    v_cmpx_gt_u32 vcc, s6, v0
.else
    v_cmpx_gt_u32 s6, v0
.endif
    global_store_dword v1, v2, s[4:5]
    s_endpgm
.size fill, . - fill

.macro describe lanes, group, line:vararg
.section .rodata, "a", @progbits
.p2align 6
.amdhsa_kernel fill
    .amdhsa_kernarg_size 16
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 8
    \line
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [ 1, 1 ]
amdhsa.kernels:
  - { .name: fill, .symbol: fill.kd, .kernarg_segment_size: 16, .kernarg_segment_align: 8,
      .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: \lanes,
      .sgpr_count: 14, .vgpr_count: 4, .max_flat_workgroup_size: \group }
...
.end_amdgpu_metadata
.endm
.altmacro
.if accumulates
    describe 64, %WG, .amdhsa_accum_offset 4
.elseif generation == 9
    describe 64, %WG
.else
    describe 32, %WG
.endif
