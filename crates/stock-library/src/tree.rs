//! The paths of a library's files in an installed or unpacked tree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::product::Product;

/// Directories with libraries, below a root. `{}` is the machine's triplet.
const LIBRARY_DIRS: [&str; 9] = [
    "lib",
    "lib/{}",
    "lib64",
    "usr/lib/{}",
    "usr/lib",
    "usr/lib64",
    "opt/rocm/lib",
    "opt/rocm/lib64",
    "",
];

/// Roots of the system, whose libraries the loader finds.
const SYSTEM: [&str; 3] = ["/", "/usr", "/usr/local"];

/// The directories in which a library may be installed: ROCm's own, newest first, then the
/// system's.
pub(crate) fn installed(rocm: Option<&Path>) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = rocm.map(Path::to_owned).into_iter().collect();
    dirs.push("/opt/rocm".into());
    let mut versions: Vec<(Vec<u64>, PathBuf)> = entries(Path::new("/opt"))
        .into_iter()
        .filter_map(|path| {
            let version = path.file_name()?.to_str()?.strip_prefix("rocm-")?;
            Some((version.split('.').map_while(|n| n.parse().ok()).collect(), path))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    dirs.extend(versions.into_iter().map(|(_, path)| path));
    dirs.extend(["/usr/local".into(), "/usr".into()]);
    dirs
}

/// The library of a tree: the file with the name by which programs load it, else the file with the
/// highest version.
pub(crate) fn library(root: &Path, product: &Product) -> Option<PathBuf> {
    dirs(root).find_map(|dir| library_in(&dir, product))
}

fn library_in(dir: &Path, product: &Product) -> Option<PathBuf> {
    let is_its = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_library(name, product.file)) && path.is_file()
    };
    let found = entries(dir).into_iter().filter(is_its);
    let loaded = |path: &PathBuf| path.file_name().is_some_and(|name| name == product.soname);
    found.max_by_key(|path| (loaded(path), path.clone()))
}

fn is_library(name: &str, file: &str) -> bool {
    name.strip_prefix(file).is_some_and(|rest| {
        rest.is_empty()
            || rest.strip_prefix('.').is_some_and(|version| {
                version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            })
    })
}

/// The tree of a library: the directory above `lib`, or its own.
pub(crate) fn root(file: &Path) -> &Path {
    let dir = file.parent().unwrap_or(Path::new("/"));
    let above = |dir: &'_ Path, name: &str| dir.file_name().is_some_and(|found| found == name);
    let mut lib = dir;
    if above(lib, &triplet()) {
        lib = lib.parent().unwrap_or(lib);
    }
    if !above(lib, "lib") && !above(lib, "lib64") {
        return dir;
    }
    let prefix = lib.parent().unwrap_or(lib);
    match prefix.parent() {
        Some(root) if above(prefix, "usr") => root,
        _ => prefix,
    }
}

/// The path at which a library's package installs it: below an unpacked package's root, the path
/// inside of it.
pub(crate) fn installed_path(file: &Path, roots: &[PathBuf]) -> PathBuf {
    let below = |root: &PathBuf| {
        let inside = file.strip_prefix(root.canonicalize().ok()?).ok()?;
        let is_packaged = inside.starts_with("usr") || inside.starts_with("opt");
        is_packaged.then(|| Path::new("/").join(inside))
    };
    roots.iter().find_map(below).unwrap_or_else(|| file.to_owned())
}

/// Whether the system's loader searches the tree by default.
pub(crate) fn is_system(root: &Path) -> bool {
    SYSTEM.iter().any(|system| root == Path::new(system))
}

/// The library directories of a tree, each once.
pub(crate) fn library_dirs(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in dirs(root) {
        let Ok(dir) = dir.canonicalize() else { continue };
        if dir.is_dir() && !found.contains(&dir) {
            found.push(dir);
        }
    }
    found
}

/// The dynamic loader among libraries, if it is there together with the C library.
pub(crate) fn loader(dirs: &[PathBuf]) -> Option<PathBuf> {
    dirs.iter().find(|dir| dir.join("libc.so.6").is_file())?;
    let names = dirs.iter().flat_map(|dir| entries(dir));
    let mut loaders = names.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("ld-linux") && name.contains(".so.") && path.is_file()
    });
    loaders.next()
}

/// The program of a library, from the first of these trees that contains it.
pub(crate) fn driver(roots: &[impl AsRef<Path>], name: &str) -> Option<PathBuf> {
    roots.iter().find_map(|root| {
        let root = root.as_ref();
        let packaged = ["usr/libexec/rocm", "libexec/rocm"].map(|dir| entries(&root.join(dir)));
        let dirs = ["bin", "usr/bin", "opt/rocm/bin", ""].map(|dir| root.join(dir));
        let mut places = dirs.into_iter().chain(packaged.into_iter().flatten());
        places.find_map(|dir| Some(dir.join(name)).filter(|path| path.is_file()))
    })
}

/// The existing database directories below the roots.
pub(crate) fn databases(roots: &[PathBuf], dirs: &[&str]) -> Vec<PathBuf> {
    let places = roots.iter().flat_map(|root| dirs.iter().map(|dir| root.join(dir)));
    places.filter(|dir| !entries(dir).is_empty()).collect()
}

/// The file of the installed library, and its tree.
pub fn installed_file(product: &Product, rocm: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
    installed(rocm).into_iter().find_map(|dir| Some((library(&dir, product)?, dir)))
}

/// The library at a path, and its tree: the file itself, or the one in this directory.
pub fn library_at(product: &Product, path: &Path) -> Option<(PathBuf, PathBuf)> {
    if path.is_file() {
        return Some((path.to_owned(), root(path).to_owned()));
    }
    let found = library(path, product).map(|file| (file, path.to_owned()));
    found.or_else(|| pythons(product, path))
}

/// The library that PyTorch brings, and its tree: in torch, or in a package `_rocm_sdk_libraries…`
/// beside it. `dir` is a Python environment, a directory of packages, or torch's own.
pub fn pythons(product: &Product, dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let begins = |path: &Path, with: &str| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(with))
    };
    let libs = ["lib", "lib64", "local/lib"].map(|lib| entries(&dir.join(lib)));
    let pythons = libs.into_iter().flatten().filter(|path| begins(path, "python"));
    let in_pythons =
        pythons.flat_map(|path| ["site-packages", "dist-packages"].map(|name| path.join(name)));
    let given = if dir.ends_with("torch") { dir.join("..") } else { dir.to_owned() };
    std::iter::once(given).chain(in_pythons).find_map(|packages| {
        let sdks = entries(&packages);
        let sdks = sdks.into_iter().filter(|path| begins(path, "_rocm_sdk_libraries"));
        let mut trees = [packages.join("torch")].into_iter().chain(sdks);
        trees.find_map(|tree| Some((library_in(&tree.join("lib"), product)?, tree)))
    })
}

/// The usual directories below a root.
fn dirs(root: &Path) -> impl Iterator<Item = PathBuf> {
    let triplet = triplet();
    LIBRARY_DIRS.iter().map(move |dir| root.join(dir.replace("{}", &triplet)))
}

/// Source: Debian Policy 9.1.1, multiarch directories.
pub(crate) fn triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// Paths in a directory, sorted; none if it can't be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
