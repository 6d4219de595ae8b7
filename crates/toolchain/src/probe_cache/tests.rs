//! Toolchains of scripts, with every change that affects their answers.

use std::os::unix::fs::{PermissionsExt, symlink};

use gfxpack_process::{Cancel, write_atomic};

use super::*;

/// A time long after the files of a test were created.
const LATER: Timestamp = Timestamp(u64::MAX);

/// A machine of scripts: a hipcc that looks up files, and the programs that it names.
struct Machine {
    dir: tempfile::TempDir,
    candidate: Candidate,
    environment: Vec<(OsString, OsString)>,
    digests: FileDigests,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let at = |name: &str| root.join(name);
        for made in ["first", "scratch", "libraries", "opt"] {
            fs::create_dir(at(made)).unwrap();
        }
        let path = format!("{}:{}:/usr/bin:/bin", at("first").display(), at("bin").display());
        let libraries = at("libraries").into_os_string();
        let machine = Self {
            candidate: Candidate {
                driver: Driver::Hipcc(at("bin/hipcc")),
                rocm: None,
                device_libs: None,
                own_prefix: false,
            },
            environment: vec![("PATH".into(), path.into()), ("LD_LIBRARY_PATH".into(), libraries)],
            digests: FileDigests::default(),
            dir,
        };
        symlink(fs::canonicalize("/bin/sh").unwrap(), at("shell")).unwrap();
        machine.put("rocm/amdgcn/bitcode/ockl.bc", "");
        machine.put("rocm/include/hip/hip_runtime.h", "");
        machine.put("llvm/lib/clang/15/include/stddef.h", "");
        machine.put(
            "bin/hipcc",
            &"#!ROOT/shell
[ -r ROOT/bin/more ] && . ROOT/bin/more
for rocm in ROOT/opt/rocm-*; do :; done
command -v of-this-machine
exec hipcc-of-this-machine \"$@\"\n"
                .replace("ROOT", root.to_str().unwrap()),
        );
        machine.put(
            "bin/hipcc-of-this-machine",
            &format!(
                "#!/bin/sh\ncat >&2 <<.\n\
                 Found HIP installation: {0}/rocm, version 5.2.1\n \
                 \"{0}/llvm/bin/clang\" \"-cc1\" \
                 \"-mlink-builtin-bitcode\" \"{0}/rocm/amdgcn/bitcode/ockl.bc\" \
                 \"-resource-dir\" \"{0}/llvm/lib/clang/15\" \"-idirafter\" \"{0}/rocm/include\"\n \
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
        self.set_mode(name, 0o755);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.at(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn link(&self, name: &str, to: &str) {
        fs::remove_file(self.at(name)).ok();
        symlink(to, self.at(name)).unwrap();
    }

    fn clang(&self, version: &str) {
        self.put(
            "llvm/bin/clang",
            &format!("#!/bin/sh\necho 'clang version {version}'\necho gfx906\n"),
        );
    }

    fn cache(&self) -> ProbeCache<'_> {
        ProbeCache::new(&self.at("cache"), &self.candidate, &self.environment, &self.digests)
    }

    fn with_asker<T>(&self, then: impl FnOnce(&ProgramRunner<'_>) -> T) -> T {
        let (scratch, cancel) = (self.at("scratch"), Cancel::default());
        then(&ProgramRunner::new(&scratch, &self.environment, &cancel))
    }

    fn ask_at(&self, since: Timestamp) -> Probed {
        self.with_asker(|ask| self.cache().ask(ask, since, true)).unwrap()
    }

    fn ask(&self) -> Probed {
        self.ask_at(LATER)
    }

    fn known(&self) -> Option<Probed> {
        self.with_asker(|ask| self.cache().read(ask))
    }
}

#[test]
fn answers_are_reused_until_a_change_affects_them() {
    let machine = Machine::new();
    let this = "bin/hipcc-of-this-machine";
    let text = || fs::read_to_string(machine.at(this)).unwrap();
    let changes: [(&str, &dyn Fn()); 16] = [
        ("clang", &|| machine.clang("16.0.0")),
        ("hipcc", &|| {
            let text = fs::read_to_string(machine.at("bin/hipcc")).unwrap();
            machine.put("bin/hipcc", &format!("{text}\n"));
        }),
        ("a script of hipcc's comes", &|| machine.put("bin/more", "")),
        ("and changes in place", &|| fs::write(machine.at("bin/more"), "# 1\n").unwrap()),
        ("another program in PATH", &|| machine.put(this, &text().replace("5.2.1", "5.3.0"))),
        ("one before it in PATH", &|| {
            machine.put("first/hipcc-of-this-machine", &text().replace("5.3.0", "6.0.0"));
        }),
        ("which nobody may execute", &|| machine.set_mode("first/hipcc-of-this-machine", 0o644)),
        ("which may be again", &|| machine.set_mode("first/hipcc-of-this-machine", 0o755)),
        ("one that is only looked for", &|| machine.put("first/of-this-machine", "")),
        ("which nobody may execute", &|| machine.set_mode("first/of-this-machine", 0o644)),
        ("the other leads elsewhere", &|| {
            machine.link("first/hipcc-of-this-machine", "../bin/hipcc-of-this-machine");
        }),
        ("an installation", &|| fs::create_dir(machine.at("opt/rocm-7.0.0")).unwrap()),
        ("the interpreter of a script", &|| machine.link("shell", "/bin/bash")),
        ("a library of a program", &|| {
            let shell = fs::canonicalize("/bin/sh").unwrap();
            let libraries = machine.with_asker(|runner| runner.libraries(&shell)).unwrap();
            let is_libc = |path: &&PathBuf| path.ends_with("libc.so.6");
            let libc = libraries.iter().find(is_libc).unwrap();
            fs::copy(libc, machine.at("libraries/libc.so.6")).unwrap();
        }),
        ("which goes", &|| fs::remove_file(machine.at("libraries/libc.so.6")).unwrap()),
        ("hipcc goes", &|| machine.put("bin/hipcc", "#!/bin/sh\nexit 1\n")),
    ];
    for (name, change) in changes {
        let probed = machine.ask();
        assert_eq!(machine.known().as_ref(), Some(&probed), "before {name}");
        change();
        assert_eq!(machine.known(), None, "after {name}");
    }
}

#[test]
fn a_change_of_a_file_that_was_not_accessed_keeps_answers() {
    let machine = Machine::new();
    let probed = machine.ask();
    machine.put("bin/other", "#!/bin/sh\n");
    machine.put("rocm/share/more", "");
    machine.clang("15.0.6");
    assert_eq!(machine.known(), Some(probed));
}

#[test]
fn another_environment_or_candidate_has_its_own_answers() {
    let mut machine = Machine::new();
    machine.ask();
    assert!(machine.known().is_some());
    let reversed = machine.environment[0].1.to_str().unwrap().rsplit(':');
    let reversed = reversed.collect::<Vec<_>>().join(":");
    let own = std::mem::replace(&mut machine.environment[0].1, reversed.into());
    assert!(machine.known().is_none());
    machine.environment[0].1 = own;
    machine.environment.push(("HIP_PATH".into(), "/usr".into()));
    assert!(machine.known().is_none());
    machine.environment.pop();
    machine.candidate.rocm = Some(machine.at("rocm"));
    assert!(machine.known().is_none());
    machine.candidate.rocm = None;
    assert!(machine.known().is_some());
}

#[test]
fn answers_are_not_stored_if_files_may_have_changed_meanwhile() {
    let machine = Machine::new();
    machine.ask_at(Timestamp::now());
    assert!(!machine.cache().file.exists());
    // Scripts that change themselves while they run.
    machine.put("bin/more", "echo \": $$\" > \"$0.now\"; mv \"$0.now\" ROOT/bin/more\n");
    let text = fs::read_to_string(machine.at("bin/more")).unwrap();
    machine.put("bin/more", &text.replace("ROOT", machine.at("").to_str().unwrap()));
    machine.ask();
    assert!(!machine.cache().file.exists());
}

#[test]
fn a_program_that_can_not_be_watched_is_asked_every_time() {
    let machine = Machine::new();
    // It starts a program without the library, like a static one.
    machine.put("bin/more", "env -i /bin/true\n");
    machine.ask();
    assert!(!machine.cache().file.exists());
}
