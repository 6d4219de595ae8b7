//! All kernels that a real libMIOpen needs in its own find modes, in immediate mode and with a find
//! database are among those reported before. Its kernel databases contain every reported kernel,
//! with one object for all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_miopen::{
    AskOptions, AskReport, CheckReport, KernelUse, Library, Problem, Sources, ask, check,
};
use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{KernelKey, Target};
use gfxpack_tests::miopen::{debian_library, probe};
use gfxpack_tests::project::{Project, command};
use tempfile::TempDir;

const PROBLEMS: &[&str] = &[
    "conv -n 4 -c 64 -H 28 -W 28 -k 64 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -F 0",
    "conv -n 2 -c 64 -H 14 -W 14 -k 128 -y 1 -x 1 -p 0 -q 0 -u 2 -v 2 -l 1 -j 1 -b 1 -F 0",
    "convfp16 -n 2 -c 32 -H 14 -W 14 -k 64 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -F 0 \
     --in_layout NHWC --fil_layout NHWC --out_layout NHWC",
    "convbfp16 -n 2 -c 32 -H 14 -W 14 -k 32 -y 3 -x 3 -p 2 -q 2 -u 1 -v 1 -l 2 -j 2 -g 4 -F 0",
    "conv -n 1 -c 16 -H 9 -W 9 -k 8 -y 4 -x 4 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -m trans -F 0",
    "conv --spatial_dim 3 -n 1 -c 8 -k 8 --in_d 6 -H 6 -W 6 --fil_d 3 -y 3 -x 3 --pad_d 1 -p 1 \
     -q 1 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 -F 0",
    "convint8 -n 1 -c 32 -H 8 -W 8 -k 32 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -F 1",
    "activ -n 2 -c 8 -H 8 -W 8 -m 3 -F 0",
    "bnorm -n 2 -c 8 -H 8 -W 8 -m 1 --forw 1 -b 0 -s 1 -r 1",
    "bnormfp16fp32 -n 2 -c 8 -H 8 -W 8 -m 1 --forw 2 -b 0 -r 1",
    "groupnorm -n 8 -c 32 -D 14 -H 14 -W 14 -g 4 -F 1",
    "lrn -n 2 -c 8 -H 8 -W 8 -m cross -F 0",
    "pool -W 2x8x8x8,NCHW -y 2 -x 2 -p 0 -q 0 -v 2 -u 2 -m max -F 0",
    "reduce -D 4,6,8,10 -R 0,2 -O 0 -I 0",
    "rnn -m lstm -n 2 -W 8 -H 8 -l 1 -k 2 -F 0",
    "softmaxfp16 -n 2 -c 10 -H 1 -W 1 -F 0",
];

/// Fetched once for all tests of this checkout.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/libmiopen-cache");

fn library() -> Option<Library> {
    debian_library("sid", Path::new(CACHE))
}

fn problems() -> Vec<Problem> {
    PROBLEMS.iter().map(|line| line.parse().unwrap()).collect()
}

/// A code object for gfx906 that has these functions and does nothing.
fn object(directory: &Path, functions: &BTreeSet<String>) -> Vec<u8> {
    let (source, object) = (directory.join("functions.s"), directory.join("functions.so"));
    let text = functions.iter().map(|name| format!(".globl \"{name}\"\n\"{name}\":\n"));
    fs::write(&source, format!(".data\n{}.long 0\n", text.collect::<String>())).unwrap();
    let mut cc = command("cc");
    cc.args(["-shared", "-nostdlib", "-o"]).arg(&object).arg(&source);
    assert!(cc.status().unwrap().success());
    let mut bytes = fs::read(&object).unwrap();
    // ELFOSABI_AMDGPU_HSA, EM_AMDGPU, EF_AMDGPU_MACH_AMDGCN_GFX906.
    bytes[7] = 64;
    bytes[18..20].copy_from_slice(&0xe0_u16.to_le_bytes());
    bytes[48..52].copy_from_slice(&0x2f_u32.to_le_bytes());
    bytes
}

/// What is asked, and a kernel database of it.
struct Asked {
    library: Library,
    options: AskOptions,
    answers: AskReport,
    directory: TempDir,
}

impl Asked {
    fn new(library: Library, databases: &[PathBuf]) -> Self {
        Self::of(library, "gfx906_60".parse().unwrap(), databases, &BTreeSet::new())
    }

    /// Asked with these sources.
    fn of(
        library: Library,
        target: Target,
        databases: &[PathBuf],
        sources: &BTreeSet<String>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = AskOptions::new(target, probe(), directory.path());
        options.databases = databases.to_vec();
        options.workers = 2;
        options.sources = sources.clone();
        let answers = ask(&library, &problems(), &options, &|| false, &mut |_| ()).unwrap();
        assert_eq!(answers.failures, [], "{}", options.target);
        Self { library, options, answers, directory }
    }

    /// Writes the kernels but one and those without a source, in objects without that function.
    fn kdb(&self, without: Option<&KernelKey>, lacking: Option<&str>) -> PathBuf {
        let functions = self.answers.keys.iter().flat_map(|asked| asked.functions.iter());
        let functions = functions.filter(|name| Some(name.as_str()) != lacking).cloned();
        let object = object(self.directory.path(), &functions.collect());
        let sources = &self.options.sources;
        let has =
            |key: &KernelKey| sources.is_empty() || sources.contains(key.source_name().unwrap());
        let keys = self.answers.keys.iter().map(|asked| &asked.key).filter(|key| has(key));
        let rows: Vec<_> = keys
            .filter(|key| Some(*key) != without)
            .map(|key| Row { key, size: object.len() as u64 })
            .collect();
        let path = self.directory.path().join(self.options.target.kdb_file_name());
        let object = |_| Ok::<_, std::io::Error>(object.clone());
        write(&path, &rows, &WriteOptions::default(), object).unwrap();
        path
    }

    fn check(&self, kdb: PathBuf) -> CheckReport {
        let cancel = || false;
        check(&self.library, &problems(), &[kdb], &self.options, &cancel, &mut |_| ()).unwrap()
    }
}

#[test]
fn no_mode_needs_other_kernels() {
    let Some(library) = library() else { return };
    let asked = Asked::new(library, &[]);
    let report = asked.check(asked.kdb(None, None));
    assert!(report.is_complete(), "{:?} {:?}", report.outcomes, report.failures);
    let found: BTreeSet<_> = report.outcomes.iter().flat_map(|outcome| &outcome.found).collect();
    // All that was told is asked for, too.
    assert!(found.into_iter().eq(asked.answers.keys.iter().map(|asked| &asked.key)));
}

#[test]
fn databases_affect_arguments_and_each_directory_is_asked() {
    let Some(library) = library() else { return };
    let without = Asked::new(library.clone(), &[]);
    // What a performance database says of one problem, and a find database of it.
    let databases = tempfile::tempdir().unwrap();
    let perf = "2x64x28x28x1x3x3x1x64x4x1x1x0x1x1x0x1x1x0x0x1xNCHWxFP32xF=\
                ConvAsm3x3U:2,6,2\n";
    let find = "64-28-28-3x3-64-28-28-4-1x1-1x1-1x1-0-NCHW-FP32-F=\
                ConvAsm3x3U:0.01,0,miopenConvolutionFwdAlgoDirect\n";
    fs::write(databases.path().join("gfx906_60.db.txt"), perf).unwrap();
    fs::write(databases.path().join("gfx906_60.HIP.fdb.txt"), find).unwrap();
    let asked = Asked::new(library, &[databases.path().to_owned()]);
    let keys = |asked: &Asked| -> BTreeSet<KernelKey> {
        asked.answers.keys.iter().map(|asked| asked.key.clone()).collect()
    };
    let new: BTreeSet<_> = keys(&asked).difference(&keys(&without)).cloned().collect();
    assert!(keys(&asked).is_superset(&keys(&without)), "no kernel is lost");
    assert!(new.iter().any(|key| key.kernel_name == "conv3x3.s.o"), "{new:?}");
    assert_eq!(asked.answers.databases.len(), 2);
    let recorded: Problem = PROBLEMS[0].parse().unwrap();
    let recorded = asked.answers.problems.iter().position(|problem| *problem == recorded).unwrap();
    let is_hit = |wanted: &KernelUse| wanted.uses.hit && wanted.problem as usize == recorded;
    let hits = asked.answers.keys.iter().filter(|asked| asked.wanted.iter().any(is_hit));
    let hits: BTreeSet<_> = hits.map(|asked| asked.key.kernel_name.as_str()).collect();
    assert_eq!(hits, ["conv3x3.s.o"].into(), "the recorded solver's, and no other");
    let report = asked.check(asked.kdb(None, None));
    assert!(report.is_complete(), "{:?} {:?}", report.outcomes, report.failures);
}

/// Debian's library carries no assembly: MIOpen does without it, and takes other kernels, which
/// differ between processors.
#[test]
fn what_can_be_compiled_is_enough_on_every_processor() {
    let Some(library) = library() else { return };
    let sources = Sources::in_library(&library).unwrap();
    let sources: BTreeSet<String> = sources.kernels.into_keys().collect();
    for processor in PROCESSORS {
        let count = processor.compute_units.last().unwrap_or(&64);
        let target: Target = format!("{}@{count}", processor.name).parse().unwrap();
        let asked = Asked::of(library.clone(), target, &[], &sources);
        let report = asked.check(asked.kdb(None, None));
        let name = processor.name;
        assert!(report.is_complete(), "{name}: {:?} {:?}", report.outcomes, report.failures);
        assert!(report.outcomes.iter().all(|outcome| !outcome.found.is_empty()), "{name}");
    }
}

#[test]
fn missing_kernels_are_named() {
    let Some(library) = library() else { return };
    let asked = Asked::new(library, &[]);
    for missing in [&asked.answers.keys[0], &asked.answers.keys[asked.answers.keys.len() / 2]] {
        let report = asked.check(asked.kdb(Some(&missing.key), None));
        assert!(!report.is_complete());
        let missed: BTreeSet<_> =
            report.outcomes.iter().flat_map(|outcome| &outcome.missed).collect();
        assert_eq!(missed, [&missing.key].into());
        let wanting: Vec<u32> = missing.wanted.iter().map(|wanted| wanted.problem).collect();
        let missing_it: Vec<u32> = (0..)
            .zip(&report.outcomes)
            .filter(|(_, outcome)| !outcome.missed.is_empty())
            .map(|(problem, _)| problem)
            .collect();
        assert_eq!(missing_it, wanting);
        assert_eq!(report.failures, []);
    }
    let naive = asked.answers.keys.iter().find(|asked| asked.key.kernel_name == "naive_conv.cpp.o");
    let function = naive.unwrap().functions.first().unwrap();
    let report = asked.check(asked.kdb(None, Some(function)));
    let lacking = report.outcomes.iter().flat_map(|outcome| outcome.lacking.values());
    let lacking: BTreeSet<_> = lacking.flatten().collect();
    assert_eq!(lacking, [function].into());
}

#[test]
fn a_kernel_database_of_another_device_is_not_used() {
    let Some(library) = library() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let options = AskOptions::new("gfx1030@36".parse().unwrap(), probe(), scratch.path());
    let kernels = ["gfx906_60.kdb".into()];
    let error =
        check(&library, &problems(), &kernels, &options, &|| false, &mut |_| ()).unwrap_err();
    assert!(error.hint().unwrap().contains("gfx1030_36.kdb"), "{error}");
}

#[test]
fn packages_for_debians_library_are_installed_where_it_looks() {
    if library().is_none() {
        return;
    }
    let project = Project::new();
    project.write("list.txt", &format!("{}\n", PROBLEMS[1]));
    let stderr_with = |layout: &[&str]| {
        let args = ["dist", "--problems", "list.txt", "--target", "gfx906_60", "--out", "o"];
        let more = ["--miopen", "debian:sid", "--cache-dir", CACHE, "--dry-run"];
        project.run(&[&args[..], &more, layout].concat()).expect_code(0).stderr
    };
    let warning = "asked is Debian's, which looks for kernels in /usr/lib/share/miopen/db, but the \
                   packages install into /opt/rocm/share/miopen/db";
    assert!(stderr_with(&[]).contains(warning));
    assert!(!stderr_with(&["--layout", "debian"]).contains("looks for kernels in"));
    assert!(!stderr_with(&["--prefix", "/srv/rocm"]).contains("looks for kernels in"));
}
