//! Real launches: kernels compiled for PoCL's device at build time, packaged, installed, looked up,
//! loaded and run; and the time until the first launch, with and without the package.
//!
//! An application is a process of its own, this binary started again, with PoCL's own cache empty,
//! so it has to compile kernels that it does not get from a kdb. PoCL's code is no AMD code object,
//! so the caches are opened without the check for the gfx target; its kdb has the name of a GPU,
//! which has no meaning here.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use gfxpack_kdb::{Row, WriteOptions};
use gfxpack_model::InstallLayout;
use gfxpack_package::Format;
use gfxpack_plan::kernel_package::{self, KdbToPackage, Release, SourceLicense};
use gfxpack_runtime::{
    Config, KdbDirectories, KernelCache, KernelKey, Layer, MissReason, Origin, Target,
    UserDirectory,
};
use gfxpack_tests::launch::{App, Argument, STAND_IN, Source, binary, make_dpkg_root};
use gfxpack_tests::project::{Run, command, finish, tool};
use libtest_mimic::{Arguments, Failed, Trial};

/// The first argument of this binary when it is an application.
const APPLICATION: &str = "application";

fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, part, dir] = &args[..]
        && first == APPLICATION
    {
        application(part, Path::new(dir))?;
        return Ok(ExitCode::SUCCESS);
    }
    let trials = vec![
        Trial::test("a_packaged_kernel_runs_without_a_compiler", || as_trial_result(packaged())),
        Trial::test("what_one_process_compiled_the_next_one_finds", || as_trial_result(kept())),
    ];
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}

fn as_trial_result(result: Result<()>) -> Result<(), Failed> {
    result.map_err(|error| format!("{error:#}").into())
}

/// Compiled, packaged, installed with dpkg, found where the package put it.
fn packaged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let objects = dir.join("objects");
    fs::create_dir(&objects)?;
    start("build", &objects)?;

    let kernels = kernels()?;
    let kdb = dir.join("built.kdb");
    let keys: Vec<KernelKey> = kernels.iter().map(Kernel::key).collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 1 << 20 }).collect();
    gfxpack_kdb::write(&kdb, &rows, &WriteOptions::default(), |index| {
        fs::read(objects.join(&keys[index].kernel_name))
    })?;
    let deb = package(&kdb, rows.len() as u64, dir)?;
    let root = dir.join("root");
    make_dpkg_root(&root)?;
    install(&deb, &root);
    // What is looked up is what the package brought.
    fs::remove_file(&kdb)?;

    let source = start("source", dir)?;
    let installed = start("package", &root)?;
    for (kernel, key) in kernels.iter().zip(&keys) {
        print_line(&format!(
            "first launch of {}: {} us from source, {} us from the package; {} bytes",
            kernel.source.file_name(),
            micros(&source, kernel)?,
            micros(&installed, kernel)?,
            fs::metadata(objects.join(&key.kernel_name))?.len(),
        ));
    }
    // A whole kdb that is installed is nothing to say a word about.
    ensure!(installed.stderr.is_empty(), "stderr: {}", installed.stderr);
    Ok(())
}

/// No package: compiled and kept by one process, read by the next.
fn kept() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let first = start("compile", dir.path())?;
    let warning = format!(
        "MIOpen(HIP): Warning [SQLiteBase] Missing system database file:{STAND_IN}.kdb \
         Performance may degrade\n"
    );
    let times = first.stderr.matches(&warning).count();
    ensure!(times == 1, "the warning was told {times} times:\n{}", first.stderr);
    let second = start("user", dir.path())?;
    for kernel in kernels()? {
        print_line(&format!(
            "first launch of {}: {} us compiled and kept, {} us from the user's kdb",
            kernel.source.file_name(),
            micros(&first, &kernel)?,
            micros(&second, &kernel)?,
        ));
    }
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "times are there to be read; applications have no other way"
)]
fn print_line(line: &str) {
    println!("{line}");
}

/// Runs this binary as an application with an empty PoCL cache.
fn start(part: &str, dir: &Path) -> Result<Run> {
    let pocl = tempfile::tempdir()?;
    let home = tempfile::tempdir()?;
    let mut command = command(std::env::current_exe()?);
    command.args([APPLICATION, part]).arg(dir);
    command.env("POCL_CACHE_DIR", pocl.path()).env("HOME", home.path());
    command.env_remove("POCL_KERNEL_CACHE").env_remove("POCL_DEBUG");
    let run = finish(command);
    ensure!(run.code == Some(0), "application `{part}`: {:?}\n{}", run.code, run.stderr);
    Ok(run)
}

/// What an application printed of a kernel: microseconds from the wish for it
/// to its result.
fn micros(run: &Run, kernel: &Kernel) -> Result<u128> {
    let name = kernel.source.file_name();
    let line = run.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no time of {name} in:\n{}", run.stdout))?.parse()?)
}

fn package(kdb: &Path, kernels: u64, dir: &Path) -> Result<PathBuf> {
    let license = SourceLicense {
        license: "MIT OR Apache-2.0".to_owned(),
        copyright: "The gfxpack developers".to_owned(),
    };
    let release = Release {
        library: "gfxpack-kernels".to_owned(),
        description: "For tests on a CPU.".to_owned(),
        homepage: "https://example.org/gfxpack".to_owned(),
        version: "1.0.0".to_owned(),
        revision: "1".to_owned(),
        maintainer: "Kernel Packagers <kernels@example.org>".to_owned(),
        licenses: [("gemm_tiled.cl".to_owned(), license)].into(),
        layout: LAYOUT,
        consumer: gfxpack_plan::consumer::Consumer::Miopen,
        shares_file: false,
        exact_package: None,
        name_template: gfxpack_model::package_name::DEFAULT_NAME_TEMPLATE.to_owned(),
        source_date_epoch: 1_700_000_000,
    };
    let contents = KdbToPackage {
        target: STAND_IN.parse()?,
        kdb: kdb.to_owned(),
        kernels,
        missing: 0,
        compiler: "PoCL".to_owned(),
        tuning: Vec::new(),
    };
    let spec = kernel_package::spec(&release, &contents);
    Ok(Format::DEB.write(&spec, dir, 1, None)?.path)
}

fn install(deb: &Path, root: &Path) {
    let log = format!("--log={}", root.join("dpkg.log").display());
    let root_option = format!("--root={}", root.display());
    let deb = deb.to_str().expect("a plain path");
    let dpkg = ["dpkg", &root_option, &log, "--force-not-root", "-i", deb];
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        tool(dpkg[0], &dpkg[1..], root);
    } else {
        // dpkg gives files to root: to the root of a user namespace then.
        tool("unshare", &[&["--map-root-user", "--"], &dpkg[..]].concat(), root);
    }
}

const LAYOUT: InstallLayout = InstallLayout::Rocm { version: None };

/// One of the applications; prints the time of each kernel's first launch.
fn application(part: &str, dir: &Path) -> Result<()> {
    let app = App::open()?;
    let system = dir.join(LAYOUT.kdb_dir().trim_start_matches('/'));
    let cache = cache(&system, dir)?;
    for kernel in kernels()? {
        let key = kernel.key();
        let start = Instant::now();
        let program = match part {
            "build" | "source" => app.build(&kernel.source)?,
            "package" | "user" => {
                let lookup = cache.get(&key);
                let found = lookup.found.with_context(|| format!("{:?}", lookup.misses))?;
                let (layer, file) = match part {
                    "package" => (Layer::System, system.join(format!("{STAND_IN}.kdb"))),
                    _ => (Layer::User, dir.join(format!("{STAND_IN}.ukdb"))),
                };
                ensure!(found.layer == layer, "found in {:?}, not {layer:?}", found.layer);
                ensure!(found.file.as_ref() == Some(&file), "found in {:?}", found.file);
                app.load(&found.code_object)?
            }
            "compile" => {
                let compile = || binary(&app.build(&kernel.source)?);
                let compiled = cache.get_or_compile(&key, compile)?;
                ensure!(compiled.origin == Origin::Compiled, "came {}", compiled.origin);
                ensure!(compiled.not_stored.is_none(), "{:?}", compiled.not_stored);
                let absent = |miss: &gfxpack_runtime::Miss| {
                    matches!(miss.reason, MissReason::NoFile | MissReason::NoKernel)
                };
                ensure!(compiled.misses.iter().all(absent), "{:?}", compiled.misses);
                app.load(&compiled.code_object)?
            }
            other => bail!("failed to be application `{other}`"),
        };
        let output = kernel.run(&app, &program)?;
        print_line(&format!("{} {}", kernel.source.file_name(), start.elapsed().as_micros()));
        kernel.check(&output)?;
        if part == "build" {
            // After the launch, so that the code is there for its work-group size and not
            // only in PoCL's intermediate form.
            fs::write(dir.join(&key.kernel_name), binary(&program)?)?;
        }
        if part == "package" {
            // The same once more as most applications ask for it.
            let never = || -> Result<Vec<u8>, Infallible> { unreachable!("it is installed") };
            let again = cache.get_or_compile(&key, never)?;
            ensure!(matches!(again.origin, Origin::System(_)), "came {}", again.origin);
            // Keys are byte-exact: one blank more is another kernel.
            let other = KernelKey { kernel_args: format!(" {}", key.kernel_args), ..key };
            ensure!(cache.get(&other).found.is_none(), "found a key that is not there");
        }
    }
    Ok(())
}

fn cache(system: &Path, user: &Path) -> Result<KernelCache> {
    let target: Target = STAND_IN.parse()?;
    let directories = KdbDirectories::new([system], UserDirectory::Dir(user.to_owned()));
    let mut config = Config::new(target, directories);
    config.verify_target = false;
    Ok(KernelCache::open(config))
}

/// A kernel with the problem that it is given.
struct Kernel {
    source: Source,
    problem: Problem,
}

#[derive(Clone, Copy)]
enum Problem {
    /// c = a * b, of `m` by `k` and `k` by `n`.
    Gemm { m: usize, n: usize, k: usize },
    /// Of each of `outer` rows of `length`.
    Softmax { outer: usize, length: usize },
}

/// In the order of their keys.
fn kernels() -> Result<[Kernel; 2]> {
    let gemm = Source::find("gemm_tiled.cl", &["-DTILE_M=32", "-DTRANSPOSE_A", "-DTRANSPOSE_B"])?;
    let softmax = Source::find("softmax.cl", &["-DALGORITHM=1", "-DDATA_TYPE=0", "-DWG=256"])?;
    Ok([
        // No multiple of any tile.
        Kernel { source: gemm, problem: Problem::Gemm { m: 75, n: 70, k: 37 } },
        Kernel { source: softmax, problem: Problem::Softmax { outer: 9, length: 601 } },
    ])
}

/// Made-up numbers from -1 to 1, the same for the same seed.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

impl Kernel {
    fn key(&self) -> KernelKey {
        KernelKey::for_source(self.source.file_name(), &self.source.options, "gfx906")
    }

    fn run(&self, app: &App, program: &opencl3::program::Program) -> Result<Vec<f32>> {
        use Argument::{F32, Input, Output, U32, U64};
        match self.problem {
            Problem::Gemm { m, n, k } => {
                let (a, b) = (numbers(1, k * m), numbers(2, n * k));
                let sizes = [m, n, k, m, k, n].map(|size| U32(size as u32));
                let mut arguments = vec![Input(&a), Input(&b), Output(m * n)];
                arguments.extend(sizes);
                arguments.extend([U64(0), U64(0), U64(0), F32(0.75), F32(0.0)]);
                let groups = [n.div_ceil(32), m.div_ceil(32), 1];
                app.run(program, "gfxpack_gemm", &arguments, groups)
            }
            Problem::Softmax { outer, length } => {
                let x = numbers(3, outer * length);
                let sizes = [outer, length, 1].map(|size| U32(size as u32));
                let mut arguments = vec![Input(&x), Output(x.len())];
                arguments.extend(sizes);
                arguments.extend([F32(1.0), F32(0.0)]);
                app.run(program, "gfxpack_softmax_forward", &arguments, [4, 1, 1])
            }
        }
    }

    /// Holds the output against the same in plain Rust.
    fn check(&self, output: &[f32]) -> Result<()> {
        let (want, tolerance) = match self.problem {
            Problem::Gemm { m, n, k } => {
                // Both transposed: a is k by m in memory, b is n by k.
                let (a, b) = (numbers(1, k * m), numbers(2, n * k));
                let element = |at: usize| {
                    let (row, column) = (at / n, at % n);
                    let product = |i| f64::from(a[i * m + row]) * f64::from(b[column * k + i]);
                    0.75 * (0..k).map(product).sum::<f64>()
                };
                ((0..m * n).map(element).collect::<Vec<f64>>(), 5e-6)
            }
            Problem::Softmax { outer, length } => {
                let x = numbers(3, outer * length);
                let row = |row: &[f32]| {
                    let powers: Vec<f64> = row.iter().map(|x| f64::from(*x).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    powers.into_iter().map(move |power| power / sum)
                };
                (x.chunks(length).flat_map(row).collect(), 1e-7)
            }
        };
        ensure!(output.len() == want.len(), "{} numbers, not {}", output.len(), want.len());
        for (at, (got, want)) in output.iter().zip(&want).enumerate() {
            // Written so that NaN is wrong.
            let near = (f64::from(*got) - want).abs() <= tolerance;
            ensure!(near, "{}: element {at} is {got}, not {want}", self.source.file_name());
        }
        Ok(())
    }
}
