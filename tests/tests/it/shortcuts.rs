//! Every shortcut gives the same bytes as hipcc and clang's driver, is really used, and is not used
//! if it could change them.

use crate::support::project::{Project, Run, tool, workspace};
use serde_json::{Value, json};

/// What a build says when a shortcut did not work out.
const SETBACKS: [&str; 6] = [
    "a shortcut failed",
    "the driver runs these jobs itself",
    "no fork server",
    "a fork server broke down",
    "failed its test",
    "compiled again",
];

const MANIFEST: [&str; 4] = ["--manifest", "kernels.toml", "--target", "gfx906"];

fn build(project: &Project, out: &str, cache: &str, arguments: &[&str]) -> Run {
    let mut command = project.command(&["build", "--out", out, "--cache-dir", cache]);
    command.args(["--json", "-"]).args(arguments);
    command.env("GFXPACK_LOG", "gfxpack_compile=debug,gfxpack_launch=debug");
    crate::support::project::finish(command)
}

fn assert_no_setback(run: &Run) {
    for setback in SETBACKS {
        assert!(!run.stderr.contains(setback), "{setback}:\n{}", run.stderr);
    }
}

/// Builds by the driver and by shortcuts, and holds the kdbs against each
/// other; gives the second run.
fn same_both_ways(project: &Project, arguments: &[&str]) -> Run {
    let driver = [arguments, &["--via", "hipcc"]].concat();
    build(project, "driver", "driver-cache", &driver).expect_code(0);
    let short = build(project, "short", "short-cache", arguments).expect_code(0);
    assert!(project.tree("driver/kdb") == project.tree("short/kdb"), "the kdbs differ");
    short
}

/// Builds into `out`, with a cache of its own, what is refused in part; gives
/// the arguments of each refused kernel and the compiler's output, sorted.
fn refusals(project: &Project, out: &str, arguments: &[&str]) -> Vec<(String, String)> {
    let run = build(project, out, &format!("{out}-cache"), arguments);
    let failed = run.expect_code(100).of_type("job-failed");
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    let mut failures: Vec<_> = failed
        .iter()
        .map(|message| (text(message, "kernel_args"), text(message, "output")))
        .collect();
    failures.sort();
    failures
}

fn files(project: &Project, dir: &str, ending: &str) -> usize {
    project.tree(dir).iter().filter(|(name, _)| name.ends_with(ending)).count()
}

#[test]
fn kernels_in_every_language_equal_hipccs_objects() {
    let project = Project::new();
    let manifest = workspace().join("packaging/examples/kernels.toml");
    let manifest = manifest.to_str().unwrap();
    let short = same_both_ways(&project, &["--manifest", manifest, "--target", "gfx90a,gfx1030"]);
    assert_no_setback(&short);
    assert_eq!(files(&project, "short-cache/v1/headers", ".pch"), 2, "one for each target");
    assert_eq!(files(&project, "driver-cache/v1", ".pch"), 0);

    // Headers are used again, and looked at before.
    for (name, bytes) in project.tree("short-cache/v1/headers") {
        if name.ends_with(".pch") {
            let path = project.path().join("short-cache/v1/headers").join(name);
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    std::fs::remove_dir_all(project.path().join("short-cache/v1/objects")).unwrap();
    let one = ["--manifest", manifest, "--target", "gfx1030"];
    assert_no_setback(&build(&project, "again", "short-cache", &one).expect_code(0));
    let [driver, again] = ["driver", "again"]
        .map(|out| std::fs::read(project.path().join(out).join("kdb/gfx1030.kdb")).unwrap());
    assert!(driver == again, "the kdbs differ");
}

/// clang 15 weighs this kernel's instructions in the order of their addresses,
/// and left alone makes one of two objects, as it happens.
#[test]
fn a_kernel_that_depends_on_heap_addresses_is_reproducible_by_every_route() {
    let project = Project::new();
    project.write(
        "k.cl",
        "typedef struct { int channels, filters, groups, in[2], out[2], filter[2]; } shape;
         __kernel void k(__global const float* x, __global const float* dy, __global float* dw, shape p)
         {
             const int c_group = p.channels / p.groups, k_group = p.filters / p.groups;
             uint index = get_group_id(0);
             const int c = index % c_group;
             index /= c_group;
             const int s = index % p.filter[1];
             index /= p.filter[1];
             const int r = index % p.filter[0], k = index / p.filter[0];
             float sum = 0;
             for (uint i = get_local_id(0); i < p.groups * p.out[0] * p.out[1]; i += 256) {
                 const int ox = i % p.out[1], oy = i / p.out[1] % p.out[0];
                 const size_t n = i / p.out[1] / p.out[0], row = n * p.in[0] + oy + r;
                 if (oy + r < p.in[0] && ox + s < p.in[1])
                     sum += x[(row * p.in[1] + ox + s) * p.channels + k / k_group * c_group + c]
                            * dy[((n * p.out[0] + oy) * p.out[1] + ox) * p.filters + k];
             }
             dw[get_global_id(0)] = sum;
         }",
    );
    project.write_manifest("k.cl", std::iter::once("-cl-std=CL2.0".to_owned()));
    let mut made = Vec::new();
    for way in [&["--via", "hipcc"][..], &[]] {
        // Longer paths move what is allocated after them.
        for length in [1, 40, 120] {
            let cache = "c".repeat(length);
            let input = ["--manifest", "kernels.toml", "--target", "gfx1030"];
            let run = build(&project, "made", &cache, &[&input, way].concat()).expect_code(0);
            assert_no_setback(&run);
            made.push(project.tree("made/kdb"));
            std::fs::remove_dir_all(project.path().join("made")).unwrap();
        }
    }
    made.dedup();
    assert_eq!(made.len(), 1, "different objects of one kernel");
}

const KERNEL: &str = r#"
extern "C" __global__ void kernel(float* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(n >= 0);
    if(i < n)
        x[i] = expf(x[i]) * FACTOR;
}
"#;

fn manifest(sources: &[&str], defines: &str) -> String {
    let mut text = "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\
                    include-dirs = [\".\"]\n"
        .to_owned();
    for source in sources {
        text.push_str(&format!(
            "[[kernel]]\nsource = \"{source}\"\n[[kernel.variant]]\ndefines = {{ {defines} }}\n"
        ));
    }
    text
}

/// Sources and options that a precompiled header would be wrong for.
#[test]
fn macros_that_headers_could_use_disable_precompiled_headers() {
    let project = Project::new();
    let source = |name: &str, before: &str| {
        project.write(name, &format!("{before}\n#include <hip/hip_runtime.h>\n{KERNEL}"));
    };
    source("plain.cpp", "// nothing before\n#define OWN 1");
    source("known.cpp", "#define NDEBUG 1");
    source("said.cpp", "#include \"own.h\"\nstruct first { int a; };");
    source("wrapped.cpp", "#ifndef NO_HEADERS\n#include \"own.h\"\n#endif");
    project.write("own.h", "#pragma once\n#include <limits>\n#define OWN 2\n");
    // A header of its own under the name of one of HIP's.
    source("named.cpp", "#include /* ours */ \"hip/hip_bfloat16.h\"\nint own = HAVE_OWN;");
    project.write("hip/hip_bfloat16.h", "#define HAVE_OWN 1\n");
    project.write("hip/library_types.h", "#include_next <hip/library_types.h>\n");
    // One file under two names is read once.
    let twice = "#include \"first.h\"\n#define NEEDED\n#include \"second.h\"\nint hip_bfloat16;";
    source("twice.cpp", twice);
    let first = "#pragma once\n#ifdef NEEDED\n#include <hip/hip_bfloat16.h>\n#endif\n";
    project.write("first.h", first);
    std::os::unix::fs::symlink("first.h", project.path().join("second.h")).unwrap();
    let all = ["plain.cpp", "known.cpp", "said.cpp", "wrapped.cpp", "named.cpp", "twice.cpp"];
    // NDEBUG is a macro that assert depends on: as an option for half of them.
    let text = manifest(&all, "FACTOR = 3")
        + &manifest(&all, "FACTOR = 3, NDEBUG = 1")
            .split_once("[[kernel]]")
            .map(|(_, kernels)| format!("[[kernel]]{kernels}"))
            .unwrap();
    project.write("kernels.toml", &text);
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    let [with_hips, _] = jobs_with_precompiled_headers(&short);
    assert_eq!(with_hips, 0, "HIP's header would include one of the project's");
    let compiled = short.of_type("build-finished")[0]["compiled"].as_u64().unwrap();
    assert!(compiled > 6, "NDEBUG counts where the source does not define it: {compiled}");
}

const RUNTIME: &str = "#include <hip/hip_runtime.h>";
const HALF: &str = "#include <hip/hip_fp16.h>";

/// How many jobs used HIP's header precompiled, and how many only the driver's.
fn jobs_with_precompiled_headers(run: &Run) -> [usize; 2] {
    [RUNTIME, "the driver's header"].map(|headers| jobs_with(run, headers))
}

/// How many jobs used some headers precompiled.
fn jobs_with(run: &Run, headers: &str) -> usize {
    let end = format!(" jobs use {headers}, precompiled");
    let lines = run.stderr.lines().filter_map(|line| line.strip_suffix(&end));
    let counts = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap());
    counts.sum()
}

#[test]
fn hips_header_is_precompiled_for_sources_that_include_it_first() {
    let project = Project::new();
    let source = |name: &str, before: &str| {
        project.write(name, &format!("{before}{KERNEL}"));
    };
    let include = "#include <hip/hip_runtime.h>\n";
    source("angled.cpp", &format!("// a comment\n{include}{include}"));
    source("quoted.cpp", "#define OWN 1\n#include \"hip/hip_runtime.h\"\n");
    source("own.cpp", "#include \"sub/own.h\"\n");
    project.write("sub/own.h", "#pragma once\n#include \"deeper.h\"\nint later;\n");
    let guarded = "#ifndef DEEPER\n#define DEEPER\n#ifndef NO_HEADERS\n\
                   #include \"hip/hip_runtime.h\"\n#endif\n#endif\n";
    project.write("sub/deeper.h", guarded);
    source("named.cpp", "#define HEADER <hip/hip_runtime.h>\n#include HEADER\n");
    // A source that includes one of the headers again must not get the other one, too.
    let by_half = "#ifdef HIP_INCLUDE_HIP_HIP_FP16_H\n__device__ int by_half = 1;\n#endif\n";
    source("both.cpp", &format!("{RUNTIME}\n{HALF}\n{RUNTIME}\n{by_half}"));
    source("again.cpp", &format!("{RUNTIME}\n#include \"again.h\"\n{by_half}"));
    project.write("again.h", &format!("#pragma once\n{RUNTIME}\n"));
    let all = ["angled.cpp", "quoted.cpp", "own.cpp", "named.cpp", "both.cpp", "again.cpp"];
    project.write("kernels.toml", &manifest(&all, "FACTOR = 3"));
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    assert_eq!(jobs_with_precompiled_headers(&short), [6, 0]);
}

#[test]
fn hips_header_is_precompiled_though_an_include_directory_is_of_no_use_to_a_source() {
    let project = Project::new();
    project.write("inc/own.h", "#define OWN 1\n");
    project.write("plain.cpp", &format!("{RUNTIME}\n{KERNEL}"));
    // The object would be another one if the directory seemed empty.
    let asks = "#define NAME \"own.h\"\n#if __has_include(NAME)\n#define NDEBUG 1\n#endif\n";
    project.write("asks.cpp", &format!("{asks}{RUNTIME}\n{KERNEL}"));
    let text = manifest(&["plain.cpp", "asks.cpp"], "FACTOR = [2, 3, 4]");
    let variant = "[[kernel.variant]]\n";
    let text = text.replace(variant, &format!("{variant}options = [\"-Iinc\"]\n"));
    project.write("kernels.toml", &text);
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    assert_eq!(jobs_with_precompiled_headers(&short), [3, 3]);
}

/// Lets sources have a second job, which has another value of FACTOR.
fn with_another_factor(project: &Project, sources: &[&str]) {
    let mut text = project.text("kernels.toml");
    for source in sources {
        let (begin, rest) = text.split_once(&format!("\"{source}\"")).expect("a source");
        text = format!("{begin}\"{source}\"{}", rest.replacen("FACTOR = 3", "FACTOR = [2, 3]", 1));
    }
    project.write("kernels.toml", &text);
}

/// Writes sources that include headers and then use both of HIP's, with these defines.
fn write_sources_with_halves(project: &Project, beginnings: &[(&str, String)], defines: &str) {
    let both = "extern \"C\" __global__ void halves(__half* x) { x[0] = __hadd(x[1], x[2]); }\n";
    for (name, beginning) in beginnings {
        project.write(name, &format!("{beginning}\n{KERNEL}{both}"));
    }
    let names: Vec<&str> = beginnings.iter().map(|(name, _)| *name).collect();
    project.write("kernels.toml", &manifest(&names, defines));
}

#[test]
fn both_of_hips_headers_are_precompiled_in_the_order_of_the_sources() {
    let project = Project::new();
    let beginnings = [
        ("runtime.cpp", format!("{RUNTIME}\n{HALF}")),
        ("runtime_again.cpp", format!("#include \"own.h\"\n{RUNTIME}\n#define OWN\n{HALF}")),
        ("half.cpp", format!("#ifndef NO_HEADERS\n{HALF}\n{RUNTIME}\n#endif")),
        ("half_again.cpp", format!("{HALF}\n#include \"own.h\"\n{RUNTIME}\n{HALF}")),
    ];
    project.write("own.h", "#pragma once\n#define OWN_HEADER 1\n");
    write_sources_with_halves(&project, &beginnings, "FACTOR = [2, 3]");
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    assert_eq!(jobs_with(&short, &format!("{RUNTIME} {HALF}")), 4);
    assert_eq!(jobs_with(&short, &format!("{HALF} {RUNTIME}")), 4);
}

/// Each of these would get another object if both headers came before.
#[test]
fn what_comes_between_hips_headers_counts() {
    let project = Project::new();
    let no_assert = "#define NDEBUG 1";
    let guard = "HIP_INCLUDE_HIP_HIP_FP16_H";
    let between = [
        ("defines.cpp", no_assert.to_owned()),
        ("by_half.cpp", format!("#ifdef {guard}\n{no_assert}\n#endif")),
        ("by_value.cpp", format!("#if FACTOR == 3\n{no_assert}\n#endif")),
        ("declares.cpp", "struct dim3;".to_owned()),
        ("pushes.cpp", format!("#pragma push_macro(\"{guard}\")")),
        ("other.cpp", "#include <limits.h>".to_owned()),
    ];
    let mut beginnings =
        Vec::from(between.map(|(name, between)| (name, format!("{HALF}\n{between}\n{RUNTIME}"))));
    // What comes after the first header only does not keep that from being precompiled.
    let needed = format!("{RUNTIME}\n#ifdef HIP_INCLUDE_HIP_HIP_RUNTIME_H\n{HALF}\n#endif");
    beginnings.push(("needed.cpp", needed));
    beginnings.push(("later.cpp", format!("{RUNTIME}\nint between;\n{HALF}")));
    beginnings.push(("both.cpp", format!("{RUNTIME}\n{HALF}")));
    write_sources_with_halves(&project, &beginnings, "FACTOR = 3");
    with_another_factor(&project, &["by_value.cpp"]);
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    assert_eq!(jobs_with_precompiled_headers(&short), [3, 7]);
}

/// A condition in which most values of FACTOR are an argument that its macros drop.
const IS_THREE: &str = "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n\
                        #define SECOND_(a, b, ...) b\n#define SECOND(...) SECOND_(__VA_ARGS__)\n\
                        #define IS_3 ~, 1\n#if SECOND(CAT(IS_, FACTOR), 0, 0)";

/// Each of these would get another object if HIP's header came before.
#[test]
fn hips_header_is_not_precompiled_for_sources_that_do_anything_before() {
    let project = Project::new();
    let no_assert = "#define NDEBUG 1\n";
    let unless = |condition: &str| format!("{condition}\n{no_assert}#endif\n");
    let before = [
        ("declares.cpp", "struct dim3;\n".to_owned()),
        ("defines.cpp", no_assert.to_owned()),
        ("undefines.cpp", "#undef __HIP_PLATFORM_AMD__\n".to_owned()),
        ("pragma.cpp", "#pragma clang fp contract(off)\n".to_owned()),
        // The preprocessor prints neither of these.
        ("pushed.cpp", "#pragma push_macro(\"HIP_VERSION\")\n".to_owned()),
        ("operator.cpp", "_Pragma(\"push_macro(\\\"HIP_VERSION\\\")\")\n".to_owned()),
        ("marker.cpp", "# 1 \"x.h\" 3\n".to_owned()),
        ("other.cpp", "#include <limits.h>\n".to_owned()),
        ("by_value.cpp", unless("#if FACTOR == 3")),
        ("by_name.cpp", unless("#define IS_THREE(x) x == 3\n#if IS_THREE(FACTOR)")),
        ("by_dropped_value.cpp", unless(IS_THREE)),
        ("by_hip.cpp", unless("#ifndef HIP_INCLUDE_HIP_HIP_RUNTIME_H")),
        ("by_driver.cpp", unless("#ifdef __HIP__")),
        ("by_language.cpp", unless("#if __cplusplus")),
        ("by_file.cpp", unless("#if __has_include(<hip/hip_runtime.h>)")),
        ("by_macro.cpp", unless("#define has __has_include\n#if has(<hip/hip_runtime.h>)")),
        ("by_elifdef.cpp", unless("#if 0\n#elifdef HIP_INCLUDE_HIP_HIP_RUNTIME_H\n#else")),
        ("by_counter.cpp", unless("#if __COUNTER__ == 0")),
    ];
    for (name, before) in &before {
        project.write(name, &format!("{before}#include <hip/hip_runtime.h>\n{KERNEL}"));
    }
    // One file under two names is read once, so the second one includes nothing.
    let twice = "#include \"first.h\"\n#define NEEDED\n#include \"second.h\"\n";
    let late = "#define NDEBUG 1\n#include <hip/hip_runtime.h>\n";
    project.write("twice.cpp", &format!("{twice}{late}{KERNEL}"));
    let first = "#pragma once\n#ifdef NEEDED\n#include <hip/hip_runtime.h>\n#endif\n";
    project.write("first.h", first);
    std::os::unix::fs::symlink("first.h", project.path().join("second.h")).unwrap();
    // A header of its own under that name, found beside the file that includes it.
    project.write("beside.cpp", &format!("#include \"sub/own.h\"\n{KERNEL}"));
    project.write("sub/own.h", "#include \"hip/hip_runtime.h\"\n");
    project.write("sub/hip/hip_runtime.h", &late.replace(".h>", ".h> // the toolchain's"));
    let mut all: Vec<&str> = before.iter().map(|(name, _)| *name).collect();
    all.extend(["twice.cpp", "beside.cpp"]);
    // With this option, an error does not keep others from being reported.
    let text = manifest(&all, "FACTOR = 3");
    let variant = "[[kernel.variant]]\n";
    let options = format!("{variant}options = [\"-Wno-fatal-errors\"]\n");
    project.write("kernels.toml", &text.replace(variant, &options));
    with_another_factor(&project, &["by_value.cpp", "by_name.cpp", "by_dropped_value.cpp"]);
    let short = same_both_ways(&project, &MANIFEST);
    assert_no_setback(&short);
    let [with_hips, with_drivers] = jobs_with_precompiled_headers(&short);
    assert_eq!(with_hips, 0);
    assert!(with_drivers > 0);
}

#[test]
fn refused_kernels_have_the_drivers_output() {
    let project = Project::new();
    project.write("k.cpp", &format!("#include <hip/hip_runtime.h>\n{KERNEL}"));
    project.write("bad.cl", "__kernel void k(__global int* x) { x[0] = unknown; }\n");
    let text = manifest(&["k.cpp"], "FACTOR = [\"2\", \"nonsense\", \"3\"]")
        + "[[kernel]]\nsource = \"bad.cl\"\n";
    project.write("kernels.toml", &text);
    let failures_of = |via: &[&str], out: &str| refusals(&project, out, &[&MANIFEST, via].concat());
    let driver = failures_of(&["--via", "hipcc"], "driver");
    assert_eq!(driver.len(), 2);
    assert!(
        driver.iter().all(|(_, output)| output.contains("undeclared identifier")),
        "{driver:?}"
    );
    assert_eq!(failures_of(&[], "short"), driver);
}

/// Macros whose names a source builds, and pragmas in which they stay as they
/// are: neither its text nor the preprocessor's shows that they count.
#[test]
fn macros_whose_use_only_the_compiler_sees_count() {
    let project = Project::new();
    let kernel = "{
            #define CAT_(a, b) a##b
            #define CAT(a, b) CAT_(a, b)
            #pragma unroll CAT(FAC, TOR)
            for(int i = 0; i < 64; ++i) x[i * n] += x[i];
        }\n";
    project.write("k.cl", &format!("__kernel void k(__global float* x, int n)\n{kernel}"));
    project.write("k.cpp", &format!("extern \"C\" __global__ void k(float* x, int n)\n{kernel}"));
    project.write("kernels.toml", &manifest(&["k.cl", "k.cpp"], "FACTOR = [2, 8]"));
    let objects = |jobs: &str| {
        let input = [&MANIFEST[..], &["--jobs", jobs]].concat();
        build(&project, jobs, &format!("cache-{jobs}"), &input).expect_code(0);
        let query = "select count(distinct kernel_hash) from kern_db";
        let kdb = format!("{jobs}/kdb/gfx906.kdb");
        (tool("sqlite3", &[&kdb, query], project.path()), project.tree(&format!("{jobs}/kdb")))
    };
    let one = objects("1");
    assert_eq!(one.0, "4\n");
    assert!(objects("2") == one);
}

/// A function of the device library under the name that its symbol has.
#[test]
fn weak_declarations_of_library_functions_are_resolved() {
    let project = Project::new();
    let source = "__attribute__((weak)) float other(float) __asm__(\"_Z3cosf\");\n\
                  __kernel void k(__global float* x) { x[N] = other(x[0]); }\n";
    project.write("k.cl", source);
    let all: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    project.write("kernels.toml", &manifest(&["k.cl"], &format!("N = [{}]", all.join(", "))));
    assert_no_setback(&same_both_ways(&project, &MANIFEST));
}

/// Macros and symbols that drivers and compilers take differently, each in
/// jobs enough for a precompiled header.
#[test]
fn arguments_that_only_a_driver_understands_are_left_to_it() {
    let project = Project::small();
    project.write(
        "k.cpp",
        "#include <hip/hip_runtime.h>
         extern \"C\" __global__ void kernel(float* x)
         {
         #ifdef F
             x[2] = F(2);
         #endif
             x[0] = expf(x[0]);
         }",
    );
    let taken = [
        ("k.cpp.o", "-DOWN=1"),
        ("k.cpp.o", "-DOWN=2"),
        ("k.cpp.o", "-DOWN=3"),
        ("k.cpp.o", "\"-D__ocml_exp_f32 =__ocml_exp2_f32\""),
        ("k.cpp.o", "\"-DF(x)=1\" -UF \"-DF(x)=2\""),
        ("fill.s.o", "-Wa,-defsym,N=1"),
    ];
    let refused = [
        // A name that headers build of two parts.
        ("k.cpp.o", "-Dfmul=2.5f"),
        ("fill.s.o", "-Wa,-defsym,N=1e3"),
        ("fill.s.o", "-Wa,-defsym,N="),
        ("fill.s.o", "-Wa,-defsym,N=+5"),
        ("fill.s.o", "-Wa,-defsym,N=0xg"),
        ("fill.s.o", "-Wa,-defsym,N=1=2"),
        ("fill.s.o", "-Wa,-defsym,N=99999999999999999999"),
        ("fill.s.o", "\"-Wa,-defsym,N= 1\""),
    ];
    let lines = taken.iter().chain(&refused).map(|(name, args)| {
        let value = if *name == "fill.s.o" { "-Wa,-defsym,VALUE=1 " } else { "" };
        let args = format!(" {value}{args} -mcpu=gfx906");
        format!("{}\n", json!({ "kernel_name": name, "kernel_args": args }))
    });
    project.write("keys.jsonl", &lines.collect::<String>());
    let arguments =
        ["--keys", "keys.jsonl", "--source-dir", ".", "--source-dir", "src", "--target", "gfx906"];
    let failures_of =
        |via: &[&str], out: &str| refusals(&project, out, &[&arguments, via].concat());
    let driver = failures_of(&["--via", "hipcc"], "driver");
    assert_eq!(driver.len(), refused.len(), "{driver:?}");
    assert_eq!(failures_of(&[], "short"), driver);
    assert!(project.tree("driver/kdb") == project.tree("short/kdb"), "the kdbs differ");
    assert_eq!(files(&project, "short-cache/v1/headers", ".pch"), 1);
}

/// No other build may use it meanwhile, nor try it again.
#[test]
fn a_precompiled_header_that_failed_its_trial_is_recorded_and_not_used() {
    let project = Project::new();
    project.write("k.cpp", &format!("#include <hip/hip_runtime.h>\n{KERNEL}"));
    let keys = (2..5).map(|factor| {
        // Debug information differs with a header.
        let args = format!(" -DFACTOR={factor} -g -mcpu=gfx906");
        format!("{}\n", json!({ "kernel_name": "k.cpp.o", "kernel_args": args }))
    });
    project.write("keys.jsonl", &keys.collect::<String>());
    let arguments = ["--keys", "keys.jsonl", "--source-dir", ".", "--target", "gfx906"];
    same_both_ways(&project, &arguments);
    let kept = project.tree("short-cache/v1/headers");
    let mut headers = kept.iter().filter(|(name, _)| name.ends_with(".pch"));
    assert!(files(&project, "short-cache/v1/headers", ".pch") > 0);
    assert!(headers.all(|(_, bytes)| bytes.is_empty()));
}

/// The kdbs of a build: paths and bytes.
type Kdbs = Vec<(String, Vec<u8>)>;

/// The kdb that each route makes of kernels that differ in a macro: by the
/// driver, and by shortcuts.
fn kdbs_by_route(
    project: &Project,
    values: &[&str],
    more: &[&str],
    environment: &[(&str, &str)],
) -> [Kdbs; 2] {
    let source = "#ifndef MORE\n#define MORE 0\n#endif\n#define TEXT(x) #x\n#define OF(x) TEXT(x)\n\
                  extern \"C\" __global__ void k(int *x) { *x = sizeof(OF(X)) + MORE; }\n";
    project.write("k.cpp", source);
    project.write_manifest("k.cpp", values.iter().map(|value| format!("-DX={value}")));
    [&["--via", "hipcc"][..], &[]].map(|route| {
        let out = ["o", route.last().unwrap_or(&"auto")].join("-");
        let cache = format!("{out}/cache");
        let arguments = ["build", "--out", &out, "--cache-dir", &cache];
        let mut command = project.command(&[&arguments, &MANIFEST[..], route, more].concat());
        command.envs(environment.iter().copied());
        crate::support::project::finish(command).expect_code(0);
        let kdbs = project.tree(&format!("{out}/kdb"));
        std::fs::remove_dir_all(project.path().join(out)).unwrap();
        kdbs
    })
}

/// Wrappers that add a macro where they see another one: as a script, as a
/// program, between hipcc and clang, and inside of hipcc.
#[test]
fn a_wrapper_that_looks_at_macros_runs_every_command() {
    const VALUES: &[&str] = &["1", "2", "3"];
    let project = Project::new();
    let bin = project.path().join("bin");
    let bin = bin.to_str().unwrap();
    let [plain, by_itself] = kdbs_by_route(&project, VALUES, &[], &[]);
    assert!(plain == by_itself);
    let check = |what: &str, more: &[&str], environment: &[(&str, &str)]| {
        let [by_driver, by_itself] = kdbs_by_route(&project, VALUES, more, environment);
        assert!(by_driver != plain, "{what} changes nothing");
        assert!(by_driver == by_itself, "{what}");
    };
    let wrapper = |name: &str, real: &str, before: &str| {
        let script = format!(
            "#!/bin/bash\nmore=\ncase \"$*\" in *X=3*) more=-DMORE=99 ;; esac\n\
             exec {before}{real} \"$@\" $more\n"
        );
        let path = project.write(&format!("bin/{name}"), &script);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, executable).unwrap();
    };
    let by_bin = ["--hipcc", "bin/hipcc"];

    wrapper("hipcc", "/usr/bin/hipcc", "");
    check("a script", &by_bin, &[]);

    project.write(
        "wrapper.c",
        "#include <string.h>\n#include <unistd.h>\nint main(int n, char **a) {\n\
         char *all[n + 2];\nint count = n;\nmemcpy(all, a, n * sizeof *a);\n\
         for (int i = 1; i < n; i++) if (!strcmp(a[i], \"-DX=3\")) all[count++] = \"-DMORE=99\";\n\
         all[count] = 0;\nreturn execv(all[0] = \"/usr/bin/hipcc\", all);\n}\n",
    );
    std::fs::remove_file(format!("{bin}/hipcc")).unwrap();
    tool("cc", &["-o", "bin/hipcc", "wrapper.c"], project.path());
    check("a program", &by_bin, &[]);

    let clang = "clang++-15";
    let environment = [("HIP_CLANG_PATH", bin)];
    for before in ["", "env -u LD_PRELOAD "] {
        wrapper(clang, "/usr/lib/llvm-15/bin/clang++", before);
        check("a script before clang", &[], &environment);
    }
    std::fs::remove_file(format!("{bin}/{clang}")).unwrap();

    std::fs::remove_file(format!("{bin}/hipcc")).unwrap();
    for part in ["hipcc", "hipcc.pl", "hipvars.pm"] {
        tool("cp", &[&format!("/usr/bin/{part}"), bin], project.path());
    }
    let module = std::fs::read_to_string(format!("{bin}/hipvars.pm")).unwrap();
    let line = "push @ARGV, '-DMORE=99' if grep { $_ eq '-DX=3' } @ARGV;\n1;\n";
    project.write("bin/hipvars.pm", &format!("{module}\n{line}"));
    let environment = [("HIP_PATH", "/usr"), ("ROCM_PATH", "/usr")];
    check("a changed module of hipcc's", &by_bin, &environment);
}

#[test]
fn macros_that_hipcc_takes_for_options_give_hipccs_objects() {
    let project = Project::new();
    let [by_driver, by_itself] = kdbs_by_route(&project, &["1", "--genco", "a-c", "-1"], &[], &[]);
    assert!(by_driver == by_itself);
}
