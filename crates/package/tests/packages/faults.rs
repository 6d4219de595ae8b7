//! Failures give an error with a hint, and leave nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::Stdio;

use gfxpack_model::package::Content;
use gfxpack_model::{Error, Result};
use gfxpack_package::Written;

use crate::child::{Job, command, kinds, write};
use crate::support::{awkward_spec, file_names, noise, temp};

fn refused(made: Result<Written>, kind: &str) -> Error {
    let error = made.expect_err(kind);
    assert!(error.to_string().starts_with("failed to "), "{error}");
    assert!(error.hint().is_some());
    error
}

#[test]
fn a_missing_input_leaves_nothing_and_the_older_output_alone() {
    let dir = temp();
    let out = temp();
    let mut spec = awkward_spec(dir.path());
    let kinds = kinds();
    for (kind, _) in &kinds {
        write(kind, &spec, out.path(), 1).expect("written");
    }
    let before = crate::support::tree(out.path());
    let missing = dir.path().join("missing");
    spec.files[2].content = Content::File(missing.clone());
    for (kind, _) in &kinds {
        let error = refused(write(kind, &spec, out.path(), 1), kind);
        assert_eq!(error.to_string(), format!("failed to read `{}`", missing.display()), "{kind}");
        assert_eq!(error.io_kind(), Some(ErrorKind::NotFound), "{kind}");
    }
    assert!(crate::support::tree(out.path()) == before);
    spec.files[2].content = Content::File(dir.path().to_owned());
    for (kind, _) in &kinds {
        let error = refused(write(kind, &spec, out.path(), 1), kind);
        assert!(error.to_string().ends_with("it is no regular file"), "{kind} gave {error:?}");
    }
    assert!(crate::support::tree(out.path()) == before);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_a_clear_error() {
    let dir = temp();
    let spec = awkward_spec(dir.path());
    let file = dir.path().join("input-0");
    // Nobody can create files in /proc, not even root.
    for out in [&dir.path().join("absent"), &file, Path::new("/proc/self/task")] {
        for (kind, _) in &kinds() {
            let error = refused(write(kind, &spec, out, 1), kind).to_string();
            let begin = format!("failed to write `{}/", out.display());
            assert!(error.starts_with(&begin), "{kind} into {} gave {error}", out.display());
        }
    }
    let error = refused(write("deb-gz", &spec, &dir.path().join("absent"), 1), "deb-gz");
    assert!(error.hint().is_some_and(|hint| hint.contains("create the directory")), "{error:?}");
}

#[test]
fn a_killed_writer_leaves_nothing() {
    let dir = temp();
    let out = temp();
    fs::write(dir.path().join("input"), noise(1, 96 << 20)).expect("written");
    for kind in ["deb", "tar.xz", "rpm-xz"] {
        let mut command = command("", Job::OneFile, kind, dir.path(), out.path());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the child starts");
        // When the writer has a file open in the directory, it is at work, and
        // needs many more seconds.
        let fds = format!("/proc/{}/fd", child.id());
        let holds_output = || {
            let links = fs::read_dir(&fds).into_iter().flatten().flatten();
            let mut targets = links.filter_map(|link| fs::read_link(link.path()).ok());
            targets.any(|target| target.starts_with(out.path()))
        };
        while !holds_output() {
            assert!(child.try_wait().expect("waits").is_none(), "{kind}: ended before it began");
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(!child.wait().expect("waits").success(), "{kind}");
        assert!(
            lines.map_while(Result::ok).all(|line| !line.contains("wrote")),
            "{kind} was too fast"
        );
        assert_eq!(file_names(out.path()), Vec::<String>::new(), "{kind}");
    }
}
