//! The options that a key may carry: one table of names, each with the form of its value. Any other
//! option could write files, read files that no digest covers, or change the kind of output.

use gfxpack_model::relative_path;

/// Options with the same form.
struct Row {
    /// The arguments before the option, for options of several arguments.
    after: &'static [&'static str],
    names: &'static [&'static str],
    form: Form,
}

/// The rest of an option's argument after its name.
#[derive(Clone, Copy)]
enum Form {
    /// Nothing.
    Alone,
    /// Nothing; the name may also be negated with `no-`: `-fno-`, `-mno-`.
    Switch,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Decimal digits.
    Number,
    /// Letters, digits and `+-._:#`: a name that is no path.
    Name,
    /// Nothing, or `=` and a name.
    Setting,
    /// A macro's name, and its value or parameters if it has any.
    Macro,
    /// A symbol's name, `=`, and a value without a comma, after which the assembler would expect
    /// another option.
    Symbol,
    /// A directory below that of the staged source.
    Directory,
    /// `+` or `-`, and a name.
    Feature,
    /// Features separated by commas.
    Features,
}

const fn row(names: &'static [&'static str], form: Form) -> Row {
    Row { after: &[], names, form }
}

/// The table. Files of MIOpen are those of ROCm/MIOpen 2d1fd997a unless another commit is named.
/// The most frequent options come first.
const OPTIONS: &[Row] = &[
    // Source: ROCm/MIOpen, kernel_build_params.cpp, `kbp::OpenCL::Generate`,
    // `kbp::HIP::Generate`.
    row(&["-D", "-U"], Form::Macro),
    // Source: ROCm/MIOpen, kernel_build_params.cpp, `kbp::GcnAsm::Generate`;
    // gcn_asm_utils.cpp, `GenerateClangDefsym`.
    row(&["-Wa,-defsym,", "-Wa,--defsym,"], Form::Symbol),
    // Source: ROCm/MIOpen, handlehip.cpp, `Handle::LoadProgram`. It is dropped:
    // the target is gfxpack's to say.
    row(&["-mcpu="], Form::Name),
    // Source: ROCm/MIOpen, implicitgemm_util.hpp,
    // `get_static_ck_common_compiler_flag`; ck_utility_common.hpp,
    // `get_ck_common_compiler_flag`; reducetensor.cpp,
    // `ReduceTensorDescriptor::ReduceTensor`; comgr.cpp, `BuildHip`.
    row(&["-std=", "--std=", "-cl-std="], Form::Name),
    // Source: ROCm/MIOpen, conv_winoRxS.cpp, `ConvBinWinoRxS::GetSolution`;
    // conv_wino_fury_RxS.cpp, `ConvWinoFuryRxSCommon::GetSolution`;
    // hipoc_program.cpp, `BuildCodeObjectInFile`.
    row(&["-mcumode", "-mwavefrontsize64"], Form::Switch),
    // Source: ROCm/MIOpen, conv_ocl_dir2D11x11.cpp,
    // `ConvOclDirectFwd11x11::GetSolution`; hipoc_program.cpp,
    // `BuildCodeObjectInFile`; comgr.cpp, `SetOclOptions`. The others: OpenCL
    // 2.0, `clBuildProgram`, "Options"; clang, UsersManual, "OpenCL Features".
    row(
        &[
            "-cl-denorms-are-zero",
            "-cl-kernel-arg-info",
            "-cl-fast-relaxed-math",
            "-cl-finite-math-only",
            "-cl-fp32-correctly-rounded-divide-sqrt",
            "-cl-mad-enable",
            "-cl-no-signed-zeros",
            "-cl-opt-disable",
            "-cl-single-precision-constant",
            "-cl-strict-aliasing",
            "-cl-uniform-work-group-size",
            "-cl-unsafe-math-optimizations",
        ],
        Form::Alone,
    ),
    row(&["-cl-ext="], Form::Features),
    // Source: ROCm/MIOpen, conv_asm_implicit_gemm_wrw_v4r1_dynamic.cpp,
    // `ConvAsmImplicitGemmV4R1DynamicWrw::GetSolution`; kernel_warnings.cpp,
    // `OclKernelWarnings`, `HipKernelWarnings`. clang, "Diagnostic flags".
    row(&["-Werror=", "-Wno-error=", "-W"], Form::Name),
    row(&["-w", "-W", "-pedantic", "-pedantic-errors"], Form::Alone),
    // Source: ROCm/MIOpen, hip_build_utils.cpp, `HipBuildImpl`.
    row(&["-O"], Form::OneOf(&["", "0", "1", "2", "3", "s", "z", "g", "fast"])),
    row(&["-I"], Form::Directory),
    // Source: ROCm/MIOpen, hipoc_program.cpp, `GetCodeObjectVersionOptionImpl`.
    // The object shows whether the version is acceptable.
    row(&["-mcode-object-version="], Form::Number),
    row(&["-mcode-object-v3", "-mno-code-object-v3", "-mnocode-object-v3"], Form::Alone),
    Row { after: &["-Xclang", "-target-feature", "-Xclang"], names: &[""], form: Form::Feature },
    // Source: ROCm/MIOpen, gcn_asm_utils.cpp, `AmdgcnAssemble`. clang,
    // ClangCommandLineReference, "AMDGPU", "Target-dependent compilation
    // options".
    row(
        &["-mxnack", "-msramecc", "-mtgsplit", "-munsafe-fp-atomics", "-mamdgpu-ieee"],
        Form::Switch,
    ),
    // Source: ROCm/MIOpen, comgr.cpp, `SetOclOptions`, `BuildHip`,
    // hip_build_utils.cpp of 2.12 (`-amdgpu-spill-vgpr-to-agpr`,
    // `-amdgpu-enable-global-sgpr-addr`); clang,
    // lib/Driver/ToolChains/HIPAMD.cpp, `addClangTargetOptions`;
    // ROCm/composable_kernel, CMakeLists.txt (`-enable-` and the rest).
    Row {
        after: &["-mllvm"],
        names: &[
            "-amdgpu-early-inline-all",
            "-amdgpu-function-calls",
            "-amdgpu-internalize-symbols",
            "-amdgpu-prelink",
            "-amdgpu-spill-vgpr-to-agpr",
            "-amdgpu-enable-global-sgpr-addr",
            "-amdgpu-coerce-illegal-types",
            "-enable-noalias-to-md-conversion",
            "-enable-post-misched",
            "-lsr-drop-solution",
        ],
        form: Form::Setting,
    },
    // Source: ROCm/MIOpen, comgr.cpp, `BuildHip`; clang,
    // ClangCommandLineReference and HIPSupport.
    row(
        &[
            "-foffload-uniform-block",
            "-fgpu-flush-denormals-to-zero",
            "-fcuda-flush-denormals-to-zero",
            "-fgpu-approx-transcendentals",
            "-fcuda-approx-transcendentals",
            "-fgpu-allow-device-init",
            "-fhip-fp32-correctly-rounded-divide-sqrt",
            "-fhip-kernel-arg-name",
            "-fhip-new-launch-api",
        ],
        Form::Switch,
    ),
    row(&["-fno-gpu-rdc", "-fno-lto", "-nogpulib", "-nogpuinc"], Form::Alone),
    // Source: clang, UsersManual, "Controlling Floating Point Behavior".
    row(
        &[
            "-fapprox-func",
            "-fassociative-math",
            "-ffast-math",
            "-ffinite-math-only",
            "-fhonor-infinities",
            "-fhonor-nans",
            "-fmath-errno",
            "-freciprocal-math",
            "-frounding-math",
            "-fsigned-zeros",
            "-ftrapping-math",
            "-funsafe-math-optimizations",
        ],
        Form::Switch,
    ),
    row(&["-ffp-contract="], Form::OneOf(&["on", "off", "fast", "fast-honor-pragmas"])),
    row(&["-ffp-model="], Form::OneOf(&["precise", "strict", "fast", "aggressive"])),
    row(&["-ffp-exception-behavior="], Form::OneOf(&["ignore", "maytrap", "strict"])),
    row(
        &["-fdenormal-fp-math=", "-fdenormal-fp-math-f32="],
        Form::OneOf(&["ieee", "preserve-sign", "positive-zero", "dynamic"]),
    ),
    // Source: clang, ClangCommandLineReference, "Compilation options":
    // optimization, code generation and language.
    row(
        &[
            "-fbuiltin",
            "-fcommon",
            "-fdata-sections",
            "-fdeclspec",
            "-fdelete-null-pointer-checks",
            "-fexceptions",
            "-ffinite-loops",
            "-ffreestanding",
            "-ffunction-sections",
            "-fident",
            "-finline",
            "-finline-functions",
            "-finline-hint-functions",
            "-fjump-tables",
            "-fmerge-all-constants",
            "-fms-extensions",
            "-fomit-frame-pointer",
            "-fPIC",
            "-fpic",
            "-frtti",
            "-fshort-enums",
            "-fsigned-char",
            "-funsigned-char",
            "-fslp-vectorize",
            "-fstrict-aliasing",
            "-fstrict-enums",
            "-fstrict-float-cast-overflow",
            "-fstrict-overflow",
            "-fstrict-return",
            "-fthreadsafe-statics",
            "-ftree-slp-vectorize",
            "-ftree-vectorize",
            "-funroll-loops",
            "-fvectorize",
            "-fwrapv",
        ],
        Form::Switch,
    ),
    row(&["-fno-stack-protector"], Form::Alone),
    row(&["-fvisibility="], Form::OneOf(&["default", "hidden", "internal", "protected"])),
    row(&["-ftrivial-auto-var-init="], Form::OneOf(&["uninitialized", "pattern", "zero"])),
    row(
        &[
            "-fbracket-depth=",
            "-fconstexpr-depth=",
            "-fconstexpr-steps=",
            "-ferror-limit=",
            "-ftemplate-backtrace-limit=",
            "-ftemplate-depth=",
        ],
        Form::Number,
    ),
    // Source: clang, UsersManual, "Controlling Debug Information". The
    // directory in it is always `.`.
    row(&["-g"], Form::OneOf(&["", "0", "1", "2", "3"])),
    row(&["-ggdb"], Form::OneOf(&["", "0", "1", "2", "3"])),
    row(&["-gdwarf"], Form::OneOf(&["", "-2", "-3", "-4", "-5"])),
    row(
        &["-gline-tables-only", "-gline-directives-only", "-gcolumn-info", "-gno-column-info"],
        Form::Alone,
    ),
];

/// The number of arguments, from the first, that form one allowed option.
pub(crate) fn known(args: &[&str]) -> Option<usize> {
    let taken = OPTIONS.iter().find(|row| row.takes(args))?;
    Some(taken.after.len() + 1)
}

/// The number of arguments of a rejected option, to name them together.
pub(crate) fn rejected(args: &[&str]) -> usize {
    // The longest row with this beginning determines the number of arguments.
    let begins = |row: &&Row| !row.after.is_empty() && args.starts_with(&row.after[..1]);
    let longest = OPTIONS.iter().filter(begins).map(|row| {
        let same = row.after.iter().zip(args).take_while(|(after, arg)| after == arg);
        same.count() + 1
    });
    longest.max().unwrap_or(1).min(args.len())
}

impl Row {
    fn takes(&self, args: &[&str]) -> bool {
        let Some(rest) = args.strip_prefix(self.after) else { return false };
        let Some(mut arg) = rest.first().copied() else { return false };
        // Source: LLVM, llvm/lib/Support/CommandLine.cpp: one dash or two.
        if self.after == ["-mllvm"] && arg.starts_with("--") {
            arg = &arg[1..];
        }
        // A macro becomes a line of the compiler's input, which a line break ends and a final
        // backslash continues.
        let is_line = !arg.contains(['\n', '\r']) && !arg.ends_with('\\');
        is_line && self.names.iter().any(|name| self.form.takes(name, arg))
    }
}

impl Form {
    fn takes(self, name: &str, arg: &str) -> bool {
        let Some(value) = arg.strip_prefix(name) else {
            return matches!(self, Self::Switch) && is_negative(name, arg);
        };
        match self {
            Self::Alone | Self::Switch => value.is_empty(),
            Self::OneOf(values) => values.contains(&value),
            Self::Number => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Name => is_name(value),
            Self::Setting => value.is_empty() || value.strip_prefix('=').is_some_and(is_name),
            Self::Macro => behind_identifier(value)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', '(', ' '])),
            Self::Symbol => value.split_once('=').is_some_and(|(symbol, value)| {
                behind_identifier(symbol) == Some("") && !value.contains(',')
            }),
            // `=` and `-` before a directory have special meanings.
            Self::Directory => {
                // A compiler reads further arguments from the file of `@file`.
                !value.is_empty()
                    && !value.starts_with(['/', '=', '-', '@'])
                    && relative_path::join("", value).is_some()
            }
            Self::Feature => is_feature(value),
            Self::Features => value.split(',').all(is_feature),
        }
    }
}

/// Whether an argument is `-fno-x` for the name `-fx`.
fn is_negative(name: &str, arg: &str) -> bool {
    let (kind, name) = name.split_at(2);
    arg.strip_prefix(kind).and_then(|rest| rest.strip_prefix("no-")) == Some(name)
}

fn is_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._:#".contains(&byte);
    !text.is_empty() && text.bytes().all(of_name)
}

fn is_feature(text: &str) -> bool {
    text.strip_prefix(['+', '-']).is_some_and(is_name)
}

/// The text after its leading identifier.
fn behind_identifier(text: &str) -> Option<&str> {
    let first = text.bytes().next()?;
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let end = text.bytes().position(|byte| !of_name(byte)).unwrap_or(text.len());
    (end > 0 && !first.is_ascii_digit()).then(|| &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the first option that is rejected.
    fn rejection(options: &str) -> Option<String> {
        let options: Vec<&str> = options.split_ascii_whitespace().collect();
        let mut rest = &options[..];
        while !rest.is_empty() {
            match known(rest) {
                Some(count) => rest = &rest[count..],
                None => return Some(rest[..rejected(rest)].join(" ")),
            }
        }
        None
    }

    #[test]
    fn options_of_miopen_are_allowed() {
        for options in [
            "-DMIOPEN_USE_FP16=0 -DMLO_READ_TYPE=_FLOAT4 -DNAME=\"a\" -DX -UX -DF(x)=x -D_A$1=-1",
            "--std=c++17 -mllvm -amdgpu-early-inline-all -mllvm --amdgpu-spill-vgpr-to-agpr=0",
            "-mllvm -enable-noalias-to-md-conversion=0 -mllvm -amdgpu-function-calls=false",
            "-Xclang -target-feature -Xclang +code-object-v3",
            "-Xclang -target-feature -Xclang -code-object-v3 -mno-code-object-v3",
            "-Wa,-defsym,ROCM_METADATA_VERSION=5 -Wa,--defsym,n=-1 -mcumode -mwavefrontsize64",
            "-Wno-old-style-cast -Wno-cast-align -Weverything -Werror -w -W -Wno-#pragma-messages",
            "-std=c++14 -mcpu=gfx906 -mcpu=gfx90a:sramecc+:xnack- -mno-xnack -I. -Iinc/../inc",
            "-cl-denorms-are-zero -cl-std=CL2.0 -cl-ext=+cl_khr_fp64,-all -O3 -O -Os -g -ggdb3",
            "-fno-fast-math -ffp-contract=fast -fno-offload-uniform-block -fno-gpu-rdc",
            "-mcode-object-version=4 -gline-tables-only -gdwarf-4 -ftemplate-depth=2048",
        ] {
            assert_eq!(rejection(options), None, "{options}");
        }
    }

    #[test]
    fn options_that_access_files_or_are_unknown_are_rejected_by_name() {
        for (options, named) in [
            ("-DA -Xclang -ftime-trace=/x", "-Xclang -ftime-trace=/x"),
            ("-Xclang -fembed-bitcode=all", "-Xclang -fembed-bitcode=all"),
            ("-Xclang -foverride-record-layout=/x", "-Xclang -foverride-record-layout=/x"),
            ("-Xclang -target-feature -Xclang x", "-Xclang -target-feature -Xclang x"),
            ("-Xclang -target-feature -o x", "-Xclang -target-feature -o"),
            ("-Xclang -target-feature", "-Xclang -target-feature"),
            ("-Xclang -load", "-Xclang -load"),
            ("-Xclang", "-Xclang"),
            ("-mllvm -stats", "-mllvm -stats"),
            ("-mllvm --stats", "-mllvm --stats"),
            ("-mllvm --info-output-file=/x", "-mllvm --info-output-file=/x"),
            ("-mllvm -info-output-file=x", "-mllvm -info-output-file=x"),
            ("-mllvm -cgscc-inline-replay=/x", "-mllvm -cgscc-inline-replay=/x"),
            ("-mllvm ---amdgpu-prelink", "-mllvm ---amdgpu-prelink"),
            ("-mllvm -amdgpu-prelink=/x", "-mllvm -amdgpu-prelink=/x"),
            ("-mllvm", "-mllvm"),
            ("-mllvm=-stats", "-mllvm=-stats"),
            ("-fsanitize-coverage-allowlist=/x", "-fsanitize-coverage-allowlist=/x"),
            ("-fsanitize-coverage-ignorelist=x", "-fsanitize-coverage-ignorelist=x"),
            ("-fsanitize-ignorelist=x", "-fsanitize-ignorelist=x"),
            ("-ftime-trace", "-ftime-trace"),
            ("-I../..", "-I../.."),
            ("-Ia/../..", "-Ia/../.."),
            ("-I/usr", "-I/usr"),
            ("-I -DA", "-I"),
            ("-I=usr", "-I=usr"),
            ("-I@usr", "-I@usr"),
            ("-Wa,-I/usr", "-Wa,-I/usr"),
            ("-Wa,-defsym,A=1,-I,/usr", "-Wa,-defsym,A=1,-I,/usr"),
            ("-Wa,-defsym,A", "-Wa,-defsym,A"),
            ("-Wl,-x", "-Wl,-x"),
            ("-Wp,-MD,x", "-Wp,-MD,x"),
            ("-D", "-D"),
            ("-D1=2", "-D1=2"),
            ("-D=1", "-D=1"),
            ("-Oclever", "-Oclever"),
            ("-gsplit-dwarf", "-gsplit-dwarf"),
            ("-grecord-command-line", "-grecord-command-line"),
            ("-ffp-contract=/x", "-ffp-contract=/x"),
            ("-fno-gpu-rdc=x", "-fno-gpu-rdc=x"),
            ("-mcode-object-version=none", "-mcode-object-version=none"),
            ("-mno-mcumode", "-mno-mcumode"),
            ("-std=../x", "-std=../x"),
            ("-o x", "-o"),
            ("x.cpp", "x.cpp"),
            ("--offload-arch=gfx906", "--offload-arch=gfx906"),
        ] {
            assert_eq!(rejection(options).as_deref(), Some(named), "{options}");
        }
        assert_eq!(known(&["-DA(x\n#include \"y\""]), None);
        assert_eq!((known(&["-DA=\\"]), known(&["-DA=\\n"])), (None, Some(1)));
    }

    #[test]
    fn every_option_is_in_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/options.md");
        let text = std::fs::read_to_string(path).unwrap();
        let named = |name: &str| text.contains(&format!("`{}`", name.trim_end_matches('=')));
        let begun = |name: &str| text.contains(&format!("`{name}"));
        for name in OPTIONS.iter().flat_map(|row| row.names) {
            assert!(named(name) || begun(name), "{name}");
        }
    }
}
