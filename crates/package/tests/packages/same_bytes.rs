//! Equal specs give equal bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use crate::archives::check;
use crate::child::{Job, command, kinds, printed_value, write};
use crate::support::{NAME, awkward_spec, run, temp};

#[test]
fn bytes_depend_on_the_spec_alone() {
    let here = temp();
    let there = temp();
    let spec = awkward_spec(here.path());
    // Inputs with other times and permissions.
    for entry in fs::read_dir(here.path()).expect("lists") {
        let file =
            fs::File::options().write(true).open(entry.expect("reads").path()).expect("opens");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).expect("stamped");
        file.set_permissions(fs::Permissions::from_mode(0o400)).expect("changed");
    }
    let out = here.path().join("out");
    let other = there.path().join("another/directory");
    fs::create_dir(&out).expect("created");
    fs::create_dir_all(&other).expect("created");
    for (kind, _) in &kinds() {
        let written = write(kind, &spec, &out, 1).expect("written");
        let report = check(&written.path);
        assert_eq!(report.findings, [""; 0], "{kind}");
        assert!(report.files >= spec.files.len() as u64, "{kind}: {report:?}");
        // Another process, directory, umask, time zone, locale, order of files,
        // number of threads, and an irrelevant clock.
        let mut child = command("umask 077;", Job::Awkward, kind, there.path(), &other);
        child.env("TZ", "Pacific/Kiritimati").env("LC_ALL", "tr_TR.UTF-8").env("HOSTNAME", "other");
        child.env("SOURCE_DATE_EPOCH", "1").current_dir("/");
        let stdout = run(&mut child);
        assert_eq!(
            printed_value(&stdout, "wrote").as_ref(),
            Some(&written.sha256),
            "{kind}: {stdout}"
        );
        let (first, second) = (fs::read(&written.path), fs::read(other.join(&written.file_name)));
        assert!(first.expect("read") == second.expect("read"), "{kind}: other bytes");
    }
}

#[test]
fn everyone_may_read_outputs_unless_the_umask_forbids_it() {
    let dir = temp();
    for (umask, mode) in [("022", 0o644), ("077", 0o600)] {
        let before = format!("umask {umask};");
        let stdout = run(&mut command(&before, Job::Awkward, "deb-gz", dir.path(), dir.path()));
        assert!(printed_value(&stdout, "wrote").is_some(), "{stdout}");
        let name = format!("{NAME}_1.0.0-1_all.deb");
        let metadata = fs::metadata(dir.path().join(name)).expect("written");
        assert_eq!(metadata.permissions().mode() & 0o777, mode);
    }
}
