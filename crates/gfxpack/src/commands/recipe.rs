//! `recipe`: writes the fields about kernels for packages that maintainers make
//! themselves.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use gfxpack_package::recipe::{rpm_dependencies, substvars};
use gfxpack_plan::kernel_package::statements;
use gfxpack_process::{SystemTool, write_output};

use crate::args::Recipe;
use crate::fail::{self, Result};
use crate::output::{Output, counted, message};

/// Reads the newest entry of `debian/changelog`.
const PARSECHANGELOG: SystemTool =
    SystemTool { program: "dpkg-parsechangelog", provided_by: "dpkg-dev" };
/// The prefix of all variables' names.
const PREFIX: &str = "gfxpack:";

/// Writes variables for debhelper, or prints dependencies for rpm.
pub(crate) fn run(args: &Recipe, output: &Output) -> Result {
    match args {
        Recipe::Debhelper => debhelper(Path::new("."), output),
        Recipe::Rpm { kind, root, package, package_version } => {
            let names = std::io::read_to_string(std::io::stdin());
            let names = names.map_err(fail::io("read", Path::new("/dev/stdin")))?;
            let inside = |name: &str| match Path::new(name).strip_prefix(root) {
                Ok(path) => Ok(format!("/{}", path.display())),
                Err(_) => Err(fail::usage(
                    format!("`{name}` does not lie below `{}`", root.display()),
                    "give --root the build root, and on stdin files in it by their full paths",
                )),
            };
            let paths: Vec<String> = names.lines().map(inside).collect::<Result<_>>()?;
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let relations = statements(&paths, package, package_version).relations;
            rpm_dependencies(&relations, *kind).iter().for_each(|line| output.raw(line));
            Ok(())
        }
    }
}

/// Writes `debian/PACKAGE.substvars` for each package of the source package in `dir` whose tree,
/// `debian/PACKAGE`, has kernels in it. Only gfxpack's own variables are replaced.
fn debhelper(dir: &Path, output: &Output) -> Result {
    let control = dir.join("debian/control");
    let text = fs::read_to_string(&control).map_err(fail::io("read", &control))?;
    let arguments = ["--show-field", "Version", "--file", "debian/changelog"];
    let version = PARSECHANGELOG.output(&arguments, dir, &[])?;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let mut any = false;
    for name in text.lines().filter_map(|line| line.strip_prefix("Package:")).map(str::trim) {
        let tree = dir.join("debian").join(name);
        if !tree.is_dir() {
            continue;
        }
        let paths = installed(&tree)?;
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let declared = statements(&paths, name, &version);
        let file = dir.join("debian").join(format!("{name}.substvars"));
        let before = match fs::read_to_string(&file) {
            Err(none) if none.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(fail::io("read", &file))?,
        };
        if declared.deb_fields.is_empty() && !before.contains(PREFIX) {
            continue;
        }
        let others = before.lines().filter(|line| !line.starts_with(PREFIX)).map(str::to_owned);
        let ours = substvars(&declared.relations, &declared.deb_fields);
        let ours = ours.into_iter().map(|(variable, value)| format!("{variable}={value}"));
        let lines: Vec<String> = others.chain(ours).collect();
        let text = lines.join("\n") + "\n";
        write_output(&file, |out| out.write_all(text.as_bytes()))
            .map_err(fail::io("write", &file))?;
        if declared.deb_fields.is_empty() {
            continue;
        }
        any = true;
        let has_kernels =
            |path: &&&str| !statements(&[**path], name, &version).deb_fields.is_empty();
        let kernel_files = paths.iter().filter(has_kernels).count();
        let file = format!("debian/{name}.substvars");
        message!(output, "substvars", {
            "package": name, "kernel_files": kernel_files, "file": file,
        });
        output.info(&format!("{file}: {} with kernels", counted(kernel_files, "file")));
    }
    if !any {
        return Err(fail::usage(
            "failed to find kernels in the packages of `debian/control`",
            "install the kdbs first, as with dh_install, below debian/PACKAGE in a directory \
             where MIOpen looks: usr/lib/share/miopen/db",
        ));
    }
    Ok(())
}

/// All files below a package's tree, as the absolute paths at which they will be installed.
fn installed(tree: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in walkdir::WalkDir::new(tree).sort_by_file_name() {
        let entry = entry.map_err(|failed| fail::io("read", tree)(failed.into()))?;
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(tree).expect("it lies below the tree");
            paths.push(format!("/{}", path.display()));
        }
    }
    Ok(paths)
}
