//! The recipes of the packages contain the installed files.

use std::path::Path;

use crate::support::project::workspace;

use super::support::*;

/// The .rpm's recipe, read by rpm itself.
#[test]
fn the_rpm_recipe_names_what_is_installed() {
    let spec = workspace().join("packaging/rpm/gfxpack-runtime.spec");
    let read = text(run(command("rpmspec").arg("--parse").arg(&spec)).stdout);
    let version = env!("CARGO_PKG_VERSION");
    assert!(read.contains(&format!("Version:        {version}\n")), "{read}");
    let machine = Machine::new();
    let (libdir, usr) = (machine.libdir(), machine.root.join("usr"));
    for path in text(run(command("find").arg(&usr).args(["!", "-type", "d"])).stdout).lines() {
        let path = path.replace(libdir.to_str().unwrap(), "<libdir>");
        let path = path.replace(usr.to_str().unwrap(), "/usr");
        let name = path.replace("<libdir>/", "").replace(version, "%{version}");
        let listed = |line: &str| {
            let line = line.replace(version, "%{version}");
            // A directory of the list has what is in it.
            line.ends_with(&format!("/{}", name.trim_start_matches("/usr/")))
                || (line.ends_with('/') && format!("/{name}").contains(&last_directory(&line)))
        };
        assert!(read.lines().any(listed), "{path} is in no package:\n{read}");
    }
}

/// dpkg's own tool reads the library and the list of its symbols, as when the .deb is made.
#[test]
fn the_deb_recipe_lists_the_librarys_symbols() {
    let machine = Machine::new();
    let read = |template: &Path| {
        let mut command = command("dpkg-gensymbols");
        command.args(["-c4", "-plibgfxpack-runtime0", "-v0.1.0"]);
        command.arg(format!("-I{}", template.display())).arg(format!("-e{}", machine.library()));
        command.arg("-O").current_dir(&machine.root).output().unwrap()
    };
    let listed = read(&crate_dir().join("debian/symbols"));
    assert!(listed.status.success(), "{}{}", text(listed.stdout), text(listed.stderr));
    let listed = text(listed.stdout);
    assert!(listed.contains("\n gfxpack_get@GFXPACK_RUNTIME_0.1 0.1.0\n"), "{listed}");

    let other = machine.root.join("symbols");
    let template = include_str!("../../../../crates/runtime-c/debian/symbols");
    std::fs::write(&other, template.replace("GFXPACK_RUNTIME_0.1", "GFXPACK_RUNTIME_0.2")).unwrap();
    assert!(!read(&other).status.success(), "it has no such version");
}

/// `/cmake/gfxpack-runtime/` of `/usr/lib64/cmake/gfxpack-runtime/`.
fn last_directory(line: &str) -> String {
    let mut parts: Vec<&str> = line.trim_end_matches('/').rsplit('/').take(2).collect();
    parts.reverse();
    format!("/{}/", parts.join("/"))
}
