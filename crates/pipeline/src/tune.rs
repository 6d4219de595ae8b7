//! Merges users' performance and find databases into the system's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gfxpack_harvest::Input;
use gfxpack_tuning::{DatabaseName, DatabaseOwner, Storage};

use crate::error::{self, Result};
use crate::progress::Progress;

/// A database that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDatabase {
    /// The file.
    pub file: PathBuf,
    /// The system's database that was the basis.
    pub system: Option<PathBuf>,
    /// The users' databases.
    pub users: Vec<PathBuf>,
    /// Number of records.
    pub records: u64,
    /// Records that the system's database lacks.
    pub added: u64,
    /// Records that have other contents in the system's database.
    pub changed: u64,
}

/// Merges the users' databases in `dirs` into one system database for each name
/// that MIOpen looks for, in the directory `out`, and passes each to `each`. The
/// directory `system` has the databases that they are laid over. With
/// `keep_going`, lines that MIOpen can't read are skipped.
///
/// # Errors
/// If there is nothing to collect, or a database can't be read or written.
pub fn collect(
    dirs: &[PathBuf],
    system: Option<&Path>,
    out: &Path,
    keep_going: bool,
    progress: &dyn Progress,
    mut each: impl FnMut(&WrittenDatabase),
) -> Result<()> {
    if let Some(dir) = system.filter(|dir| !dir.is_dir()) {
        return Err(error::usage(
            format!("failed to read `{}`: it is no directory", dir.display()),
            "--system names the directory of the system's databases, as \
             /opt/rocm/share/miopen/db; leave it out to have the user's only",
        ));
    }
    let found = users_databases(dirs)?;
    if found.is_empty() {
        return Err(error::usage(
            "failed to find a user's database in the directories",
            "run their tune.sh first; MIOpen names them as gfx906_60.HIP.3_3_0_.udb.txt",
        ));
    }
    std::fs::create_dir_all(out).map_err(error::io("create", out))?;
    for (name, users) in found {
        let below = system.map(|dir| dir.join(&name)).filter(|path| path.is_file());
        if let Some(dir) = system.filter(|_| below.is_none()) {
            progress.warning(&format!(
                "`{}` has no `{name}`: only the users' records are written",
                dir.display()
            ));
        }
        let inputs: Vec<PathBuf> = below.iter().chain(&users).cloned().collect();
        let file = out.join(&name);
        let merged = gfxpack_tuning::merge(&inputs, &file, |path, line, fault| {
            if keep_going {
                progress.warning(&format!("`{}`: line {line}: {fault}", path.display()));
            }
            keep_going
        })?;
        // Without a system's database, all records are new.
        let added = if below.is_none() { merged.records } else { merged.overlaid.added };
        let (records, changed) = (merged.records, merged.overlaid.changed);
        each(&WrittenDatabase { file, system: below, users, records, added, changed });
    }
    Ok(())
}

/// Users' databases by the name of the system's database.
fn users_databases(dirs: &[PathBuf]) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for input in gfxpack_harvest::list(dirs)? {
        let Input::File { path, .. } = input else { continue };
        let is_users = |name: &DatabaseName| {
            name.owner == DatabaseOwner::User && name.storage == Storage::Text
        };
        let name = DatabaseName::from_path(&path).filter(is_users);
        if let Some(name) = name {
            found.entry(name.of_system().file_name()).or_default().push(path);
        }
    }
    Ok(found)
}
