//! A program with more rights than its caller: set-user-ID to a user who is
//! neither root nor the caller.

use std::os::unix::fs::chown;

use gfxpack_runtime::{DirectoryOptions, Environment, KdbDirectories, UserDirectory};

use crate::support::*;

/// A user in the password database, and one who is not in it.
const OWNERS: [u32; 2] = [1, 54_321];
const CALLER: u32 = 65534;

/// The home directory of a user in /etc/passwd.
fn home(user: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = users.find(|fields| fields[2] == user.to_string())?;
    Some(found[5].to_owned())
}

fn why_not(machine: &Machine) -> Option<&'static str> {
    let mount = rustix::fs::statvfs(&machine.root).unwrap().f_flag;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    if !is_root() {
        Some("only root can give a program to another user")
    } else if mount.contains(rustix::fs::StatVfsMountFlags::NOSUID) {
        Some("the temporary directory is mounted nosuid")
    } else if status.lines().any(|line| line == "NoNewPrivs:\t1") {
        Some("no program may gain rights here")
    } else {
        None
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is not run says so")]
fn the_callers_variables_choose_no_directory() {
    for owner in OWNERS {
        let machine = Machine::new(1);
        if let Some(why) = why_not(&machine) {
            eprintln!("skipped: {why}");
            return;
        }
        let program = machine.root.join("program");
        copy_this_program(&program);
        chown(&program, Some(owner), None).unwrap();
        chmod(&program, 0o4755);
        let callers = machine.root.join("callers");
        std::fs::create_dir(&callers).unwrap();
        chmod(&callers, 0o777);
        let mut child = command(&program);
        as_user(&mut child, CALLER);
        let miopens = ["MIOPEN_SYSTEM_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "MIOPEN_USER_DB_PATH"];
        for name in miopens.into_iter().chain(["ROCM_PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME"]) {
            child.env(name, &callers);
        }
        let callers = callers.to_str().unwrap();
        with_test(
            &mut child,
            "setuid::child_process_with_more_rights",
            &[&owner.to_string(), callers],
        );
        finish(spawn(&mut child));
    }
}

#[test]
#[ignore = "the child of another test, started with another user's rights"]
fn child_process_with_more_rights() {
    let arguments = child_arguments();
    let owner: u32 = arguments[0].parse().unwrap();
    assert_eq!(rustix::process::geteuid().as_raw(), owner);
    assert_eq!(rustix::process::getuid().as_raw(), CALLER);
    let environment = Environment::read();
    let home = home(owner).map_or_else(|| environment.temp_dir(), Into::into);
    assert_eq!(environment.home(), home);
    let directories = KdbDirectories::resolve(&environment, &DirectoryOptions::default());
    let mut all: Vec<_> = directories.system_dirs().map(ToOwned::to_owned).collect();
    all.extend(directories.read_only.clone());
    all.push(directories.temp_dir.clone());
    if let UserDirectory::Dir(directory) = &directories.user {
        all.push(directory.clone());
    }
    assert!(all.len() > 2, "{directories:?}");
    for path in all {
        assert!(!path.starts_with(&arguments[1]), "{}", path.display());
    }
    assert!(
        environment
            .variables()
            .iter()
            .all(|variable| { variable.value.as_deref() != Some(arguments[1].as_str()) })
    );
}
