//! A directory with kernels, and a shell script as the compiler: it makes the
//! smallest possible code object.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use clap::Parser;
use gfxpack_compile::Cancel;
use gfxpack_model::KernelKey;
use gfxpack_pipeline::dist::{Dist, DistOptions, FinishedDist};
use gfxpack_pipeline::error::Error;
use gfxpack_pipeline::options::{BuildOptions, CacheOptions};
use gfxpack_pipeline::prepare::Preparation;
use gfxpack_pipeline::progress::{Event, Progress};
use gfxpack_toolchain::Search;
use tempfile::TempDir;

const TARGET: &str = "gfx906_60";

/// Needs no program except the shell. `ROOT` is the project's directory.
///
/// An assembler is bound to its inputs in its process, which a script can't
/// imitate: `true` stands in for it, and for the linker, whose libraries are
/// known.
const CLANG: &str = r#"#!/bin/sh
case " $* " in
    *" --version "*) echo 'clang version 17.0.0'; exit ;;
    *" -print-resource-dir "*) echo ROOT/llvm/lib/clang/17; exit ;;
    *" -print-prog-name=ld.lld "*) echo ROOT/llvm/bin/ld.lld; exit ;;
    *" --print-supported-cpus "*) echo gfx906; exit ;;
    *" -v "*) exit ;;
esac
out= source= last=
for word in "$@"; do
    case $last in -o) out=$word ;; esac
    case $word in *.s) source=$word ;; esac
    last=$word
done
case " $* " in
    *" -### "*) echo " \"ROOT/llvm/bin/ld.lld\" \"-cc1as\" \"$source\" \"$out\"" >&2; exit ;;
esac
ROOT/llvm/bin/ld.lld -cc1as "$source" "$out"
zeros='\000\000\000\000\000\000\000\000'
head="\177ELF\002\001\001\100\003\000\000\000\000\000\000\000\003\000\340\000\001\000\000\000"
tail="\057\005\000\000\100\000\070\000\000\000\100\000\000\000\000\000"
printf "$head$zeros$zeros$zeros$tail" > "$out"
"#;

/// Ignores all events.
#[derive(Default)]
struct Silent(Cancel);

impl Progress for Silent {
    fn cancel(&self) -> &Cancel {
        &self.0
    }

    fn event(&self, _: Event<'_>) {}
}

/// The options of `build`.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    build: BuildOptions,
}

/// A directory with a compiler, sources and a list of keys.
pub(crate) struct Project {
    dir: TempDir,
}

impl Project {
    /// With these sources by name, and a key for each.
    pub(crate) fn with(sources: &[(&str, &str)]) -> Self {
        let project = Self { dir: tempfile::tempdir().expect("a directory") };
        let root = project.path("");
        project.write("llvm/bin/clang", &CLANG.replace("ROOT", root.to_str().expect("UTF-8")));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(project.path("llvm/bin/clang"), executable).expect("one's own file");
        symlink("/bin/true", project.path("llvm/bin/ld.lld")).expect("linked");
        project.write("llvm/lib/clang/17/include/stddef.h", "");
        project.write("bitcode/oclc_isa_version_906.bc", "");
        let version = "#define HIP_VERSION_MAJOR 5\n#define HIP_VERSION_MINOR 2\n\
                       #define HIP_VERSION_PATCH 0\n";
        project.write("rocm/include/hip/hip_version.h", version);
        for (name, text) in sources {
            project.write(&format!("sources/{name}"), text);
        }
        project.write_keys(sources.iter().map(|(name, _)| *name));
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("it is there").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("below the directory")).expect("created");
        fs::write(path, text).expect("written");
    }

    /// Writes a key list with one key for each of these sources.
    pub(crate) fn write_keys<'n>(&self, sources: impl Iterator<Item = &'n str>) {
        let lines = sources.map(|source| {
            let key = key(source);
            format!(
                "{{\"kernel_name\":\"{}\",\"kernel_args\":\"{}\"}}\n",
                key.kernel_name, key.kernel_args
            )
        });
        self.write("keys.jsonl", &lines.collect::<String>());
    }

    pub(crate) fn options(&self) -> DistOptions {
        let search = Search {
            clang: vec![self.path("llvm/bin/clang")],
            device_libs: vec![self.path("bitcode")],
            rocm_path: vec![self.path("rocm")],
            environment: vec![("PATH".into(), self.path("llvm/bin").into())],
            ..Search::default()
        };
        let (keys, sources, out) =
            (self.path("keys.jsonl"), self.path("sources"), self.path("out"));
        let words = [
            "build".as_ref(),
            "--target".as_ref(),
            TARGET.as_ref(),
            "--keys".as_ref(),
            keys.as_os_str(),
            "--source-dir".as_ref(),
            sources.as_os_str(),
            "--out".as_ref(),
            out.as_os_str(),
            "--jobs=2".as_ref(),
            "--timeout=60".as_ref(),
            "--via=hipcc".as_ref(),
        ];
        let CommandLine { build } = CommandLine::parse_from(words);
        let cache = CacheOptions { dir: Some(self.path("cache")), ..CacheOptions::default() };
        DistOptions { build, package: None, search, cache }
    }

    /// Builds with these options.
    pub(crate) fn run(&self, options: &DistOptions) -> Result<FinishedDist, Error> {
        let progress = &Silent::default();
        match Dist::prepare(options, progress)? {
            Preparation::ToDo(dist) => dist.run(None, progress),
            Preparation::NothingToDo(_) => panic!("there is nothing to do"),
        }
    }

    /// Builds; panics if the run as a whole fails.
    #[track_caller]
    pub(crate) fn build(&self) -> FinishedDist {
        self.run(&self.options()).unwrap_or_else(|error| panic!("{error}: {:?}", error.hint()))
    }

    pub(crate) fn kdb(&self) -> PathBuf {
        self.path("out/kdb/gfx906_60.kdb")
    }

    pub(crate) fn manifest(&self) -> serde_json::Value {
        let text = fs::read(self.path("out/manifest.json")).expect("it is written");
        serde_json::from_slice(&text).expect("JSON")
    }
}

/// The key of a source.
fn key(source: &str) -> KernelKey {
    KernelKey {
        kernel_name: format!("{source}.o"),
        kernel_args: " -Wa,-defsym,N=1 -mcpu=gfx906".to_owned(),
    }
}
