//! Kernels in all languages, and how they are compiled.

use std::fs;

use tempfile::TempDir;

use super::support::command;

/// The compilers of which there is one: those whose calls differ most.
pub(crate) fn compilers() -> Vec<&'static str> {
    let is_there = |number: &&str| {
        let find = format!("command -v clang-{number}");
        command("sh").args(["-c", &find]).output().unwrap().status.success()
    };
    let compilers: Vec<_> = ["15", "19"].into_iter().filter(is_there).collect();
    assert!(!compilers.is_empty(), "there is no clang-15 and no clang-19");
    compilers
}

pub(crate) const HIPCC: &str = "hipcc";
pub(crate) const BITCODE: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

/// Kernels that read by all the routes there are.
pub(crate) fn kernels() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("inc/name.h", "#pragma once\n#define NAME 3\n"),
        ("data.bin", "bytes"),
        ("inc.s", ".set one, 1\n"),
        (
            "k.cl",
            "#include \"name.h\"\n#if __has_include(\"no/such.h\") || __has_include(\"/no/such.h\")\n#endif\n\
             __kernel void k(__global float *x) { x[0] = sin(x[0]) * NAME; }\n",
        ),
        (
            "k.s",
            ".include \"inc.s\"\n.text\n.globl k\nk:\n s_endpgm\n.macro read what, name\n\
             .\\what \"\\name\"\n.endm\n read incbin, data.bin\n",
        ),
        (
            "k.cpp",
            "#include <cmath>\n#include \"name.h\"\n#if __has_include(<no/such.h>)\n#endif\n\
             extern \"C\" __attribute__((global)) void k(float *x) {\n\
             __asm__ volatile(\".pushsection .rodata\\n.incbin \\\"data.bin\\\"\\n.popsection\");\n\
             x[0] = std::sqrt(x[0]) * NAME; }\n",
        ),
    ];
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// How a kernel is compiled by a driver.
pub(crate) fn args(number: &str, source: &str) -> Vec<String> {
    let libraries = format!("--rocm-device-lib-path={BITCODE}");
    let clang = format!("clang-{number}");
    let mut args: Vec<String> = vec![if number == HIPCC { HIPCC.to_owned() } else { clang }];
    let more: &[&str] = match source.rsplit('.').next().unwrap() {
        _ if number == HIPCC => {
            &["--offload-arch=gfx906", "--cuda-device-only", "--no-gpu-bundle-output", "-c"]
        }
        "cl" => &["-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", &libraries],
        "s" => &["-x", "assembler", "-target", "amdgcn--amdhsa", "-mcpu=gfx906"],
        _ => &[
            "-x",
            "hip",
            "--rocm-path=/usr",
            "--hip-version=5.2.21153",
            &libraries,
            "--offload-arch=gfx906",
            "--cuda-device-only",
            "--no-gpu-bundle-output",
            "-c",
            "-nogpuinc",
        ],
    };
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    args.extend(["-O1", "-Iinc", source, "-o", "k.o"].map(str::to_owned));
    args
}
