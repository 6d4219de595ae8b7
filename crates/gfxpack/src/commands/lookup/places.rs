//! Where MIOpen finds kernels on this machine.

use std::path::{Path, PathBuf};

use gfxpack_miopen::MIOPEN;
use gfxpack_model::InstallLayout;
use gfxpack_pipeline::environment::pythons;
use gfxpack_runtime::explain::entries;
use gfxpack_runtime::{
    CacheVersion, DirectoryOptions, Environment, KdbDirectories, KdbDirectory, MiopenKdb,
    MiopenRules, Target, UserDirectory,
};

use crate::args::LookupArgs;
use crate::fail::{self, Result};
use crate::output::Output;

/// A libMIOpen: the file, and the top of its tree.
type Found = (PathBuf, PathBuf);

fn named(asked: &LookupArgs) -> Result<Option<Found>> {
    let Some(path) = &asked.miopen else { return Ok(None) };
    let found = gfxpack_miopen::library_at(&MIOPEN, path);
    found.map(Some).ok_or_else(|| {
        fail::usage(
            format!("failed to find a libMIOpen in `{}`", path.display()),
            "name the file, or a directory with one: /opt/rocm, or that of a Python environment",
        )
    })
}

fn of_pythons() -> Option<Found> {
    pythons().iter().find_map(|dir| gfxpack_miopen::pythons(&MIOPEN, dir))
}

/// All libraries that programs would load: the one that was given, else that of ROCm or the system,
/// and PyTorch's.
pub(in crate::commands) fn libraries(
    asked: &LookupArgs,
    rocm: Option<&Path>,
) -> Result<Vec<Found>> {
    Ok(match named(asked)? {
        Some(found) => vec![found],
        None => {
            let installed = gfxpack_miopen::installed_file(&MIOPEN, rocm);
            installed.into_iter().chain(of_pythons()).collect()
        }
    })
}

/// The usual directories; prints notes about them. Installed kernels are beside the library that
/// was given, else in ROCm's and the system's directories and, last, where the MIOpen of PyTorch
/// finds them. The user's cache is that of the named version, else that of the given library, else
/// of the newest version that has one, which is noted, else of the installed MIOpen. Without any,
/// it is unknown.
///
/// # Errors
/// If there is no library where one is given, or its directory does not say where it looks.
pub(in crate::commands) fn usual_directories(
    asked: &LookupArgs,
    environment: &Environment,
    output: &Output,
) -> Result<KdbDirectories> {
    let given = named(asked)?;
    let system = given.as_ref().map(|(file, _)| directories_of(file)).transpose()?;
    let version_of = |(file, root): &Found| gfxpack_miopen::cache_version(file, root);
    let of_given = given.as_ref().and_then(version_of);
    let installed = || {
        let installed = gfxpack_miopen::installed_cache_version(environment.rocm_path().as_deref());
        installed.or_else(|| version_of(&of_pythons()?))
    };
    let version = asked.miopen_version.as_deref().or(of_given.as_deref());
    let mut directories = of_version(version, environment, installed, output);
    if directories.system_disabled || environment.system_db_path().is_some() {
        return Ok(directories);
    }
    match system {
        Some(system) => directories.system = system,
        None => {
            let pythons = of_pythons().and_then(|(file, _)| directories_of(&file).ok());
            directories.system.extend(pythons.into_iter().flatten());
        }
    }
    Ok(directories)
}

fn of_version(
    named: Option<&str>,
    environment: &Environment,
    installed: impl Fn() -> Option<String>,
    output: &Output,
) -> KdbDirectories {
    let mut options = DirectoryOptions::default();
    if let Some(custom) = environment.custom_cache_dir() {
        let wanted = named.map(str::to_owned).or_else(installed).unwrap_or_default();
        if MiopenRules::of_version(&wanted).versioned_custom_cache {
            let chosen = CacheVersion::choose(&custom, Some(&wanted), || None);
            options.version = chosen.directory.unwrap_or_default();
        } else if named.is_some() {
            output.warn("up to 3.4, MIOpen uses MIOPEN_CUSTOM_CACHE_DIR without a version");
        }
        return KdbDirectories::resolve(environment, &options);
    }
    // Without a version, this is the directory above the versions'.
    options.version = String::new();
    let directories = KdbDirectories::resolve(environment, &options);
    let above = match (&directories.read_only[..], &directories.user) {
        ([dir, ..], _) | ([], UserDirectory::Dir(dir)) => dir,
        _ => return directories,
    };
    let chosen = CacheVersion::choose(above, named, installed);
    if let CacheVersion { directory: Some(version), newest_of: Some(of) } = &chosen {
        let others = if *of == 1 { String::new() } else { format!(", the newest of {of}") };
        output.note(&format!(
            "the user's kernels are those of version {version}{others}, in `{}`; --miopen-version \
             names another",
            above.join(version).display()
        ));
    }
    match chosen.directory {
        None => directories.without_version(),
        Some(version) => {
            options.version = version;
            KdbDirectories::resolve(environment, &options)
        }
    }
}

/// The directories in which this libMIOpen finds kernels: its own, and for PyTorch's those of the
/// wheels that are installed beside it.
fn directories_of(library: &Path) -> Result<Vec<KdbDirectory>> {
    let real = std::fs::canonicalize(library).map_err(fail::io("find", library))?;
    let layout = real.to_str().and_then(InstallLayout::of_library).ok_or_else(|| {
        fail::usage(
            format!("failed to tell where `{}` looks for kernels", real.display()),
            "give it in the directory in which it is installed, or the kdbs' with --system-dir",
        )
    })?;
    let mut dirs = vec![PathBuf::from(layout.kdb_dir())];
    if layout.is_pythons() {
        let packages = PathBuf::from(layout.prefix()).join("..");
        // Of a wheel that gfxpack made. The .pth file beside it makes MIOpen find it.
        let is_wheel = |package: &PathBuf| {
            package.join("_start.py").is_file() && package.with_extension("pth").is_file()
        };
        let mut wheels: Vec<PathBuf> = entries(&packages).filter(is_wheel).collect();
        wheels.sort();
        dirs.extend(wheels.into_iter().map(|package| package.join("db")));
    }
    let user = UserDirectory::Unknown(String::new());
    let mut system = KdbDirectories::new(dirs, user).system;
    let rule = if layout.is_pythons() { PYTORCH } else { "beside the library" };
    system.iter_mut().for_each(|directory| directory.rule = rule);
    Ok(system)
}

/// The rule that names PyTorch's directories. Its MIOpen sees the files of all of them in one.
const PYTORCH: &str = "PyTorch's own MIOpen";

/// Puts PyTorch's directory that has the target's kdb before the others.
pub(super) fn prefer(directories: &mut KdbDirectories, target: &Target) {
    let has_kdb = |directory: &KdbDirectory| {
        directory.rule == PYTORCH && MiopenKdb::in_dir(&directory.path, target).file.exists()
    };
    let is_pythons = |directory: &KdbDirectory| directory.rule == PYTORCH;
    let first = directories.system.iter().position(is_pythons).unwrap_or_default();
    directories.system[first..].sort_by_key(|directory| !has_kdb(directory));
}

/// Why these places have no file to look into.
pub(super) fn why_no_file(directories: &KdbDirectories) -> String {
    match &directories.user {
        UserDirectory::Disabled(why) | UserDirectory::Memory(why) | UserDirectory::Unknown(why) => {
            why.clone()
        }
        _ => "there is no place for kdbs".to_owned(),
    }
}
