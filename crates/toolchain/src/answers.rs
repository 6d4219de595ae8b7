//! What a toolchain's programs say of it, kept between runs as long as nothing
//! that the answers rest on has changed.
//!
//! | answer | asked | rests on |
//! | --- | --- | --- |
//! | clang, linker, directories | `hipcc -###`, or clang's `-print-…` | the wrapper with its scripts and their interpreter; whatever it finds by `PATH` and the environment; the ROCm prefixes that it and clang look into; clang itself and its configuration files |
//! | HIP's version | `hipcc --version`, or a header | the same, and the prefixes' version files |
//! | clang's version, processors | clang | clang and its shared libraries |
//! | configuration files | clang's `-v` | the directories that it looks into |
//! | shared libraries | `ldd` | clang and lld; the loader's cache and configuration, the directories named by `RUNPATH` and `LD_LIBRARY_PATH`, and the libraries |
//!
//! All of that is looked at anew at every start, by identity (see
//! [`crate::witness`]): rather too much than too little, since asking again
//! costs half a second. Of an interpreter only the program is looked at, not
//! its library, and of the machine its name. What the directories hold that
//! are named in the answers is no answer: their files are hashed at every start.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use gfxpack_model::Digest;
use gfxpack_model::digest::Hasher;
use gfxpack_process::{Moment, touch, write_atomic};
use serde::{Deserialize, Serialize};

use crate::configuration::Configuration;
use crate::discover::{Candidate, Driver, OPT};
use crate::error::ToolchainError;
use crate::loader;
use crate::probe::{self, Asker, Found};
use crate::witness::Witness;

/// Where programs may be named in full: `#!/usr/bin/perl`.
const SYSTEM_PATH: [&str; 2] = ["/usr/bin", "/bin"];
/// Prefixes that hipcc and clang try besides their own.
///
/// Source: llvm-project, clang/lib/Driver/ToolChains/AMDGPU.cpp,
/// `getInstallationPathCandidates`; HIPCC, bin/hipvars.pm.
const PREFIXES: [&str; 3] = ["/usr", "/usr/local", "/opt/rocm"];
/// Below a prefix: directories whose files decide.
const READ: [&str; 9] = [
    "bin",
    "llvm/bin",
    "lib/llvm/bin",
    "hip/bin",
    "lib/clang",
    "lib/llvm/lib/clang",
    "share/hip",
    ".info",
    "include/hip",
];
/// Below a prefix: what decides by being there.
const NOTICED: [&str; 9] = [
    "lib",
    "lib64",
    "lib/.hipInfo",
    "lib/bitcode",
    "lib/llvm",
    "llvm",
    "hip",
    "amdgcn/bitcode",
    "lib64/amdgcn/bitcode",
];
/// Directories of clang's configuration files, besides its own.
const CLANG_CONFIGURATION: &str = "/etc/clang";
/// Variables of the environment that name a directory.
const NAMING: [&str; 4] = ["ROCM_PATH", "HIP_PATH", "HIP_CLANG_PATH", "DEVICE_LIB_PATH"];

/// What a toolchain's programs say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answers {
    pub(crate) found: Found,
    pub(crate) clang_version: String,
    /// The processors that clang knows.
    pub(crate) processors: BTreeSet<String>,
    /// clang and its linker behind all links, and their shared libraries.
    pub(crate) programs: Vec<PathBuf>,
    /// What clang's drivers read besides.
    pub(crate) configuration: Configuration,
    /// Where the loader looks for those.
    searched: BTreeSet<PathBuf>,
}

impl Answers {
    /// Asks.
    pub(crate) fn ask(candidate: &Candidate, ask: &Asker<'_>) -> Result<Self, ToolchainError> {
        let found = match &candidate.driver {
            Driver::Hipcc(hipcc) => probe::ask_hipcc(ask, hipcc)?,
            Driver::Clang(clang) => {
                let libs = candidate.device_libs.as_deref().ok_or(ToolchainError::NoDeviceLibs)?;
                let rocm = candidate.rocm.as_deref().unwrap_or(Path::new("/usr"));
                probe::ask_clang(ask, clang, rocm, libs)?
            }
        };
        let ((clang_version, processors, configuration), (clang, lld)) = rayon::join(
            || {
                let clang = &found.clang;
                (ask.clang_version(clang), ask.processors(clang), ask.configuration(clang))
            },
            || {
                let lld = found.lld.as_ref().map(|lld| ask.with_libraries(lld));
                (ask.with_libraries(&found.clang), lld.transpose())
            },
        );
        let (clang_version, processors) = (clang_version?, processors?);
        let mut configuration = configuration?;
        configuration.add(&found.configuration);
        let mut programs = clang?;
        programs.extend(lld?.into_iter().flatten());
        let searched = programs.iter().flat_map(|file| loader::searched(file)).collect();
        Ok(Self { found, clang_version, processors, programs, configuration, searched })
    }
}

/// The answers of one candidate's programs, in a file below the cache.
pub(crate) struct Kept<'a> {
    candidate: &'a Candidate,
    environment: &'a [(OsString, OsString)],
    file: PathBuf,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Record {
    /// What the answers rest on, and the answers themselves.
    seal: Digest,
    answers: Answers,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(
        cache: &Path,
        candidate: &'a Candidate,
        environment: &'a [(OsString, OsString)],
    ) -> Self {
        let Candidate { driver, rocm, device_libs, own_prefix } = candidate;
        let is_hipcc = matches!(driver, Driver::Hipcc(_));
        let path = |path: Option<&PathBuf>| {
            path.map_or_else(Vec::new, |path| path.as_os_str().as_encoded_bytes().to_vec())
        };
        let machine = rustix::system::uname();
        let digest = Hasher::new("gfxpack answers 1")
            .field(driver.path().as_os_str().as_encoded_bytes())
            .field(&[u8::from(is_hipcc), u8::from(*own_prefix)])
            .field(&path(rocm.as_ref()))
            .field(&path(device_libs.as_ref()))
            .list(environment.iter().map(|(name, _)| name.as_encoded_bytes()))
            .list(environment.iter().map(|(_, value)| value.as_encoded_bytes()))
            .field(machine.nodename().to_bytes())
            .finish();
        Self { candidate, environment, file: cache.join("answers").join(digest.to_string()) }
    }

    /// What was answered before, if it would be answered again. A damaged
    /// file is none.
    pub(crate) fn read(&self) -> Option<Answers> {
        let Record { seal, answers } = serde_json::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let holds = self.seal(&answers, &self.witness(&answers)) == seal;
        holds.then(|| {
            touch(&self.file);
            answers
        })
    }

    /// Keeps answers that were asked for from the moment on, if nothing that
    /// they rest on has changed since or just before. Where that is
    /// impossible, later runs ask again.
    pub(crate) fn write(&self, answers: &Answers, asked: Moment) {
        let witness = self.witness(answers);
        if !witness.was_settled(asked.seconds()) {
            return;
        }
        let record = Record { seal: self.seal(answers, &witness), answers: answers.clone() };
        // Paths that are no text can't be kept.
        let written = serde_json::to_vec(&record).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|text| write_atomic(&self.file, &[&text])) {
            tracing::debug!(%error, "a toolchain's answers are not kept");
        }
    }

    fn seal(&self, answers: &Answers, witness: &Witness) -> Digest {
        Hasher::new("gfxpack seal 1")
            .field(witness.digest().as_ref())
            .field(&serde_json::to_vec(answers).unwrap_or_default())
            .finish()
    }

    /// Looks at everything that the answers rest on.
    fn witness(&self, answers: &Answers) -> Witness {
        let mut witness = Witness::default();
        self.look_at_path(&mut witness);
        self.look_at_driver(&mut witness);
        loader::look(&mut witness);
        witness.look_into(Path::new(CLANG_CONFIGURATION));
        let Answers { found, programs, configuration, searched, .. } = answers;
        configuration.dirs.iter().for_each(|dir| witness.look_into(dir));
        let Found { clang, lld, resource_dir, device_libs, rocm, .. } = found;
        for path in [clang, resource_dir, device_libs, rocm].into_iter().chain(lld) {
            witness.look(path);
        }
        for file in programs {
            witness.look(file);
            file.parent().into_iter().for_each(|dir| witness.look(dir));
        }
        searched.iter().for_each(|dir| loader::look_at_directory(&mut witness, dir));
        for prefix in self.prefixes(found) {
            look_at_prefix(&mut witness, &prefix);
        }
        witness
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    fn look_at_path(&self, witness: &mut Witness) {
        for list in ["PATH", "LD_LIBRARY_PATH"] {
            for dir in self.variable(list).into_iter().flat_map(std::env::split_paths) {
                witness.look_into(&dir);
            }
        }
        SYSTEM_PATH.iter().for_each(|dir| witness.look_into(Path::new(dir)));
    }

    fn look_at_driver(&self, witness: &mut Witness) {
        let driver = self.candidate.driver.path();
        witness.look(driver);
        // hipcc's own way to see whether it lies in a prefix within ROCm's.
        let around = driver.ancestors().nth(3).map(|dir| dir.join("bin/rocm_agent_enumerator"));
        around.into_iter().for_each(|program| witness.look(&program));
        for file in probe::wrapper_files(driver) {
            witness.look(&file);
            interpreter(&file).into_iter().for_each(|program| witness.look(&program));
        }
        let named = [&self.candidate.rocm, &self.candidate.device_libs];
        named.into_iter().flatten().for_each(|path| witness.look(path));
    }

    /// Every prefix that the programs may look into.
    fn prefixes(&self, found: &Found) -> BTreeSet<PathBuf> {
        let mut prefixes: BTreeSet<PathBuf> = PREFIXES.iter().map(PathBuf::from).collect();
        let opt = fs::read_dir(OPT).into_iter().flatten().flatten();
        prefixes.insert(OPT.into());
        prefixes.extend(
            opt.filter(|entry| entry.file_name().to_string_lossy().starts_with("rocm"))
                .map(|entry| entry.path()),
        );
        let named = NAMING.iter().filter_map(|name| self.variable(name));
        prefixes.extend(named.map(PathBuf::from));
        prefixes.extend(self.candidate.rocm.clone());
        prefixes.insert(found.rocm.clone());
        for program in [self.candidate.driver.path(), &found.clang] {
            let real = fs::canonicalize(program).ok();
            let places = [Some(program), real.as_deref()].into_iter().flatten();
            prefixes.extend(places.flat_map(prefixes_of));
        }
        prefixes
    }
}

/// The prefixes that a program takes itself to lie in: that of its `bin`, the
/// one around where that is an LLVM's or HIP's own, and again around `lib`.
fn prefixes_of(program: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in program.ancestors().skip(2) {
        found.push(dir.to_owned());
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let inner = ["llvm", "aomp", "hip"].iter().any(|own| name.starts_with(own));
        if !(inner || name == "lib") {
            break;
        }
    }
    found
}

fn look_at_prefix(witness: &mut Witness, prefix: &Path) {
    READ.iter().for_each(|dir| witness.look_into(&prefix.join(dir)));
    NOTICED.iter().for_each(|name| witness.look(&prefix.join(name)));
    // `lib/TRIPLET/amdgcn/bitcode`, as Debian has it.
    for entry in fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten() {
        witness.look(&entry.path().join("amdgcn/bitcode"));
    }
}

/// The program that a script names in its first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    let start = BufReader::new(fs::File::open(script).ok()?).take(256).read_line(&mut line);
    start.ok()?;
    line.strip_prefix("#!")?.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use gfxpack_process::Cancel;

    /// Long after the files of a test were made.
    const LATER: Moment = Moment::at(u64::MAX);

    /// A machine of scripts: a hipcc that another one in `PATH` may stand
    /// before, and what it names.
    struct Machine {
        dir: tempfile::TempDir,
        candidate: Candidate,
        environment: Vec<(OsString, OsString)>,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            let at = |name: &str| root.join(name);
            fs::create_dir_all(at("first")).unwrap();
            fs::create_dir_all(at("scratch")).unwrap();
            let path = format!("{}:{}:/usr/bin:/bin", at("first").display(), at("bin").display());
            let machine = Self {
                candidate: Candidate {
                    driver: Driver::Hipcc(at("bin/hipcc")),
                    rocm: None,
                    device_libs: None,
                    own_prefix: false,
                },
                environment: vec![("PATH".into(), path.into())],
                dir,
            };
            machine.put("rocm/amdgcn/bitcode/ockl.bc", "");
            machine.put("rocm/include/hip/hip_runtime.h", "");
            machine.put("llvm/lib/clang/15/include/stddef.h", "");
            machine.put("bin/hipcc", "#!/bin/sh\nexec hipcc-of-this-machine \"$@\"\n");
            machine.put(
                "bin/hipcc-of-this-machine",
                &format!(
                    "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'HIP version: 5.2.1-0'\n\
                     cat >&2 <<.\n \"{0}/llvm/bin/clang\" \"-cc1\" \"-mlink-builtin-bitcode\" \
                     \"{0}/rocm/amdgcn/bitcode/ockl.bc\" \"-resource-dir\" \
                     \"{0}/llvm/lib/clang/15\" \"-idirafter\" \"{0}/rocm/include\"\n \
                     \"{0}/llvm/bin/lld\"\n.\n",
                    root.display()
                ),
            );
            machine.clang("15.0.6");
            machine.put("llvm/bin/lld", "#!/bin/sh\n");
            machine
        }

        fn at(&self, name: &str) -> PathBuf {
            fs::canonicalize(self.dir.path()).unwrap().join(name)
        }

        fn put(&self, name: &str, text: &str) {
            let path = self.at(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_atomic(&path, &[text.as_bytes()]).unwrap();
            fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }

        fn clang(&self, version: &str) {
            self.put(
                "llvm/bin/clang",
                &format!("#!/bin/sh\necho 'clang version {version}'\necho gfx906\n"),
            );
        }

        fn kept(&self) -> Kept<'_> {
            Kept::new(&self.at("cache"), &self.candidate, &self.environment)
        }

        fn ask(&self) -> Answers {
            let (scratch, cancel) = (self.at("scratch"), Cancel::default());
            let ask = Asker::new(&scratch, &self.environment, &cancel);
            Answers::ask(&self.candidate, &ask).unwrap()
        }
    }

    #[test]
    fn answers_are_kept_until_something_that_decides_them_changes() {
        let machine = Machine::new();
        let changes: [(&str, &dyn Fn()); 13] = [
            ("clang", &|| machine.clang("16.0.0")),
            ("lld", &|| machine.put("llvm/bin/lld", "#!/bin/sh\n#\n")),
            ("hipcc", &|| machine.put("bin/hipcc", "#!/bin/sh\nhipcc-of-this-machine \"$@\"\n")),
            ("a script of hipcc's", &|| machine.put("bin/hipvars.pm", "1;\n")),
            ("another program in PATH", &|| {
                let text = fs::read_to_string(machine.at("bin/hipcc-of-this-machine")).unwrap();
                machine.put("bin/hipcc-of-this-machine", &text.replace("5.2.1", "5.3.0"));
            }),
            ("one before it in PATH", &|| {
                let text = fs::read_to_string(machine.at("bin/hipcc-of-this-machine")).unwrap();
                machine.put("first/hipcc-of-this-machine", &text.replace("5.3.0", "6.0.0"));
            }),
            ("which leads elsewhere", &|| {
                let link = machine.at("first/hipcc-of-this-machine");
                fs::remove_file(&link).unwrap();
                std::os::unix::fs::symlink("../bin/hipcc-of-this-machine", link).unwrap();
            }),
            ("a device library goes", &|| {
                fs::remove_file(machine.at("rocm/amdgcn/bitcode/ockl.bc")).unwrap();
            }),
            ("one comes", &|| machine.put("rocm/amdgcn/bitcode/ocml.bc", "")),
            ("the version of an installation", &|| machine.put("rocm/.info/version", "6.4")),
            ("it changes in place", &|| {
                fs::write(machine.at("rocm/.info/version"), "6.4.1").unwrap();
            }),
            ("a compiler beside hipcc's", &|| machine.put("llvm/bin/clang-16", "#!/bin/sh\n")),
            ("a configuration of clang's", &|| machine.put("llvm/bin/clang.cfg", "-O1\n")),
        ];
        for (name, change) in changes {
            let answers = machine.ask();
            machine.kept().write(&answers, LATER);
            assert_eq!(machine.kept().read().as_ref(), Some(&answers), "before {name}");
            change();
            assert_eq!(machine.kept().read(), None, "after {name}");
        }
        assert_eq!(machine.ask().clang_version, "16.0.0");
        assert_eq!(machine.ask().found.hip_version, Some([5, 3, 0]));
    }

    #[test]
    fn another_environment_or_candidate_is_asked_itself() {
        let mut machine = Machine::new();
        machine.kept().write(&machine.ask(), LATER);
        assert!(machine.kept().read().is_some());
        let reversed = machine.environment[0].1.to_str().unwrap().rsplit(':');
        let reversed = reversed.collect::<Vec<_>>().join(":");
        let own = std::mem::replace(&mut machine.environment[0].1, reversed.into());
        assert!(machine.kept().read().is_none());
        machine.environment[0].1 = own;
        machine.environment.push(("HIP_PATH".into(), "/usr".into()));
        assert!(machine.kept().read().is_none());
        machine.environment.pop();
        machine.candidate.rocm = Some(machine.at("rocm"));
        assert!(machine.kept().read().is_none());
        machine.candidate.rocm = None;
        assert!(machine.kept().read().is_some());
    }

    #[test]
    fn damage_is_no_answer() {
        let machine = Machine::new();
        machine.kept().write(&machine.ask(), LATER);
        let file = machine.kept().file;
        let whole = fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(23) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&file, &damaged).unwrap();
            assert_eq!(machine.kept().read(), None, "byte {at}");
            fs::write(&file, &whole[..at]).unwrap();
            assert_eq!(machine.kept().read(), None, "cut at {at}");
        }
        fs::write(&file, &whole).unwrap();
        assert!(machine.kept().read().is_some());
    }

    #[test]
    fn what_may_have_changed_while_it_was_asked_is_not_kept() {
        let machine = Machine::new();
        machine.kept().write(&machine.ask(), Moment::now());
        assert!(!machine.kept().file.exists());
    }

    #[test]
    fn prefixes_are_those_around_a_program() {
        let check = |program: &str, expected: &[&str]| {
            assert_eq!(
                prefixes_of(Path::new(program)),
                expected.iter().map(PathBuf::from).collect::<Vec<_>>()
            );
        };
        check("/usr/bin/hipcc", &["/usr"]);
        check("/usr/lib/llvm-15/bin/clang", &["/usr/lib/llvm-15", "/usr/lib", "/usr"]);
        check("/opt/rocm/llvm/bin/clang", &["/opt/rocm/llvm", "/opt/rocm"]);
        check("/opt/rocm/hip/bin/hipcc", &["/opt/rocm/hip", "/opt/rocm"]);
    }

    #[test]
    fn libraries_and_their_directories_are_those_of_the_loader() {
        let shell = fs::canonicalize("/bin/sh").unwrap();
        assert!(loader::searched(&shell).is_empty());
        assert!(loader::searched(Path::new("/usr/bin/ldd")).is_empty());
        assert_eq!(interpreter(Path::new("/usr/bin/ldd")), Some("/bin/bash".into()));
        assert_eq!(interpreter(&shell), None);
    }
}
