//! Finds MIOpen's kernels on this machine, for commands.

use std::path::Path;

use gfxpack_runtime::{
    CacheVersion, DirectoryOptions, Environment, KdbDirectories, MiopenRules, UserDirectory,
};

/// The usual places, and remarks for the user.
#[derive(Debug)]
pub struct UsualDirectories {
    /// The directories.
    pub directories: KdbDirectories,
    /// Which version's user cache was chosen, if none was named.
    pub note: Option<String>,
    /// Why the named version has no effect.
    pub warning: Option<String>,
}

impl UsualDirectories {
    /// Finds the places. The user's cache is that of the named version, else of
    /// the newest version that has one, which is noted, else of the installed
    /// MIOpen. Without any, it is unknown.
    pub fn find(named: Option<&str>, environment: &Environment) -> Self {
        let installed =
            || gfxpack_miopen::installed_cache_version(environment.rocm_path().as_deref());
        let mut options = DirectoryOptions::default();
        if let Some(custom) = environment.custom_cache_dir() {
            let wanted = named.map(str::to_owned).or_else(installed).unwrap_or_default();
            let mut warning = None;
            if MiopenRules::of_version(&wanted).versioned_custom_cache {
                let chosen = CacheVersion::choose(&custom, Some(&wanted), || None);
                options.version = chosen.directory().unwrap_or_default().to_owned();
            } else if named.is_some() {
                let text = "up to 3.4, MIOpen uses MIOPEN_CUSTOM_CACHE_DIR without a version";
                warning = Some(text.to_owned());
            }
            return Self {
                directories: KdbDirectories::resolve(environment, &options),
                note: None,
                warning,
            };
        }
        // Without a version, this is the directory above the versions'.
        options.version = String::new();
        let directories = KdbDirectories::resolve(environment, &options);
        let above = match (&directories.read_only[..], &directories.user) {
            ([dir, ..], _) | ([], UserDirectory::Dir(dir)) => dir,
            _ => return Self { directories, note: None, warning: None },
        };
        let chosen = CacheVersion::choose(above, named, installed);
        let note = note(&chosen, above);
        let directories = match chosen.directory() {
            None => directories.without_version(),
            Some(version) => {
                options.version = version.to_owned();
                KdbDirectories::resolve(environment, &options)
            }
        };
        Self { directories, note, warning: None }
    }
}

fn note(chosen: &CacheVersion, above: &Path) -> Option<String> {
    let CacheVersion::Newest { version, of } = chosen else { return None };
    let others = if *of == 1 { String::new() } else { format!(", the newest of {of}") };
    Some(format!(
        "the user's kernels are those of version {version}{others}, in `{}`; --miopen-version \
         names another",
        above.join(version).display()
    ))
}

/// Why these places have no file to look into.
pub fn why_no_file(directories: &KdbDirectories) -> String {
    match &directories.user {
        UserDirectory::Disabled { why }
        | UserDirectory::Memory { why }
        | UserDirectory::Unknown { why } => why.clone(),
        _ => "there is no place for kdbs".to_owned(),
    }
}
