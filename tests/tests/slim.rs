//! `slim`, and `verify` with a GPU: what others built has code for it, and is smaller without that
//! for other GPUs. The library, HIP and comgr are Debian's, the loader too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_debian::{Archive, Event, KEYS, Options, Package, Progress, Proxies};
use gfxpack_tests::project::{Project, command, finish, tool};

/// Shared with the other suites that fetch from Debian.
const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/libmiopen-cache");
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

struct Ignored;

impl Progress for Ignored {
    fn event(&self, _event: Event<'_>) {}
}

/// The directories of a package of sid and of all that it depends on; `None` if Debian's archive
/// can't be reached.
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn unpacked(package: &str) -> Option<BTreeMap<String, PathBuf>> {
    let options = Options {
        mirror: None,
        apt: PathBuf::from("/etc/apt"),
        keys: KEYS.to_vec(),
        proxies: Proxies::default(),
        architecture: Some("amd64".to_owned()),
    };
    let archive = Archive::new(Path::new(CACHE), options, &Ignored);
    let suite = match archive.suite("sid") {
        Ok(suite) => suite,
        Err(error) if error.is_unreachable() => {
            eprintln!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let all = suite.packages(&|name| name.starts_with("lib") || name == "zlib1g").unwrap();
    let all: BTreeMap<String, Package> =
        all.into_iter().map(|package| (package.pin.name.clone(), package)).collect();
    let (mut found, mut left) = (BTreeMap::new(), vec![package.to_owned()]);
    while let Some(name) = left.pop() {
        let Some(package) = all.get(&name).filter(|_| !name.ends_with("-dev")) else { continue };
        if found.contains_key(&name) {
            continue;
        }
        left.extend(package.depends.iter().flatten().map(|relation| relation.name.clone()));
        found.insert(name, archive.unpacked(&package.pin).unwrap());
    }
    Some(found)
}

/// What HIP would load from a library, a line for each wrapper and target.
fn asked(packages: &BTreeMap<String, PathBuf>, program: &Path, library: &Path) -> Vec<String> {
    let dirs = packages.values().map(|dir| dir.join(LIBRARIES));
    let dirs: Vec<String> = dirs.map(|dir| dir.display().to_string()).collect();
    let find = |name: &str| dirs.iter().map(|dir| Path::new(dir).join(name)).find(|it| it.exists());
    let mut loader = command(find("ld-linux-x86-64.so.2").unwrap());
    loader.arg("--preload").arg(find("libamdhip64.so.6").unwrap());
    loader.arg("--library-path").arg(dirs.join(":")).arg(program).arg(library);
    let run = finish({
        loader.args(["gfx906", "gfx1030", "gfx1100"]);
        loader
    });
    run.expect_code(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn hip_finds_the_same_code_in_debians_rocrand() {
    let Some(packages) = unpacked("librocrand1") else { return };
    let project = Project::small();
    let root = &packages["librocrand1"];
    let name = "librocrand.so.1";
    let ask = project.path().join("ask");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ask_comgr.c");
    tool("cc", &["-O1", "-rdynamic", "-o", ask.to_str().unwrap(), source, "-ldl"], project.path());
    let whole = root.join(LIBRARIES).join(name);
    let before = asked(&packages, &ask, &whole);
    assert!(before.len() >= 30 && before.iter().all(|line| !line.contains("none")), "{before:?}");

    let root = root.to_str().unwrap();
    for (targets, out) in [("gfx1030", "one"), ("gfx1030,gfx1100", "two")] {
        let slim = ["slim", root, "--target", targets, "--out", out, "--no-hip"];
        project.run(&slim).expect_code(0);
        project.run(&["verify", out, "--target", targets]).expect_code(0);
        let is_kept =
            |line: &&String| targets.split(',').any(|it| line.contains(&format!(" {it} ")));
        let kept: Vec<&String> = before.iter().filter(is_kept).collect();
        let library = project.path().join(out).join(LIBRARIES).join(name);
        let check = |library: &Path| {
            let after = asked(&packages, &ask, library);
            let (found, none): (Vec<&String>, Vec<_>) = after.iter().partition(is_kept);
            assert_eq!(found, kept, "{library:?}");
            assert!(none.iter().all(|line| line.ends_with(" none")), "{none:?}");
        };
        check(&library);
        let stripped = project.path().join("stripped.so");
        let words = ["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note"];
        let paths = ["-o", stripped.to_str().unwrap(), library.to_str().unwrap()];
        tool("strip", &[words.as_slice(), &paths].concat(), project.path());
        check(&stripped);
    }
    let one = fs::metadata(project.path().join("one").join(LIBRARIES).join(name)).unwrap().len();
    assert!(one < fs::metadata(&whole).unwrap().len() / 2, "{one}");
    project.run(&["verify", "one", "--target", "gfx1100"]).expect_code(101);
}

#[test]
fn files_of_other_gpus_are_taken_out_and_gaps_named() {
    let project = Project::small();
    let library = "tree/rocblas/library";
    fs::create_dir_all(project.path().join(library)).unwrap();
    let list = |gpu: &str| {
        let text = format!("TensileLibrary_Type_HH_{gpu}");
        let list = [&[0x91, 0xd9, text.len() as u8], text.as_bytes()].concat();
        let at = |name: &str| project.path().join(library).join(name);
        fs::write(at(&format!("TensileLibrary_lazy_{gpu}.dat")), list).unwrap();
        fs::write(at(&format!("{text}.dat")), b"\x81\xacsourceKernel\xc2").unwrap();
        fs::write(at(&format!("{text}.co")), "code").unwrap();
    };
    for gpu in ["gfx90a", "gfx1030"] {
        list(gpu);
    }
    project.write(&format!("{library}/TensileLibrary_Type_HH_fallback.dat"), "for all");
    let slim = ["slim", "tree", "--target", "gfx1030", "--out", "out", "--json", "-", "--no-hip"];
    let run = project.run(&slim).expect_code(0);
    assert_eq!(run.of_type("slimmed")[0]["changes"].as_array().unwrap().len(), 3);
    let names: Vec<String> = project.tree("out").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().all(|name| !name.contains("gfx90a")), "{names:?}");
    project.run(&["verify", "out", "--target", "gfx1030"]).expect_code(0);
    // It is never changed in place, and what others need is not there any more.
    project.run(&slim).expect_code(2);
    project.run(&["verify", "out", "--target", "gfx90a"]).expect_code(101);

    fs::remove_file(project.path().join("out/rocblas/library/TensileLibrary_Type_HH_gfx1030.co"))
        .unwrap();
    let verify = ["verify", "out", "--target", "gfx1030", "--json", "-"];
    let gaps = project.run(&verify).expect_code(101).of_type("gap");
    let detail = "it names `TensileLibrary_Type_HH_gfx1030.co`, which is not there";
    assert_eq!(gaps.iter().map(|gap| &gap["detail"]).collect::<Vec<_>>(), [detail]);
}
