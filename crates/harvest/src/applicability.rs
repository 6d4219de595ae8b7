//! Kernels that MIOpen never looks up on some GPUs: its solvers check the
//! device's name before anything else.
//!
//! Only conditions that hold in every environment are listed, and they are wide
//! enough for the releases since 2.10. A kernel that is kept needlessly is
//! rejected by its compiler or never looked up, but one that is left out would
//! be missing.

/// Kernels for only some processors.
struct Rule {
    /// Prefixes of the sources' names.
    sources: &'static [&'static str],
    /// Prefixes of the names of the processors that have the kernels.
    processors: &'static [&'static str],
}

/// Source: ROCm/MIOpen 2d1fd997a (3.3.0), `IsApplicable` of the solvers below
/// `src/solver`, in the files named here.
const RULES: [Rule; 12] = [
    // conv/conv_asm_1x1u.cpp, conv_asm_1x1u_stride2.cpp, conv_asm_dir_BwdWrW1x1.cpp,
    // conv_asm_dir_BwdWrW3x3.cpp, conv_asm_3x3u.cpp, conv_asm_5x10u2v2*.cpp,
    // conv_asm_7x7c3h224w224k64u2v2p3q3f1.cpp, conv_multipass_wino3x3WrW.cpp,
    // conv_asm_1x1u_bias_activ_fused.cpp, batchnorm/backward_spatial_*.cpp.
    Rule {
        sources: &[
            "conv1x1u",
            "conv1x1wrw.s",
            "conv3x3.s",
            "conv3x3wrw.s",
            "conv5x10u2v2",
            "conv7x7c3h224w224k64u2v2p3q3f1.s",
            "gcnAsmBNBwdTrainSpatial.s",
            "xform_",
        ],
        processors: &["gfx8", "gfx9"],
    },
    // conv/conv_bin_wino3x3U.cpp, conv_bin_winoRxS.cpp, conv_bin_winoRxS_fused.cpp.
    Rule {
        sources: &["conv_3x3_wheel_alpha_"],
        processors: &["gfx8", "gfx900", "gfx906", "gfx908"],
    },
    Rule {
        sources: &["Conv_Winograd_v13_3_12_fp16dot_", "Conv_Winograd_v14_3_3_fp16dot_"],
        processors: &["gfx906", "gfx908"],
    },
    Rule {
        sources: &["Conv_Winograd_v16_5_0_stride1.s"],
        processors: &["gfx900", "gfx906", "gfx908"],
    },
    // conv/conv_winoRxS.cpp, conv_winoRxS_fused.cpp.
    Rule {
        sources: &["Conv_Winograd_v21_1_3_", "Conv_Winograd_v30_3_1_"],
        processors: &["gfx9", "gfx10", "gfx11"],
    },
    // conv/conv_asm_implicit_gemm_v4r1_dynamic.cpp, conv_asm_implicit_gemm_bwd_v4r1_dynamic.cpp,
    // conv_asm_implicit_gemm_wrw_v4r1_dynamic.cpp.
    Rule {
        sources: &["igemm_v4r1_", "igemm_bwd_gtc_dynamic.s", "wrw_reduction_hip.cpp"],
        processors: &["gfx900", "gfx906"],
    },
    // conv/conv_asm_implicit_gemm_gtc_*.cpp; the names of the kernels show the
    // processor.
    Rule {
        sources: &["igemm_fwd_gtcx_", "igemm_bwd_gtcx_", "igemm_wrw_gtcx_"],
        processors: &["gfx908"],
    },
    Rule {
        sources: &["igemm_fwd_gtcx2_", "igemm_bwd_gtcx2_", "igemm_wrw_gtcx2_"],
        processors: &["gfx90a"],
    },
    Rule {
        sources: &["igemm_fwd_gtcx3_", "igemm_bwd_gtcx3_", "igemm_wrw_gtcx3_"],
        processors: &["gfx94", "gfx95"],
    },
    Rule { sources: &["igemm_fwd_gtcn2_"], processors: &["gfx103"] },
    // conv/conv_hip_implicit_gemm_*.cpp by `IsComposableKernelSupportedHardware`.
    Rule {
        sources: &["static_kernel_gridwise_convolution_"],
        processors: &["gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx94", "gfx103"],
    },
    // conv/conv_wino_fury_RxS.cpp.
    Rule { sources: &["Conv_Winograd_Fury_"], processors: &["gfx11", "gfx12"] },
];

/// Whether MIOpen may look up a kernel of this source on a processor such as
/// `gfx1030`. True for sources without a rule.
#[must_use]
pub fn may_ask_for(source: &str, processor: &str) -> bool {
    // MIOpen treats these as gfx803 and gfx900.
    let processor = match processor {
        "gfx800" | "gfx802" | "gfx804" => "gfx803",
        "gfx901" => "gfx900",
        other => other,
    };
    RULES
        .iter()
        .filter(|rule| rule.sources.iter().any(|begin| source.starts_with(begin)))
        .all(|rule| rule.processors.iter().any(|begin| processor.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, has: &[&str], has_not: &[&str]) {
        for processor in has {
            assert!(may_ask_for(source, processor), "{source} {processor}");
        }
        for processor in has_not {
            assert!(!may_ask_for(source, processor), "{source} {processor}");
        }
    }

    #[test]
    fn a_kernel_is_looked_up_only_on_processors_of_its_solvers() {
        check("conv1x1u.s", &["gfx803", "gfx906", "gfx90a", "gfx942"], &["gfx1030", "gfx1100"]);
        check("igemm_fwd_gtcx_nhwc_fp16_bx0.s", &["gfx908"], &["gfx90a", "gfx906", "gfx942"]);
        check("igemm_fwd_gtcx2_nhwc_fp16_bx0.s", &["gfx90a"], &["gfx908", "gfx942"]);
        check("igemm_v4r1_dynamic.s", &["gfx900", "gfx901", "gfx906"], &["gfx904", "gfx908"]);
        let static_kernel =
            "static_kernel_gridwise_convolution_implicit_gemm_v4r4_nchw_kcyx_nkhw.cpp";
        check(static_kernel, &["gfx802", "gfx906", "gfx1030", "gfx942"], &["gfx1010", "gfx1100"]);
    }

    #[test]
    fn a_source_without_a_rule_is_for_all_processors() {
        check("MIOpenConvDirUni.cl", &["gfx803", "gfx906", "gfx1030", "gfx1201"], &[]);
        check("conv1x1.s", &["gfx1030"], &[]);
    }
}
