//! Plans of many shapes, run on the CPU by the stock librocfft with the kernels that gfxpack
//! compiles for it, compared with another library's FFT.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_rocfft::{ArrayLayout, Direction, FftPlan, Placement, Precision, Transform};
use gfxpack_stock_library::{Library, ProbeDirectory};
use gfxpack_tests::miopen::probe;
use gfxpack_tests::project::tool;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::{asked, library};

/// One to three lengths; of one kernel and of several, by every way that
/// rocFFT has to divide a transform.
const SHAPES: [&str; 30] = [
    "c2c {} ip 64 fwd",
    "c2c {} op 100 batch 8 inv",
    "c2c {} ip 17 batch 3 fwd",
    "c2c {} op 336 inv",
    "c2c {} op 1031 fwd",
    "c2c {} ip 1031 inv",
    "c2c {} op 4096 fwd",
    "c2c {} ip 8192 inv",
    "c2c {} ip 65536 fwd",
    "c2c {} op 10007 inv",
    "c2c {} ip 32x32 inv",
    "c2c {} op 17x24 fwd",
    "c2c {} ip 128x96 batch 2 fwd",
    "c2c {} ip 16x32x24 inv",
    "c2c {} op 8x8x8 fwd",
    "c2c {} ip 64x64x64 fwd",
    "r2c {} op 256",
    "r2c {} ip 1000 batch 2",
    "r2c {} op 135",
    "r2c {} ip 96x32",
    "r2c {} op 16x20x24",
    "r2c {} op 16384",
    "c2r {} op 256",
    "c2r {} ip 512",
    "c2r {} op 81 batch 5",
    "c2r {} op 64x48",
    "c2r {} ip 12x16x20",
    "c2r {} op 8192",
    "--precision {} -t 0 --length 12 20 -b 3 --istride 32 1 --idist 400 --ostride 32 1 --odist 400",
    "--precision {} -t 2 -o --length 6 50 -b 2 --istride 100 2 --idist 700 --ostride 30 1 --odist 181",
];

type Value = Complex<f64>;

/// A file of these tests, or a directory.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Builds the program that carries plans out.
fn build(directory: &Path) -> PathBuf {
    let program = directory.join("transform");
    let options = ["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-rdynamic", "-w", "-ldl"];
    let mut args: Vec<String> = options.map(str::to_owned).to_vec();
    for include in ["rocfft/cpu", "hip/shim"] {
        args.push(format!("-I{}", beside(include).display()));
    }
    for source in ["rocfft/cpu/transform.cpp", "hip/shim/simulator.cpp"] {
        args.push(beside(source).display().to_string());
    }
    args.push(format!("-o{}", program.display()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    tool("c++", &args, Path::new("/"));
    program
}

/// Numbers without a pattern that a wrong index would keep, from -1 to 1.
fn numbers(count: usize) -> Vec<f64> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Transforms one array along every dimension, without dividing.
fn reference(values: &mut [Value], lengths: &[usize], direction: rustfft::FftDirection) {
    let mut planner = FftPlanner::new();
    let mut step = 1;
    for &length in lengths.iter().rev() {
        let fft = planner.plan_fft(length, direction);
        for start in (0..values.len()).filter(|at| at / step % length == 0) {
            let mut line: Vec<Value> = (0..length).map(|i| values[start + i * step]).collect();
            fft.process(&mut line);
            for (i, value) in line.into_iter().enumerate() {
                values[start + i * step] = value;
            }
        }
        step *= length;
    }
}

/// A plan with what goes in and what should come out.
struct Case {
    plan: FftPlan,
    input: Vec<f64>,
    /// With NaN where the result may be anything.
    wanted: Vec<f64>,
}

/// An array's values as they lie in memory, with NaN between them. Of half a
/// spectrum, each row's values that aren't the conjugate of another one.
fn laid_out(values: &[Value], plan: &FftPlan, array: &ArrayLayout) -> Vec<f64> {
    let (is_real, is_half) = (array.array_type == 2, array.array_type == 3);
    let mut buffer = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let (mut rest, mut at, mut is_kept) = (number, array.offsets[0], true);
        let dimensions = plan.lengths.iter().zip(&array.strides);
        for (dimension, (&length, &stride)) in dimensions.rev().enumerate() {
            let index = rest as u64 % length;
            is_kept &= dimension > 0 || !is_half || index <= length / 2;
            at += index * stride;
            rest /= length as usize;
        }
        if !is_kept {
            continue;
        }
        at += rest as u64 * array.distance;
        let parts = if is_real { &[value.re][..] } else { &[value.re, value.im][..] };
        let start = at as usize * parts.len();
        if buffer.len() < start + parts.len() {
            buffer.resize(start + parts.len(), f64::NAN);
        }
        buffer[start..start + parts.len()].copy_from_slice(parts);
    }
    buffer
}

impl Case {
    fn new(plan: FftPlan) -> Self {
        let lengths: Vec<usize> = plan.lengths.iter().map(|&length| length as usize).collect();
        let one: usize = lengths.iter().product();
        let count = one * plan.batch as usize;
        let is_real = plan.transform != Transform::C2c;
        let mut before: Vec<Value> = numbers(count * 2)
            .chunks(2)
            .map(|pair| Value::new(pair[0], if is_real { 0.0 } else { pair[1] }))
            .collect();
        let mut after = before.clone();
        let direction = match plan.direction {
            Direction::Inverse if !is_real => rustfft::FftDirection::Inverse,
            _ => rustfft::FftDirection::Forward,
        };
        for array in after.chunks_mut(one) {
            reference(array, &lengths, direction);
        }
        if plan.transform == Transform::C2r {
            // The inverse of what was just done, which multiplies.
            let times = before.iter().map(|value| value * one as f64).collect();
            (before, after) = (after, times);
        }
        let layout = plan.layout.clone().unwrap_or_else(|| plan.default_layout());
        let mut input = laid_out(&before, &plan, &layout.input);
        let wanted = laid_out(&after, &plan, &layout.output);
        if plan.placement == Placement::InPlace {
            input.resize(input.len().max(wanted.len()), f64::NAN);
        }
        Self { plan, input, wanted }
    }

    fn size(&self) -> usize {
        if self.plan.precision == Precision::Single { 4 } else { 8 }
    }

    fn encode(&self) -> Vec<u8> {
        let encoded = |value: &f64| match self.size() {
            4 => (*value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
        self.input.iter().flat_map(encoded).collect()
    }

    /// The line that `transform.cpp` reads.
    fn line(&self) -> String {
        let transform = self.plan.transform_types()[0];
        let placement = u8::from(self.plan.placement == Placement::OutOfPlace);
        let precision = u8::from(self.plan.precision == Precision::Double);
        let bytes = self.wanted.len() * self.size();
        let (lengths, batch) = (&self.plan.lengths, self.plan.batch);
        let mut line =
            format!("{placement} {transform} {precision} {batch} {bytes} {}", lengths.len());
        for length in lengths.iter().rev() {
            write!(line, " {length}").unwrap();
        }
        for array in self.plan.layout.iter().flat_map(|layout| [&layout.input, &layout.output]) {
            let [first, second] = array.offsets;
            write!(line, " {} {first} {second} {}", array.array_type, array.distance).unwrap();
            for stride in array.strides.iter().rev() {
                write!(line, " {stride}").unwrap();
            }
        }
        line + "\n"
    }

    /// How far the result is from the reference, in parts of its own size.
    fn error(&self, result: &[u8]) -> f64 {
        assert_eq!(result.len(), self.wanted.len() * self.size());
        let decoded = result.chunks(self.size()).map(|bytes| match bytes.len() {
            4 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()),
        });
        let (mut off, mut whole) = (0.0, 0.0);
        for (value, wanted) in decoded.zip(&self.wanted) {
            if !wanted.is_nan() {
                off += (value - wanted).powi(2);
                whole += wanted.powi(2);
            }
        }
        (off / whole).sqrt()
    }
}

/// Starts the program as the probe is started, with the stand-ins preloaded.
fn carry_out(library: &Library, cases: &[Case]) -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name);
    let program = build(directory.path());
    let place = ProbeDirectory::create(library, None, directory.path()).unwrap();
    let mut lines = String::new();
    for (number, case) in cases.iter().enumerate() {
        fs::write(inside(&format!("{number}.in")), case.encode()).unwrap();
        lines += &case.line();
    }
    fs::write(inside("cases"), lines).unwrap();
    let preload = probe().with_file_name("libgfxpack_miopen_preload.so");
    let mut command = place.command(library, &program, Some(&preload));
    let includes = format!(
        "-std=c++17 -O1 -w -fPIC -shared -D__HIPCC_RTC__ -I{} -I{}",
        beside("rocfft/cpu").display(),
        beside("hip/shim").display()
    );
    command.arg(&library.file).arg("c++").arg(includes).arg(directory.path()).args(&place.stubs);
    command
        .stdin(fs::File::open(inside("cases")).unwrap())
        .env("PATH", "/usr/bin:/bin")
        .env("GFXPACK_PRELOAD_DEVICE", "gfx90a 104")
        .env("GFXPACK_PRELOAD_NOTES", inside("notes"))
        .env("ROCFFT_RTC_PROCESS", "0")
        .env("ROCFFT_LAYER", "1")
        .env("ROCFFT_LOG_TRACE_PATH", inside("plans"));
    if let Some(sqlite) = &place.sqlite {
        command.env("GFXPACK_PRELOAD_SQLITE", sqlite);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    for (number, case) in cases.iter().enumerate() {
        let result = fs::read(inside(&format!("{number}.out"))).unwrap();
        let error = case.error(&result);
        let most = if case.size() == 4 { 1e-6 } else { 5e-15 };
        assert!(error < most, "{:?}: {error:e}", case.plan);
    }
    // The library's own log names the plans that a program creates.
    let log = fs::read(inside("plans")).unwrap();
    let logged = gfxpack_rocfft::read_trace("log", &log[..]).unwrap();
    let plans: Vec<&FftPlan> = cases.iter().map(|case| &case.plan).collect();
    assert_eq!(logged.plans.iter().collect::<Vec<_>>(), plans);
    assert_eq!((logged.unsupported, logged.damaged), (0, 0));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn in_precision(shape: &str, precision: &str) -> FftPlan {
    let precision_name = match precision {
        _ if !shape.starts_with('-') => precision,
        "sp" => "single",
        _ => "double",
    };
    shape.replace("{}", precision_name).parse().unwrap()
}

fn transforms(precision: &str) {
    let Some(library) = library() else { return };
    let plans: Vec<FftPlan> = SHAPES.iter().map(|shape| in_precision(shape, precision)).collect();
    let cases: Vec<Case> = plans.iter().cloned().map(Case::new).collect();
    let launched = carry_out(&library, &cases);
    // They are those that packages for these plans would hold.
    let (_, kernels) = asked(&library, &plans, "gfx90a");
    let asked: BTreeSet<String> = kernels.into_iter().map(|kernel| kernel.name).collect();
    assert!(launched.is_subset(&asked), "{:?}", launched.difference(&asked));
    assert!(launched.len() > SHAPES.len(), "{launched:?}");
}

#[test]
fn transforms_in_single_precision_are_right() {
    transforms("sp");
}

#[test]
fn transforms_in_double_precision_are_right() {
    transforms("dp");
}
