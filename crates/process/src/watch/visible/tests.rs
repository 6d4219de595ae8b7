//! What programs of the class of compilers see, and clang itself.
#![expect(clippy::disallowed_methods, reason = "tests start programs")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::find_in_path;
use crate::preload::{self, PRELOAD_VARIABLE};
use crate::watch::{Landlock, Record, Recorder, RecorderOptions, WatchError, landlock_abi};

/// A tree of files, in which the stage lies 24 directories below `top`.
struct Tree {
    _dir: TempDir,
    root: PathBuf,
    visible: Visible,
}

const KERNEL: Option<Landlock> = Some(Landlock::Compilers);

fn tree() -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut stage = root.join("top");
    stage.extend((1..=MAX_UPS).map(|number| number.to_string()));
    let files = [
        "outside",
        "top/in",
        "d/f",
        "d/sub/f",
        "dx/f",
        "e/sub/f",
        "e/f",
        "n/lib/f",
        "n/inc/h",
        "n/inc/i",
        "n/dir/f",
        "scratch/f",
        "t/f",
        "t/sub/f",
        "looks",
    ];
    for file in files.map(|file| root.join(file)).into_iter().chain([stage.join("below/f")]) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text").unwrap();
    }
    symlink(root.join("outside"), root.join("d/link")).unwrap();
    symlink("../outside", stage.join("link")).unwrap();
    let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect();
    let dirs = at(&["d/", "n/lib/../../e/sub"]);
    let names = at(&["n/./lib/../inc/h", "n/dir", "n/lib//f"]);
    let trees = at(&["t"]);
    Tree { _dir: dir, visible: Visible { stage, dirs, trees, names }, root }
}

impl Tree {
    /// What the program prints, and the record.
    fn look(
        &self,
        class: &str,
        (what, landlock): (&str, Option<Landlock>),
        paths: &[impl AsRef<OsStr>],
    ) -> (String, Result<Record, WatchError>) {
        let looks = self.root.join("looks");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/watch/visible/looks.c");
        let built = Command::new("cc").args(["-w", source, "-ldl", "-o"]).arg(&looks).status();
        assert!(built.unwrap().success());
        let writable = [self.root.join("scratch")];
        let writable = writable.each_ref().map(PathBuf::as_path);
        let visible = Some(&self.visible);
        let options = RecorderOptions { all: false, writable: Some(&writable), landlock, visible };
        let recorder = Recorder::with(&options).unwrap();
        let mut command = Command::new(&looks);
        command.current_dir(&self.visible.stage).args([class, what]);
        if what == "job" {
            command.env(PRELOAD_VARIABLE, preload::path().unwrap()).arg(recorder.path());
        } else {
            command.envs(recorder.environment().unwrap()).arg("");
        }
        let output = command.args(paths).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), recorder.finish())
    }
}

#[test]
fn compilers_see_what_is_named_and_nothing_else() {
    let tree = tree();
    let root = tree.root.to_str().unwrap();
    let stage = tree.visible.stage.to_str().unwrap();
    let ups = |count| vec![".."; count].join("/");
    let cases = [
        // Asked for, read, listed.
        ("111", &[][..]),
        (
            "000",
            &[
                "outside",
                "top/in",
                "n/inc/h",
                "n/lib/../inc/i",
                "n/inc",
                "n/lib/g",
                "n/dir/f",
                "looks",
            ],
        ),
        (
            "000",
            &[
                "d/sub/../f",
                "dx",
                "dx/f",
                "e/f",
                "e/sub/f",
                "n/lib/../../e/f",
                "n/lib/f/x",
                "n/dir/../lib/f",
                "t/sub/../../outside",
                "t/../t/f",
            ],
        ),
        (
            "110",
            &[
                "d/f",
                "d/sub/f",
                "d//./sub/f",
                "n/lib/../inc/h",
                "n//lib/./../inc/h",
                "n/lib/../../e/sub/f",
                "t/sub/../f",
            ],
        ),
        ("110", &["n/lib/f", "scratch/f"]),
        ("101", &["d", "d/", "d/sub/.", "scratch", "n/lib/../../e/sub", "t/sub/.."]),
        (
            "100",
            &[
                "",
                "n",
                "n/lib",
                "n/lib/..",
                "n/lib/../inc",
                "n/dir",
                "n/lib/../..",
                "top",
                "top/1/2/",
            ],
        ),
    ];
    let below = cases
        .iter()
        .flat_map(|(seen, names)| names.iter().map(|name| (*seen, format!("{root}/{name}"))));
    let others = [
        ("101", stage.to_owned()),
        ("101", format!("{stage}/below/.././")),
        ("110", format!("{stage}/below/f")),
        ("101", ".".to_owned()),
        ("110", "below/f".to_owned()),
        ("110", "below/../below/f".to_owned()),
        ("101", ups(MAX_UPS)),
        ("110", format!("{}/in", ups(MAX_UPS))),
        ("110", format!("{stage}/{}/in", ups(MAX_UPS))),
        ("000", format!("{}/outside", ups(MAX_UPS + 1))),
        ("000", format!("{stage}/{}/outside", ups(MAX_UPS + 1))),
        ("100", "/".to_owned()),
        ("000", "/etc".to_owned()),
        ("000", "/etc/passwd".to_owned()),
        ("000", "/proc/cpuinfo".to_owned()),
        ("110", "/dev/null".to_owned()),
        ("110", "/proc/self/exe".to_owned()),
        ("100", "/proc/self/fd".to_owned()),
        ("000", "/proc/self/fd/../exe".to_owned()),
        ("000", format!("/proc/self/fd/1{root}")),
        // From another directory, a name is as if it were written out.
        ("@", format!("@{root}/d/sub")),
        ("110", "f".to_owned()),
        ("000", "../f".to_owned()),
        ("110", format!("{root}/d/f")),
        ("no @", format!("@{root}/dx")),
    ];
    let cases: Vec<(&str, String)> = below.chain(others).collect();
    let paths: Vec<&str> = cases.iter().map(|(_, path)| path.as_str()).collect();
    let expected: Vec<String> = cases.iter().map(|(seen, path)| format!("{seen} {path}")).collect();
    for class in ["-cc1", "-cc1as", "@arguments"] {
        for how in [("", None), ("", KERNEL), ("job", KERNEL)] {
            let (printed, record) = tree.look(class, how, &paths);
            assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{class} {how:?}");
            let record = record.unwrap();
            assert!(record.processes[0].arguments[1] == class && record.accesses.is_empty());
        }
    }
    let (printed, _) = tree.look("a driver", ("", KERNEL), &paths[..1]);
    assert!(printed.starts_with("110"), "{printed}");
}

#[test]
fn the_kernel_stops_what_goes_past_the_library() {
    let tree = tree();
    let files = ["outside", "n/inc/i", "n/dir/f", "d/link"].map(|file| tree.root.join(file));
    let dirs = ["n", "n/dir", "top/../dx"].map(|dir| tree.root.join(dir));
    let visible = ["d/f", "n/inc/h"].map(|file| tree.root.join(file));
    let digits = |paths: &[PathBuf], landlock| {
        let (printed, record) = tree.look("-cc1", ("raw", landlock), paths);
        assert_eq!(record, Err(WatchError::NotRecordable("syscall".into())));
        printed.lines().map(|line| line[..2].to_owned()).collect::<Vec<_>>()
    };
    let stopped = landlock_abi().is_some();
    for landlock in [None, KERNEL] {
        let (file, dir) = if stopped && landlock.is_some() { ("00", "00") } else { ("10", "01") };
        assert_eq!(digits(&files, landlock), [file; 4]);
        assert_eq!(digits(&dirs, landlock), [dir; 3]);
        assert_eq!(digits(&visible, landlock), ["10"; 2]);
    }
}

#[test]
fn what_sees_only_what_is_named_starts_no_program() {
    let tree = tree();
    let (printed, record) = tree.look("-cc1", ("start", None), &["/bin/true"]);
    assert_eq!(printed, "1 /bin/true\n");
    assert_eq!(record, Err(WatchError::NotRecordable("execve".into())));
}

/// Compiles a text with a header that is there, in a directory that `-I` names.
#[test]
fn clang_finds_only_declared_headers() {
    let clang = find_in_path("clang-15", "/usr/bin:/bin".as_ref()).unwrap().canonicalize().unwrap();
    let tree = tree();
    let (stage, scratch) = (&tree.visible.stage, tree.root.join("scratch"));
    let header = tree.root.join("n/inc/h");
    fs::write(&header, "#pragma once\nint declared;\n").unwrap();
    let object = scratch.join("o");
    let compile = |text: &str, names: &[PathBuf], landlock| {
        fs::write(stage.join("k.c"), text).unwrap();
        let visible = Visible { names: names.to_vec(), ..tree.visible.clone() };
        let options = RecorderOptions {
            all: false,
            writable: Some(&[&scratch]),
            landlock,
            visible: Some(&visible),
        };
        let recorder = Recorder::with(&options).unwrap();
        let mut command = Command::new(&clang);
        command
            .args(["-cc1", "-triple", "amdgcn-amd-amdhsa", "-emit-obj", "-I"])
            .arg(header.parent().unwrap());
        command.arg("-o").args([&object, Path::new("k.c")]).current_dir(stage).env_clear();
        let output = command.envs(recorder.environment().unwrap()).output().unwrap();
        let record = recorder.finish().unwrap();
        assert!(record.processes.len() == 1 && record.accesses.is_empty());
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let quoted = header.display();
    let incbin = format!("__asm__(\".incbin \\\"{quoted}\\\"\");");
    let twice = format!(
        "#include <h>\n#include \"{quoted}\"\n#ifndef X\n#define X\nint x = 1;\n#endif\nint y = sizeof declared;\n"
    );
    for landlock in [None, KERNEL] {
        let none = |text: &str| compile(text, &[], landlock);
        let declared = |text: &str| compile(text, std::slice::from_ref(&header), landlock);
        let asked = "#if __has_include(<h>)\n#error there\n#endif\n";
        assert!(none("#include <h>\n").1.contains("'h' file not found"));
        assert!(none(&format!("#include \"{quoted}\"\n")).1.contains("file not found"));
        assert_eq!(none(asked), (true, String::new()));
        assert!(none(&incbin).1.contains("ould not find incbin file"), "{}", none(&incbin).1);
        assert!(declared(asked).1.contains("error: there"));
        assert_eq!(declared(&incbin), (true, String::new()));
        assert_eq!(declared(&twice), (true, String::new()));
        // A directory is no file, whether it is visible or not.
        for names in [vec![], vec![tree.root.join("n/inc/../dir")]] {
            let (ok, message) = compile("#include <../dir>\n", &names, landlock);
            assert!(!ok && message.contains("file not found"), "{message}");
        }
    }
}

#[test]
fn compilers_of_drivers_see_what_is_named_too() {
    let tree = tree();
    let (stage, scratch) = (&tree.visible.stage, tree.root.join("scratch"));
    fs::write(stage.join("k.c"), "#include <h>\n").unwrap();
    fs::write(tree.root.join("n/inc/h"), "int declared;\n").unwrap();
    let clang = find_in_path("clang-15", "/usr/bin:/bin".as_ref()).unwrap();
    for (name, found) in [("n/inc/i", false), ("n/inc/h", true)] {
        let visible = Visible { names: vec![tree.root.join(name)], ..tree.visible.clone() };
        let recorder = Recorder::of_driver(&scratch, Some(&visible)).unwrap();
        let mut command = Command::new(&clang);
        // In a process of its own, the compiler has its name.
        command.args(["-fno-integrated-cc1", "-c", "k.c", "-I"]).arg(tree.root.join("n/inc"));
        command.arg("-o").arg(scratch.join("o")).current_dir(stage).env("TMPDIR", &scratch);
        command.envs(recorder.environment().unwrap());
        let output = recorder.start(&clang, || command.output()).unwrap();
        assert_eq!(output.status.success(), found, "{output:?}");
        assert!(recorder.finish().unwrap().processes.len() > 1);
    }
}
