//! The recipe of the .rpm holds what is installed.

use gfxpack_tests::project::workspace;

use crate::support::*;

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

/// `/cmake/gfxpack-runtime/` of `/usr/lib64/cmake/gfxpack-runtime/`.
fn last_directory(line: &str) -> String {
    let mut parts: Vec<&str> = line.trim_end_matches('/').rsplit('/').take(2).collect();
    parts.reverse();
    format!("/{}/", parts.join("/"))
}
