//! The known caches: places, recognition of entries, switches.

mod cache;
mod miopen;
mod opencl;
mod torch;
mod vendors;

use crate::user_environment::UserEnvironment;

pub use self::cache::{Cache, CacheDirectory};
pub(crate) use self::cache::{Item, is_sqlite};

/// The caches' names, in the order of listings.
pub const NAMES: [&str; 10] = [
    "miopen", "comgr", "rocfft", "pytools", "pyopencl", "pocl", "cuda", "triton", "inductor",
    "mesa",
];

/// All caches of this user and machine, in the order of [`NAMES`].
#[must_use]
pub fn known(environment: &UserEnvironment) -> Vec<Cache> {
    let mut caches = vec![miopen::cache(environment)];
    caches.extend(vendors::rocm(environment));
    caches.extend(opencl::caches(environment));
    caches.push(vendors::cuda(environment));
    caches.extend(torch::caches(environment));
    caches.push(vendors::mesa(environment));
    caches
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// `name: dir (rule)` of all directories.
    fn directories(variables: &[(&str, &str)], name: &str) -> Vec<String> {
        let variables = variables.iter().copied();
        let environment = UserEnvironment::new(variables, Some("ada".to_owned()));
        let caches = known(&environment);
        let names: Vec<&str> = caches.iter().map(|cache| cache.name).collect();
        assert_eq!(names, NAMES);
        let cache = caches.into_iter().find(|cache| cache.name == name).expect(name);
        cache.directories.iter().map(|directory| directory.dir.display().to_string()).collect()
    }

    #[track_caller]
    pub(super) fn check(variables: &[(&str, &str)], name: &str, expected: &[&str]) {
        assert_eq!(directories(variables, name), expected, "{name} with {variables:?}");
    }

    /// Whether an entry of this name in the first place belongs to the tool.
    pub(super) fn owns(cache: &str, name: &str, is_dir: bool) -> bool {
        let variables = [("HOME", "/h")];
        let environment = UserEnvironment::new(variables, Some("ada".to_owned()));
        let caches = known(&environment);
        let cache = caches.iter().find(|one| one.name == cache).expect(cache);
        let item = Item { path: Path::new("/no/such"), name, is_dir };
        cache.directories[0].owns(&item)
    }

    /// The entries found in a directory that the variable names and that has
    /// these files.
    pub(super) fn found(cache: &str, variable: &str, files: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a directory");
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, "x").expect("written");
        }
        let variables = [(variable, dir.path())];
        let environment = UserEnvironment::new(variables, Some("ada".to_owned()));
        let caches = known(&environment);
        let cache = caches.iter().find(|one| one.name == cache).expect(cache);
        let directory = cache
            .directories
            .iter()
            .find(|directory| directory.dir.starts_with(&dir))
            .expect("a place");
        let scan = directory.scan().expect("readable");
        let name = |path: &Path| path.file_name().expect("a name").display().to_string();
        scan.entries.iter().map(|entry| name(&entry.path)).collect()
    }

    #[test]
    fn no_place_is_relative_or_the_home_directory() {
        let names = [
            "XDG_CACHE_HOME",
            "TMPDIR",
            "TEMP",
            "TMP",
            "TEMPDIR",
            "MIOPEN_CUSTOM_CACHE_DIR",
            "MIOPEN_USER_DB_PATH",
            "POCL_CACHE_DIR",
            "CUDA_CACHE_PATH",
            "AMD_COMGR_CACHE_DIR",
            "TRITON_CACHE_DIR",
            "TRITON_HOME",
            "TORCHINDUCTOR_CACHE_DIR",
            "MESA_SHADER_CACHE_DIR",
            "MESA_GLSL_CACHE_DIR",
            "ROCFFT_RTC_CACHE_PATH",
            "LOGNAME",
        ];
        let strange = ["", "relative", ".", "~"];
        for value in strange {
            let mut variables = names.map(|name| (name, value)).to_vec();
            for home in ["", "/h"] {
                variables.push(("HOME", home));
                let environment = UserEnvironment::new(variables.clone(), None);
                for directory in known(&environment).iter().flat_map(|cache| &cache.directories) {
                    assert!(directory.dir.is_absolute(), "{directory:?} with {value:?}");
                    let home = Path::new("/h");
                    assert!(
                        directory.tuning || directory.dir != home || value == "~",
                        "{directory:?}"
                    );
                }
            }
        }
    }
}
