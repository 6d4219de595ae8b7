//! MIOpen: kernels per version, performance and find databases.
//!
//! Source: ROCm/MIOpen 2d1fd997a, `ComputeUserCachePath` in binary_cache.cpp,
//! `PrepareUserDbPath` in db_path.cpp.in, `LockFilePath` in lock_file.cpp.

use std::path::Path;

use super::cache::{Cache, CacheDirectory, Item, holds_only, is_hex, is_made_of};
use crate::location_variable::LocationVariable;
use crate::switch::{Switch, rules};
use crate::user_environment::UserEnvironment;

pub(super) fn cache(environment: &UserEnvironment) -> Cache {
    Cache {
        name: "miopen",
        about: "compiled kernels, and performance and find databases",
        directories: directories(environment),
        switches: vec![
            Switch::new(
                "MIOPEN_DISABLE_CACHE",
                "1",
                rules::MIOPEN,
                "kernels are neither read nor kept, and installed kdbs are not read",
            ),
            Switch::new(
                "MIOPEN_DEBUG_DISABLE_FIND_DB",
                "1",
                rules::MIOPEN,
                "the find database is neither read nor kept",
            ),
        ],
        disable_note: "MIOPEN_DISABLE_CACHE keeps the installed kdbs from being read too, and the \
                       user's performance database can't be switched off",
        location_variables: vec![
            LocationVariable::dir("MIOPEN_CUSTOM_CACHE_DIR", "miopen/kernels"),
            LocationVariable::dir("MIOPEN_USER_DB_PATH", "miopen/db"),
        ],
        location_note: "up to MIOpen 3.4 all versions then share one directory of kernels; lock files \
                    stay in the temporary directory",
    }
}

fn directories(environment: &UserEnvironment) -> Vec<CacheDirectory> {
    let mut directories = Vec::new();
    let given = |name: &str| {
        let path = environment.expanded(Path::new(environment.value(name)?));
        path.is_absolute().then_some(path)
    };
    let temp = environment.temp_dir();
    let is_set = |name: &str| environment.value(name).is_some();
    match given("MIOPEN_CUSTOM_CACHE_DIR") {
        Some(dir) => {
            directories.push(CacheDirectory::new(dir, "MIOPEN_CUSTOM_CACHE_DIR", is_kernels))
        }
        // The path is relative to the directory in which the program was
        // started.
        None if is_set("MIOPEN_CUSTOM_CACHE_DIR") => {}
        None => {
            let dir = environment.expanded("~/.cache/miopen");
            directories.push(CacheDirectory::new(dir, "HOME", is_version));
            let rule = "the temporary directory, for HOME on a network file system";
            directories.push(CacheDirectory::new(temp.clone(), rule, is_kernel_file).shared());
        }
    }
    match given("MIOPEN_USER_DB_PATH") {
        Some(dir) => {
            directories.push(CacheDirectory::new(dir, "MIOPEN_USER_DB_PATH", is_tuning).tuning());
        }
        None if is_set("MIOPEN_USER_DB_PATH") => {}
        None => {
            let dir = environment.expanded("~/.config/miopen");
            directories.push(CacheDirectory::new(dir, "HOME", is_tuning).tuning());
            let rule = "the temporary directory, for HOME on a network file system";
            directories.push(CacheDirectory::new(temp.clone(), rule, is_tuning).tuning().shared());
        }
    }
    let locks = temp.join("miopen-lockfiles");
    directories.push(
        CacheDirectory::new(locks, "lock files in the temporary directory", is_lock).shared(),
    );
    directories
}

/// `3.3.0.`: a directory of one version's kernels.
fn is_version(item: &Item<'_>) -> bool {
    let mut parts = item.name.split('.');
    let numbers = parts.by_ref().take(3).filter(|part| is_made_of(part, 1..=6, is_digit)).count();
    item.is_dir && numbers == 3 && parts.all(|part| is_made_of(part, 0..=40, is_plain))
}

/// In a directory that the user chose: kernels themselves, or directories of
/// versions with kernels.
fn is_kernels(item: &Item<'_>) -> bool {
    is_kernel_file(item) || is_old_kernel(item) || (is_version(item) && holds_kernels(item.path))
}

fn holds_kernels(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| (entry.file_name(), entry.path()));
    names.any(|(name, path)| {
        let Some(name) = name.to_str() else { return false };
        let item = Item { path: &path, name, is_dir: path.is_dir() };
        is_kernel_file(&item) || is_old_kernel(&item)
    })
}

/// `gfx906_60.ukdb`.
fn is_kernel_file(item: &Item<'_>) -> bool {
    !item.is_dir && item.name.starts_with("gfx") && item.name.ends_with(".ukdb")
}

/// A directory of object files named by a digest: the layout before kdbs.
fn is_old_kernel(item: &Item<'_>) -> bool {
    item.is_dir
        && is_made_of(item.name, 32..=32, is_hex)
        && holds_only(item.path, |name| name.ends_with(".o"))
}

fn is_tuning(item: &Item<'_>) -> bool {
    let ends = [".udb.txt", ".ufdb.txt", ".udb"];
    !item.is_dir && item.name.contains("gfx") && ends.iter().any(|end| item.name.ends_with(end))
}

/// `<digest>_gfx906_60.HIP.3_3_0_.ufdb.txt.lock`.
fn is_lock(item: &Item<'_>) -> bool {
    let parts = item.name.strip_suffix(".lock").and_then(|name| name.split_once('_'));
    !item.is_dir && parts.is_some_and(|(digest, _)| is_made_of(digest, 32..=32, is_hex))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, found, owns};

    #[test]
    fn places_follow_miopens_rules() {
        let linux = |variables: &[(&str, &str)], expected: &[&str]| {
            check(variables, "miopen", expected);
        };
        let usual =
            ["/h/.cache/miopen", "/tmp", "/h/.config/miopen", "/tmp", "/tmp/miopen-lockfiles"];
        linux(&[("HOME", "/h")], &usual);
        // MIOpen does not use it.
        linux(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], &usual);
        linux(
            &[("HOME", "/h"), ("MIOPEN_CUSTOM_CACHE_DIR", "~/k"), ("MIOPEN_USER_DB_PATH", "/d")],
            &["/h/k", "/d", "/tmp/miopen-lockfiles"],
        );
        linux(
            &[("HOME", "/"), ("TMPDIR", "/t")],
            &["/t/.cache/miopen", "/t", "/t/.config/miopen", "/t", "/t/miopen-lockfiles"],
        );
        for (variables, temp) in [
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", "/b"), ("TMPDIR", "/a")], "/a"),
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", "/b"), ("TMPDIR", "")], "/b"),
            ([("TEMPDIR", "/d"), ("TEMP", "/c"), ("TMP", ""), ("TMPDIR", "")], "/c"),
            ([("TEMPDIR", "/d"), ("TEMP", ""), ("TMP", ""), ("TMPDIR", "")], "/d"),
        ] {
            let variables = [
                &variables[..],
                &[("MIOPEN_CUSTOM_CACHE_DIR", "/k"), ("MIOPEN_USER_DB_PATH", "/u")],
            ];
            linux(&variables.concat(), &["/k", "/u", &format!("{temp}/miopen-lockfiles")]);
        }
    }

    #[test]
    fn only_directories_of_versions_are_recognised() {
        for name in ["3.3.0.", "3.4.0", "2.20.0.5", "3.3.0.4d52ee7-dirty"] {
            assert!(owns("miopen", name, true), "{name}");
        }
        for name in ["", "3.3", "latest", "3.3.x", "..", "3.3.0.a b"] {
            assert!(!owns("miopen", name, true), "{name}");
        }
        assert!(!owns("miopen", "3.3.0.", false), "a file is none");
    }

    #[test]
    fn in_a_custom_directory_the_contents_decide() {
        let digest = |digit: &str| digit.repeat(32);
        let files = [
            "gfx906_60.ukdb".to_owned(),
            "3.3.0/gfx906_60.ukdb".to_owned(),
            "3.4.0/mine".to_owned(),
            format!("{}/MIOpenConv.cl.o", digest("a")),
            format!("{}/x.o", digest("b")),
            format!("{}/mine", digest("b")),
        ];
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let expected = ["3.3.0", &digest("a"), "gfx906_60.ukdb"];
        assert_eq!(found("miopen", "MIOPEN_CUSTOM_CACHE_DIR", &files), expected);
    }
}
