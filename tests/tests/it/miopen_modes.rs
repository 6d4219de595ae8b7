//! All kernels that a real libMIOpen needs in its own find modes, in immediate mode and with a find
//! database are among those reported before. Its kernel databases contain every reported kernel,
//! with one object for all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::miopen::{CACHE, SMALL, copy_library, debian_library, entries, probe};
use crate::support::project::{Project, binary, command, finish, tool, workspace};
use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_miopen::{
    AskOptions, AskReport, CheckReport, Library, Problem, Sources, Uses, ask, check,
};
use gfxpack_model::{KernelKey, Target};
use serde_json::Value;
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

fn problems(lines: &[&str]) -> Vec<Problem> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
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
    problems: Vec<Problem>,
    library: Library,
    options: AskOptions,
    answers: AskReport,
    directory: TempDir,
}

impl Asked {
    fn new(library: Library, lines: &[&str], databases: &[PathBuf]) -> Self {
        Self::with(library, lines, |options| options.databases = databases.to_vec())
    }

    /// Asked with other options than the usual ones.
    fn with(library: Library, lines: &[&str], adjust: impl FnOnce(&mut AskOptions)) -> Self {
        let (directory, problems) = (tempfile::tempdir().unwrap(), problems(lines));
        let mut options = AskOptions::new("gfx906_60".parse().unwrap(), probe(), directory.path());
        options.workers = 2;
        adjust(&mut options);
        let answers = ask(&library, &problems, &options, &|| false, &mut |_, _| ()).unwrap();
        assert_eq!(answers.failures, [], "{}", options.target);
        Self { problems, library, options, answers, directory }
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
        check(&self.library, &self.problems, &[kdb], &self.options, &cancel, &mut |_, _| ())
            .unwrap()
    }
}

#[test]
fn no_mode_needs_other_kernels() {
    let Some(library) = debian_library() else { return };
    let asked = Asked::new(library, PROBLEMS, &[]);
    let report = asked.check(asked.kdb(None, None));
    assert!(report.is_complete(), "{:?} {:?}", report.outcomes, report.failures);
    let found: BTreeSet<_> = report.outcomes.iter().flat_map(|outcome| &outcome.found).collect();
    // All that was told is asked for, too.
    assert!(found.into_iter().eq(asked.answers.keys.iter().map(|asked| &asked.key)));
}

#[test]
fn databases_affect_arguments_and_each_directory_is_asked() {
    let Some(library) = debian_library() else { return };
    let without = Asked::new(library.clone(), &PROBLEMS[..2], &[]);
    // What a performance database says of one problem, and a find database of it.
    let databases = tempfile::tempdir().unwrap();
    let perf = "2x64x28x28x1x3x3x1x64x4x1x1x0x1x1x0x1x1x0x0x1xNCHWxFP32xF=\
                ConvAsm3x3U:2,6,2\n";
    let find = "64-28-28-3x3-64-28-28-4-1x1-1x1-1x1-0-NCHW-FP32-F=\
                ConvAsm3x3U:0.01,0,miopenConvolutionFwdAlgoDirect\n";
    fs::write(databases.path().join("gfx906_60.db.txt"), perf).unwrap();
    fs::write(databases.path().join("gfx906_60.HIP.fdb.txt"), find).unwrap();
    let asked = Asked::new(library, &PROBLEMS[..2], &[databases.path().to_owned()]);
    let keys = |asked: &Asked| -> BTreeSet<KernelKey> {
        asked.answers.keys.iter().map(|asked| asked.key.clone()).collect()
    };
    let new: BTreeSet<_> = keys(&asked).difference(&keys(&without)).cloned().collect();
    assert!(keys(&asked).is_superset(&keys(&without)), "no kernel is lost");
    assert!(new.iter().any(|key| key.kernel_name == "conv3x3.s.o"), "{new:?}");
    assert_eq!(asked.answers.databases.len(), 2);
    let recorded: Problem = PROBLEMS[0].parse().unwrap();
    let recorded = asked.answers.problems.iter().position(|problem| *problem == recorded).unwrap();
    let is_hit = |(problem, uses): (&u32, &Uses)| uses.hit && *problem as usize == recorded;
    let hits = asked.answers.keys.iter().filter(|asked| asked.wanted.iter().any(is_hit));
    let hits: BTreeSet<_> = hits.map(|asked| asked.key.kernel_name.as_str()).collect();
    // Without an assembler, the recorded solver does not apply.
    assert!(hits.contains("conv3x3.s.o") && !hits.contains("naive_conv.cpp.o"), "{hits:?}");
    let report = asked.check(asked.kdb(None, None));
    assert!(report.is_complete(), "{:?} {:?}", report.outcomes, report.failures);
}

/// Debian's library carries no assembly: MIOpen does without it, and takes other kernels, which
/// differ between generations of processors.
#[test]
fn what_can_be_compiled_is_enough_on_every_generation() {
    let Some(library) = debian_library() else { return };
    let sources = Sources::in_library(&library).unwrap();
    let sources: BTreeSet<String> = sources.kernels.into_keys().collect();
    for target in ["gfx900@64", "gfx90a@104", "gfx942@304", "gfx1030@36", "gfx1201@32"] {
        let target: Target = target.parse().unwrap();
        let name = target.to_string();
        // Other primitives and ways of choosing want the same kernels everywhere.
        let asked = Asked::with(library.clone(), &PROBLEMS[..3], |options| {
            options.target = target;
            options.sources = sources.clone();
            options.uses = Uses { search: true, ..Uses::NONE };
        });
        let report = asked.check(asked.kdb(None, None));
        assert!(report.is_complete(), "{name}: {:?} {:?}", report.outcomes, report.failures);
        assert!(report.outcomes.iter().all(|outcome| !outcome.found.is_empty()), "{name}");
    }
}

#[test]
fn missing_kernels_are_named() {
    let Some(library) = debian_library() else { return };
    let asked = Asked::new(library, &PROBLEMS[..4], &[]);
    for missing in [&asked.answers.keys[0], &asked.answers.keys[asked.answers.keys.len() / 2]] {
        let report = asked.check(asked.kdb(Some(&missing.key), None));
        assert!(!report.is_complete());
        let missed: BTreeSet<_> =
            report.outcomes.iter().flat_map(|outcome| &outcome.missed).collect();
        assert_eq!(missed, [&missing.key].into());
        let wanting: Vec<u32> = missing.wanted.keys().copied().collect();
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
    let Some(library) = debian_library() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let options = AskOptions::new("gfx1030@36".parse().unwrap(), probe(), scratch.path());
    let kernels = ["gfx906_60.kdb".into()];
    let error =
        check(&library, &problems(&PROBLEMS[..1]), &kernels, &options, &|| false, &mut |_, _| ())
            .unwrap_err();
    assert!(error.hint().unwrap().contains("gfx1030_36.kdb"), "{error}");
}

#[test]
fn packages_are_installed_where_the_library_that_was_asked_looks() {
    if debian_library().is_none() {
        return;
    }
    let project = Project::new();
    project.write("list.txt", &format!("{}\n", PROBLEMS[1]));
    let stderr_with = |layout: &[&str]| {
        let args = ["dist", "--problems", "list.txt", "--target", "gfx906_60", "--out", "o"];
        let more = ["--miopen", "debian:sid", "--cache-dir", CACHE, "--dry-run"];
        project.run(&[&args[..], &more, layout].concat()).expect_code(0).stderr
    };
    let note = "install into /usr/lib/share/miopen/db, where the MIOpen that was asked looks";
    assert!(stderr_with(&[]).contains(note));
    assert!(stderr_with(&["--layout", "debian"]).contains(note));
    let linked = stderr_with(&["--layout", "/lib"]);
    assert!(linked.contains("begin the prefix of --layout with /usr/lib\n"), "{linked}");
    assert!(!stderr_with(&["--layout", "/library"]).contains("is a link"));
    let other = stderr_with(&["--layout", "rocm"]);
    let warning = "install into /opt/rocm/share/miopen/db, but the MIOpen that was asked looks in \
                   /usr/lib/share/miopen/db";
    assert!(other.contains(warning), "{other}");
}

/// The commands of the template end in packages in which the library finds its kernels.
#[test]
fn the_template_for_shards_makes_packages_for_the_library_that_it_asks() {
    if debian_library().is_none() {
        return;
    }
    let project = Project::new();
    project.write("problems.txt", SMALL);
    let template = fs::read_to_string(workspace().join("ci/shards/gitlab.yml")).unwrap();
    let commands = template.lines().filter_map(|line| line.trim().strip_prefix("- gfxpack "));
    let [plan, shard, merge, package] = commands.collect::<Vec<_>>()[..] else {
        panic!("{template}")
    };
    let run = |line: &str, index: &str| {
        let mut shell = command("sh");
        let line = format!("exec {} {line}", binary().display());
        shell.args(["-ec", &line]).current_dir(project.path());
        shell.env("CI_NODE_INDEX", index).env("CI_NODE_TOTAL", "2").env("GFXPACK_CACHE_DIR", CACHE);
        finish(shell).expect_code(0)
    };
    run(&plan.replace("gfx90a@104", "gfx1030@36"), "");
    for index in ["1", "2"] {
        run(shard, index);
    }
    run(merge, "");
    // What lies beside the sources, which come out of the library, is a part of the stored plan.
    let build = ["build", "--problems", "problems.txt", "--miopen", "debian:sid"];
    let build = [&build[..], &["--target", "gfx1030@36", "--cache-dir", CACHE, "--out", "o"]];
    project.run(&build.concat()).expect_code(0);
    assert!(project.tree("o/kdb") == project.tree("kernels/kdb"), "the same kdb");
    let stderr = run(package, "").stderr;
    assert!(stderr.contains("where the MIOpen that was asked looks"), "{stderr}");
    let deb = entries(&project.path().join("packages"));
    let deb = deb.iter().find(|path| path.extension().is_some_and(|kind| kind == "deb")).unwrap();
    tool("dpkg-deb", &["-x", deb.to_str().unwrap(), "root"], project.path());
    let kdb = "root/usr/lib/share/miopen/db/gfx1030_36.kdb";
    let check = ["kdb", "check", kdb, "--problems", "problems.txt", "--miopen", "debian:sid"];
    project.run(&[&check[..], &["--cache-dir", CACHE]].concat()).expect_code(0);
}

#[test]
fn kernels_for_the_library_of_pytorch_are_wheels_that_it_finds() {
    let Some(library) = debian_library() else { return };
    let project = Project::new();
    project.write("list.txt", SMALL);
    let packages = project.path().join("env/lib/python3.12/site-packages");
    let lib = packages.join("torch/lib");
    copy_library(&library, &lib);
    let run = |args: &[&str]| {
        let mut command = project.command(args);
        command.env_remove("MIOPEN_SYSTEM_DB_PATH").env("HOME", project.path().join("home"));
        finish(command)
    };
    let dist = ["dist", "--problems", "list.txt", "--miopen", "env", "--target", "gfx1030@36"];
    run(&[&dist[..], &["--out", "o", "--cache-dir", CACHE]].concat()).expect_code(0);
    let made = entries(&project.path().join("o"));
    let wheels: Vec<_> =
        made.iter().filter(|path| path.extension().is_some_and(|kind| kind == "whl")).collect();
    let archives = ["deb", "rpm", "gz"];
    let is_other = |path: &PathBuf| {
        archives.iter().any(|kind| path.extension().is_some_and(|own| own == *kind))
    };
    assert!(wheels.len() == 1 && !made.iter().any(is_other), "{made:?}");
    let listed = project.run(&["kdb", "list", "--keys", "o/kdb/gfx1030_36.kdb"]).expect_code(0);
    let key: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    let [name, args] = ["kernel_name", "kernel_args"].map(|part| key[part].as_str().unwrap());

    let lookup = ["lookup", "--miopen", "env", "--target", "gfx1030@36", name, args];
    run(&lookup).expect_code(3);
    let wheel = wheels[0].to_str().unwrap();
    let into = packages.to_str().unwrap();
    tool("python3", &["-m", "zipfile", "-e", wheel, into], project.path());
    let found = run(&lookup).expect_code(0);
    assert!(found.stdout.contains("miopen_hip_gfx1030_36kdb/db/gfx1030_36.kdb"), "{found:?}");
    let doctor = ["doctor", "--miopen", "env", "--target", "gfx1030@36"];
    let healthy = run(&doctor);
    assert!(!healthy.stdout.contains("none is installed"), "{}", healthy.stdout);
    assert!(healthy.stdout.contains("looks in"), "{}", healthy.stdout);
    // Since PyTorch 7.14, the library is beside torch.
    let beside = packages.join("_rocm_sdk_libraries_gfx1030");
    fs::create_dir(&beside).unwrap();
    fs::rename(&lib, beside.join("lib")).unwrap();
    for dir in ["env", "env/lib/python3.12/site-packages/torch"] {
        run(&["lookup", "--miopen", dir, "--target", "gfx1030@36", name, args]).expect_code(0);
    }

    // After an upgrade, the kernels of the version before are of no use.
    let kdb = beside.join("share/miopen/db/gfx1030_36.kdb");
    fs::create_dir_all(kdb.parent().unwrap()).unwrap();
    fs::copy(project.path().join("o/kdb/gfx1030_36.kdb"), &kdb).unwrap();
    let old = "has the kernels of MIOpen 3.3.0, and 3.";
    assert!(!run(&doctor).stdout.contains("has the kernels of MIOpen"));
    let mut bytes = fs::read(&kdb).unwrap();
    bytes[60..64].copy_from_slice(&3_003_000_u32.to_be_bytes());
    fs::write(&kdb, bytes).unwrap();
    let stale = run(&doctor).expect_code(101).stdout;
    assert!(stale.contains(old) && stale.contains("make new ones: gfxpack dist"), "{stale}");
}
