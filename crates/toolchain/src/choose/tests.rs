//! Trying and identifying a clang that is a shell script.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use gfxpack_model::compiler::{CompilerFacts, Program};

use super::*;

/// `ROOT` is replaced by the machine's directory. The script writes the smallest valid code object,
/// unless `ROOT/full` exists.
const CLANG: &str = r#"#!/bin/sh
case " $* " in
    *" --version "*) echo 'clang version 17.0.0'; exit ;;
    *" -print-resource-dir "*) echo ROOT/llvm/lib/clang/17; exit ;;
    *" -print-prog-name=ld.lld "*) echo ROOT/llvm/bin/ld.lld; exit ;;
    *" --print-supported-cpus "*) echo gfx906; exit ;;
    *" -v "*) exit ;;
    *" hip "*" -### "*) echo ' "ROOT/llvm/bin/lld" "-flavor" "gnu"' >&2; exit ;;
    *" assembler "*" -### "*) echo ' "ROOT/my/ld" "-shared"' >&2; exit ;;
    *" -### "*) echo ' "ROOT/llvm/bin/ld.lld" "-shared"' >&2; exit ;;
esac
[ -e ROOT/full ] && echo 'error: no space left' >&2 && exit 1
for out in "$@"; do :; done
zeros='\000\000\000\000\000\000\000\000'
head="\177ELF\002\001\001\100\003\000\000\000\000\000\000\000\003\000\340\000\001\000\000\000"
tail="\057\005\000\000\100\000\070\000\000\000\100\000\000\000\000\000"
printf "$head$zeros$zeros$zeros$tail" > "$out"
"#;

fn trial(_: Language, _: &TargetId, _: &CompilerFacts, _: &str) -> (Program, Vec<String>) {
    (Program::Clang, Vec::new())
}

struct Machine {
    dir: tempfile::TempDir,
    search: Search,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let search = Search {
            clang: vec![root.join("llvm/bin/clang")],
            device_libs: vec![root.join("bitcode")],
            rocm_path: vec![root.join("rocm")],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..Search::default()
        };
        let machine = Self { dir, search };
        machine.put("llvm/bin/clang", &CLANG.replace("ROOT", root.to_str().unwrap()));
        machine.put("llvm/bin/ld.lld", "");
        machine.put("llvm/bin/lld", "");
        machine.put("my/ld", "");
        machine.put("llvm/lib/clang/17/include/stddef.h", "");
        machine.put("bitcode/oclc_isa_version_906.bc", "");
        machine.put("rocm/include/hip/hip_runtime.h", "");
        fs::create_dir(root.join("cache")).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Waits until its files count as old.
    fn rest(&self) {
        std::thread::sleep(Duration::from_millis(3100));
    }

    fn passed(&self, toolchain: &Toolchain) -> bool {
        let digests = FileDigests::default();
        let trial = Trial::new(toolchain, Language::Hip, trial).unwrap();
        trial.is_passed(&self.at("cache"), &FileSystemCache::new(&digests))
    }

    fn digest(&self) -> Digest {
        self.listed().toolchain.unwrap().digest
    }

    fn listed(&self) -> ToolchainReport {
        let (cache, cancel, digests) =
            (self.at("cache"), Cancel::default(), FileDigests::default());
        let mut found =
            Toolchains::find(&self.search, &digests, (&cache, true), &cache, trial, &cancel)
                .unwrap();
        found.list().unwrap().remove(0)
    }
}

#[test]
fn a_compiler_is_tried_again_after_a_failure_and_after_a_change() {
    let machine = Machine::new();
    machine.put("full", "");
    let full = machine.listed();
    assert_eq!(full.refused.len(), 2, "{full:?}");
    fs::remove_file(machine.at("full")).unwrap();
    machine.rest();
    let listed = machine.listed();
    assert_eq!(listed.refused, []);
    let toolchain = listed.toolchain.unwrap();
    let mut elsewhere = toolchain.clone();
    elsewhere.rocm = machine.at("elsewhere");
    assert!(machine.passed(&toolchain) && !machine.passed(&elsewhere));
    machine.put("full", "");
    assert!(!machine.passed(&toolchain));
    assert_eq!(machine.listed().refused.len(), 2);
}

#[test]
fn a_compiler_that_writes_elsewhere_is_refused() {
    let machine = Machine::new();
    machine.put("cached", "");
    let text = fs::read_to_string(machine.at("llvm/bin/clang")).unwrap();
    let log = machine.at("cached").display().to_string();
    machine.put("llvm/bin/clang", &text.replace("for out", &format!("echo >> {log}; for out")));
    let refused = machine.listed().refused;
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|(_, diagnostics)| diagnostics.contains(&log)), "{refused:?}");
}

#[test]
fn every_linker_that_a_command_names_is_part_of_the_toolchain() {
    let machine = Machine::new();
    let mut digests = BTreeSet::from([machine.digest()]);
    for linker in ["llvm/bin/lld", "llvm/bin/ld.lld", "my/ld"] {
        machine.put(linker, "#!/bin/sh\n");
        assert!(digests.insert(machine.digest()), "{linker}");
        assert!(machine.listed().toolchain.unwrap().files.contains(&machine.at(linker)));
    }
}

#[test]
fn a_file_behind_two_links_is_covered() {
    let machine = Machine::new();
    machine.put("far/x.h", "");
    fs::create_dir(machine.at("near")).unwrap();
    symlink("../far/x.h", machine.at("near/x.h")).unwrap();
    symlink(machine.at("near"), machine.at("llvm/lib/clang/17/include/ext")).unwrap();
    let toolchain = machine.listed().toolchain.unwrap();
    assert!(toolchain.covered_paths(Language::OpenclC).contains(&machine.at("far/x.h")));
}
