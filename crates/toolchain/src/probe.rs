//! Asks a toolchain's programs about the toolchain.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gfxpack_model::Error;
use gfxpack_process::watch::{Recorder, recorded};
use gfxpack_process::{self as process, Cancel, Output, Program, ProgramEnd, interrupted};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use serde::{Deserialize, Serialize};

use crate::discover::{Candidate, Driver};
use crate::error::{self, Missing};
use crate::probe_cache::ProbeRecorder;

/// Far longer than any program takes, for machines under load.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Of these, every supported release knows at least one.
const PROBE_PROCESSORS: [&str; 3] = ["gfx906", "gfx1030", "gfx942"];
/// clang's arguments for an empty source in HIP.
const HIP_ARGS: &[&str] =
    &["-x", "hip", "--offload-arch=gfx906", "--cuda-device-only", "-nogpuinc", "-c"];
/// The version of HIP that clang's driver takes if it finds none.
///
/// Source: LLVM, `RocmInstallationDetector`, `DefaultVersionMajor`.
const ASSUMED_VERSION: [u32; 3] = [3, 5, 0];
/// clang's arguments for an empty source in OpenCL C and in assembly.
const OTHER_LANGUAGES: [&[&str]; 2] = [
    &["-x", "cl", "-target", "amdgcn-amd-amdhsa"],
    &["-x", "assembler", "-target", "amdgcn--amdhsa"],
];

/// Runs programs in a scratch directory to ask them about the toolchain.
pub(crate) struct ProgramRunner<'a> {
    /// Their working directory.
    pub(crate) scratch: &'a Path,
    environment: &'a [(OsString, OsString)],
    cancel: &'a Cancel,
    /// Records the programs' file accesses, if necessary.
    watch: Option<&'a ProbeRecorder<'a>>,
}

/// A toolchain's answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probed {
    pub(crate) found: FoundParts,
    pub(crate) clang_version: String,
    /// The processors that clang knows.
    pub(crate) processors: BTreeSet<String>,
    /// Configuration files that clang's drivers read: their options come before those of the
    /// command line, in all languages.
    pub(crate) configuration: BTreeSet<PathBuf>,
}

impl Probed {
    /// Asks a candidate's programs.
    pub(crate) fn ask(candidate: &Candidate, runner: &ProgramRunner<'_>) -> Result<Self, Error> {
        let (mut found, mut configuration, languages) = match &candidate.driver {
            Driver::Hipcc(hipcc) => {
                let (found, configuration) = ask_hipcc(runner, hipcc)?;
                (found, configuration, OTHER_LANGUAGES.to_vec())
            }
            Driver::Clang(clang) => {
                let libs = candidate.device_libs.as_deref().ok_or(Missing::DeviceLibs)?;
                let rocm = candidate.rocm.as_deref().unwrap_or(Path::new("/usr"));
                let languages = [&[HIP_ARGS], &OTHER_LANGUAGES[..]].concat();
                (ask_clang(runner, clang, rocm, libs)?, BTreeSet::new(), languages)
            }
        };
        let clang = &found.clang;
        let ((processors, version), drivers) = rayon::join(
            || (runner.processors(clang), runner.clang_version(clang)),
            || runner.drivers(clang, &languages),
        );
        let (programs, read) = drivers?;
        let (clang_version, processors) = (version?, processors?);
        configuration.extend(read);
        found.programs.extend(programs);
        Ok(Self { clang_version, processors, configuration, found })
    }
}

/// The paths of a toolchain's parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundParts {
    pub(crate) clang: PathBuf,
    /// Programs that are run for a source.
    pub(crate) programs: BTreeSet<PathBuf>,
    pub(crate) resource_dir: PathBuf,
    pub(crate) device_libs: PathBuf,
    pub(crate) rocm: PathBuf,
    /// The version of HIP that the driver finds, if it finds any.
    pub(crate) hip_version: Option<[u32; 3]>,
}

impl<'a> ProgramRunner<'a> {
    pub(crate) fn new(
        scratch: &'a Path,
        environment: &'a [(OsString, OsString)],
        cancel: &'a Cancel,
    ) -> Self {
        Self { scratch, environment, cancel, watch: None }
    }

    /// The same, with file accesses recorded by `watch`.
    pub(crate) fn watched_by(&self, watch: &'a ProbeRecorder<'a>) -> Self {
        Self { watch: Some(watch), ..*self }
    }

    fn ask(&self, program: &Path, arguments: &[&str]) -> Result<Output, Error> {
        let (output, _) = self.attempt(program, arguments)?;
        successful(program, arguments, output)
    }

    /// The version in clang's output: `15.0.6` for `Debian clang version 15.0.6`.
    pub(crate) fn clang_version(&self, clang: &Path) -> Result<String, Error> {
        let output = self.ask(clang, &["--version"])?;
        crate::made_by::clang_version(&output.stdout)
            .map(str::to_owned)
            .ok_or_else(|| nonsense(clang, "`--version` names no clang version"))
    }

    /// Asks clang's driver for the programs that it would run for each language, given by its
    /// arguments, and for the configuration files that it reads: languages may have different
    /// linkers, and targets different files.
    fn drivers(
        &self,
        clang: &Path,
        languages: &[&[&str]],
    ) -> Result<(BTreeSet<PathBuf>, BTreeSet<PathBuf>), Error> {
        let (mut run, mut configuration) = (BTreeSet::new(), BTreeSet::new());
        for language in languages {
            let args = [*language, &["-###", "-nogpulib", "/dev/null", "-o", "probe.o"]].concat();
            let (output, read) = self.attempt(clang, &args)?;
            configuration.extend(self.configured(clang, &args, &output, read)?);
            run.extend(programs(&output.stderr));
        }
        Ok((run, configuration))
    }

    /// The configuration files that a driver read. It prints some of them; files that these include
    /// are found by comparing with a run without them.
    ///
    /// Source: Clang Compiler User's Manual, "Configuration files".
    fn configured(
        &self,
        program: &Path,
        arguments: &[&str],
        output: &Output,
        read: FilesRead,
    ) -> Result<BTreeSet<PathBuf>, Error> {
        let lines = output.stdout.lines().chain(output.stderr.lines());
        let named = lines.filter_map(|line| line.strip_prefix("Configuration file: "));
        let mut files: BTreeSet<PathBuf> = named.map(PathBuf::from).collect();
        if files.is_empty() {
            return Ok(files);
        }
        // Without its configuration, clang may not find the device libraries and headers.
        let without = ["--no-default-config", "-nogpulib", "-nogpuinc"];
        let (plain, read_always) = self.attempt(program, &[arguments, &without].concat())?;
        if let (true, Some(read), Some(always)) = (plain.ok(), read, read_always) {
            files.extend(read.difference(&always).cloned());
        }
        Ok(files)
    }

    /// The gfx names that clang's AMDGPU backend knows.
    pub(crate) fn processors(&self, clang: &Path) -> Result<BTreeSet<String>, Error> {
        let target = "--target=amdgcn-amd-amdhsa";
        let output = self.ask(clang, &[target, "-nogpulib", "--print-supported-cpus"])?;
        let both = format!("{}\n{}", output.stdout, output.stderr);
        let names: BTreeSet<String> = both
            .lines()
            .map(str::trim)
            .filter(|name| name.starts_with("gfx") && !name.contains(char::is_whitespace))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return Err(nonsense(clang, "it has no AMDGPU backend"));
        }
        Ok(names)
    }

    /// Runs a program in the scratch directory. Returns its output, even if it fails, and the files
    /// that it read, if known.
    pub(crate) fn attempt(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<(Output, FilesRead), Error> {
        let arguments = arguments.iter().map(|arg| arg.as_ref().to_owned()).collect();
        let recorder = Recorder::of_answer(self.scratch, self.watch.is_some());
        let (output, record) =
            recorded(recorder, |record| self.run_with(program, arguments, record))?;
        let read = self.watch.and_then(|watch| watch.take(program, record));
        Ok((output, read))
    }

    fn run_with(
        &self,
        program: &Path,
        arguments: Vec<OsString>,
        record: Option<&Recorder>,
    ) -> Result<Output, Error> {
        let output = process::run(
            &Program {
                path: program,
                arguments,
                directory: self.scratch,
                environment: self.environment,
                temp_dir: self.scratch,
                time_limit: TIME_LIMIT,
                record,
            },
            self.cancel,
        )?;
        if let ProgramEnd::Cancelled = output.end {
            return Err(interrupted());
        }
        Ok(output)
    }

    /// Compiles a module's text to bitcode with clang.
    pub(crate) fn bitcode(&self, clang: &Path, module: &str) -> Result<Vec<u8>, Error> {
        let (text, made) = (self.scratch.join("module.ll"), self.scratch.join("module.bc"));
        fs::write(&text, module).map_err(error::io("write", &text))?;
        let target = "--target=amdgcn-amd-amdhsa";
        let arguments = ["-x", "ir", target, "-nogpulib", "-emit-llvm", "-c", "module.ll"];
        self.ask(clang, &[&arguments[..], &["-o", "module.bc"]].concat())?;
        fs::read(&made).map_err(error::io("read", made))
    }

    /// The program with links resolved, and all shared libraries that it loads.
    pub(crate) fn with_libraries(&self, program: &Path) -> Result<Vec<PathBuf>, Error> {
        let real = fs::canonicalize(program).map_err(error::io("read", program))?;
        let libraries = self.libraries(&real)?;
        Ok([vec![real], libraries].concat())
    }

    /// The shared libraries that a program would load, as its loader lists them. A script or a
    /// static program has none.
    ///
    /// Source: ld.so(8), `--list`.
    pub(crate) fn libraries(&self, program: &Path) -> Result<Vec<PathBuf>, Error> {
        let Some(loader) = loader(program) else { return Ok(Vec::new()) };
        let arguments = vec!["--list".into(), program.into()];
        // A preloaded library would be listed.
        let output = self.run_with(&loader, arguments, None)?;
        let libraries = output.stdout.lines().filter_map(|line| {
            let path = line.split_once("=>").map_or(line, |(_, path)| path).trim();
            path.split_once(" (").map(|(path, _)| PathBuf::from(path.trim()))
        });
        Ok(libraries.filter(|path| path.is_absolute() && path.is_file()).collect())
    }
}

/// The files that a program read, if known.
pub(crate) type FilesRead = Option<BTreeSet<PathBuf>>;

/// The loader of a program's libraries, if it has one.
fn loader(program: &Path) -> Option<PathBuf> {
    let data = ReadCache::new(fs::File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &data).ok()?;
    let name = segments.iter().find_map(|segment| segment.interpreter(endian, &data).ok()?)?;
    Some(OsStr::from_bytes(name).into())
}

/// Asks hipcc for the commands that it would run. These name clang, the linker, the device
/// libraries and the headers, whatever the layout of the installation.
fn ask_hipcc(
    runner: &ProgramRunner<'_>,
    hipcc: &Path,
) -> Result<(FoundParts, BTreeSet<PathBuf>), Error> {
    let source = runner.scratch.join("probe.hip");
    fs::write(&source, "").map_err(error::io("write", &source))?;
    let mut last = None;
    for processor in PROBE_PROCESSORS {
        let arch = format!("--offload-arch={processor}");
        let args = ["-###", "-v", &arch, "--cuda-device-only", "-x", "hip", "-c"];
        let args = [&args[..], &["probe.hip", "-o", "probe.o"]].concat();
        let (output, read) = runner.attempt(hipcc, &args)?;
        match successful(hipcc, &args, output) {
            Ok(output) => {
                let found = parse_commands(&output.stderr)
                    .ok_or_else(|| nonsense(hipcc, "`-###` names no compiler command"))?;
                return Ok((found, runner.configured(hipcc, &args, &output, read)?));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("at least one processor was tried"))
}

/// The error of a program whose output is not as expected.
fn nonsense(program: &Path, reason: &str) -> Error {
    Error::internal(
        format!("failed to probe `{}`: {reason}", program.display()),
        "run it by hand to see what it says; --hipcc and --clang choose another",
    )
}

/// The output of a program, or an error if it failed.
pub(crate) fn successful(
    program: &Path,
    arguments: &[&str],
    output: Output,
) -> Result<Output, Error> {
    if output.ok() {
        return Ok(output);
    }
    // Commands may follow an error.
    let error = output.stderr.lines().rfind(|line| line.contains("error:"));
    let diagnostic = error.or_else(|| output.stderr.lines().last()).unwrap_or("no output").trim();
    let reason = format!("`{}`: {diagnostic}", arguments.join(" "));
    Err(nonsense(program, &reason))
}

/// HIP's version in what clang's driver says of where it is installed; `None` if it finds none.
fn hip_version(text: &str) -> Option<[u32; 3]> {
    let found = text.lines().find_map(|line| line.strip_prefix("Found HIP installation: "))?;
    let (_path, version) = found.rsplit_once(", version ")?;
    let version = numbers(version.split(|c: char| c.is_whitespace() || c == '-').next()?);
    version.filter(|version| *version != ASSUMED_VERSION)
}

fn numbers(dotted: &str) -> Option<[u32; 3]> {
    let mut parts = dotted.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?])
}

/// The quoted commands that `-###` prints.
fn commands(text: &str) -> impl Iterator<Item = Vec<String>> {
    text.lines()
        .filter(|line| line.trim_start().starts_with('"'))
        .filter_map(|line| shlex::split(line.trim()))
}

/// The programs of the commands that `-###` prints.
fn programs(text: &str) -> BTreeSet<PathBuf> {
    let programs = commands(text).filter_map(|args| Some(PathBuf::from(args.first()?)));
    // A program that is not found is printed without its directory.
    programs.filter(|program| program.is_absolute()).collect()
}

/// Parses the commands that hipcc would run.
fn parse_commands(text: &str) -> Option<FoundParts> {
    let is_compiler = |args: &Vec<String>| args.get(1).is_some_and(|arg| arg == "-cc1");
    let cc1 = commands(text).find(is_compiler)?;
    let after = |option: &str| {
        let mut pairs = cc1.windows(2).filter(|pair| pair[0] == option);
        pairs.next().map(|pair| PathBuf::from(&pair[1]))
    };
    let include = after("-idirafter").or_else(|| {
        let isystem = cc1.windows(2).filter(|pair| pair[0].contains("isystem"));
        let mut dirs = isystem.map(|pair| PathBuf::from(&pair[1]));
        dirs.find(|dir| dir.join("hip/hip_runtime.h").is_file())
    });
    Some(FoundParts {
        clang: PathBuf::from(&cc1[0]),
        programs: programs(text),
        resource_dir: after("-resource-dir")?,
        device_libs: after("-mlink-builtin-bitcode")?.parent()?.to_owned(),
        rocm: include
            .and_then(|dir| dir.parent().map(Path::to_owned))
            .unwrap_or_else(|| "/usr".into()),
        hip_version: hip_version(text),
    })
}

/// Asks a clang; headers and device libraries are at the candidate's paths.
fn ask_clang(
    runner: &ProgramRunner<'_>,
    clang: &Path,
    rocm: &Path,
    device_libs: &Path,
) -> Result<FoundParts, Error> {
    let resource_dir = runner.ask(clang, &["-print-resource-dir"])?.stdout;
    let lld = runner.ask(clang, &["-print-prog-name=ld.lld"])?.stdout;
    let lld = PathBuf::from(lld.trim());
    if !lld.is_absolute() {
        return Err(nonsense(clang, "it finds no ld.lld, which links code objects"));
    }
    Ok(FoundParts {
        clang: clang.to_owned(),
        programs: BTreeSet::from([lld]),
        resource_dir: PathBuf::from(resource_dir.trim()),
        device_libs: device_libs.to_owned(),
        hip_version: None,
        rocm: rocm.to_owned(),
    })
}

/// HIP's version in its headers: `#define HIP_VERSION_MAJOR 5` and so on.
pub(crate) fn header_version(rocm: &Path) -> Option<[u32; 3]> {
    let text = fs::read_to_string(rocm.join("include/hip/hip_version.h")).ok()?;
    let number = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("#define") && words.next() == Some(name))
                .then(|| words.next()?.parse().ok())
                .flatten()
        })
    };
    Some([number("HIP_VERSION_MAJOR")?, number("HIP_VERSION_MINOR")?, number("HIP_VERSION_PATCH")?])
}

/// The ISA versions that the device libraries in a directory know.
pub(crate) fn isas(device_libs: &Path) -> Result<BTreeSet<String>, Error> {
    let entries = fs::read_dir(device_libs).map_err(error::io("read", device_libs))?;
    let isas: BTreeSet<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let isa = name.strip_prefix("oclc_isa_version_")?;
            let isa = isa.strip_suffix(".bc")?;
            Some(isa.strip_suffix(".amdgcn").unwrap_or(isa).to_owned())
        })
        .collect();
    if isas.is_empty() { Err(Missing::DeviceLibs.into()) } else { Ok(isas) }
}

/// The files of hipcc: it may be a wrapper that starts scripts beside it.
pub(crate) fn wrapper_files(hipcc: &Path) -> Vec<PathBuf> {
    let siblings =
        ["hipcc.pl", "hipcc.bin", "hipconfig", "hipconfig.pl", "hipconfig.bin", "hipvars.pm"];
    let real = fs::canonicalize(hipcc).unwrap_or_else(|_| hipcc.to_owned());
    let mut files = vec![hipcc.to_owned()];
    for dir in [hipcc.parent(), real.parent()].into_iter().flatten() {
        files.extend(siblings.iter().map(|name| dir.join(name)).filter(|file| file.is_file()));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let found = |version: &str| format!("x\nFound HIP installation: /a b, version {version}\n");
        assert_eq!(hip_version(&found("5.2.21153-0")), Some([5, 2, 21153]));
        assert_eq!(hip_version(&found("6.1.40091-a8dbc0c19")), Some([6, 1, 40091]));
        assert_eq!(hip_version(&found("3.5.0")), None);
        assert_eq!(hip_version("clang version 15"), None);
    }

    #[test]
    fn planned_commands_name_the_parts() {
        let text = concat!(
            "Debian clang version 15.0.6\n",
            " \"/opt/r/lib/llvm/bin/clang-17\" \"-cc1\" \"-mlink-builtin-bitcode\" ",
            "\"/opt/r/amdgcn/bitcode/hip.bc\" \"-resource-dir\" \"/opt/r/lib/clang/17\" ",
            "\"-idirafter\" \"/opt/r/include\" \"-x\" \"hip\" \"a b.hip\"\n",
            " \"/opt/r/lib/llvm/bin/lld\" \"-flavor\" \"gnu\"\n",
            " \"/opt/r/lib/llvm/bin/clang-offload-bundler\" \"-type=o\"\n \"ld.lld\"\n",
        );
        let found = parse_commands(text).unwrap();
        assert_eq!(found.clang, Path::new("/opt/r/lib/llvm/bin/clang-17"));
        let programs = ["clang-17", "clang-offload-bundler", "lld"];
        let programs = programs.map(|name| Path::new("/opt/r/lib/llvm/bin").join(name));
        assert_eq!(found.programs, programs.into());
        assert_eq!(found.device_libs, Path::new("/opt/r/amdgcn/bitcode"));
        assert_eq!(found.resource_dir, Path::new("/opt/r/lib/clang/17"));
        assert_eq!(found.rocm, Path::new("/opt/r"));
        assert!(parse_commands("clang: error: no such thing\n").is_none());
    }
}
