//! Merges users' performance and find databases into the system's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gfxpack_harvest::Input;
use gfxpack_tuning::{DatabaseName, DatabaseOwner};

use crate::error::{self, Result};
use crate::progress::Progress;

/// What to collect, and from where.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Directories with users' databases.
    pub dirs: Vec<PathBuf>,
    /// The directory of the system's databases; if `None`, only users' records
    /// are collected.
    pub system: Option<PathBuf>,
    /// Where the databases are written.
    pub out: PathBuf,
    /// Whether lines that MIOpen can't read are skipped.
    pub keep_going: bool,
}

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

/// Merges users' databases into one system database for each name that MIOpen
/// looks for, and passes each to `each`.
///
/// # Errors
/// If there is nothing to collect, or a database can't be read or written.
pub fn collect(
    options: &CollectOptions,
    progress: &dyn Progress,
    mut each: impl FnMut(&WrittenDatabase),
) -> Result<()> {
    if let Some(dir) = options.system.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(error::usage(
            format!("failed to read `{}`: it is no directory", dir.display()),
            "--system names the directory of the system's databases, as \
             /opt/rocm/share/miopen/db; leave it out to have the user's only",
        ));
    }
    let found = users_databases(&options.dirs)?;
    if found.is_empty() {
        return Err(error::usage(
            "failed to find a user's database in the directories",
            "run their tune.sh first; MIOpen names them as gfx906_60.HIP.3_3_0_.udb.txt",
        ));
    }
    std::fs::create_dir_all(&options.out).map_err(error::io("create", &options.out))?;
    for (name, users) in found {
        each(&collect_one(options, &name, users, progress)?);
    }
    Ok(())
}

/// Users' databases by the name of the system's database.
fn users_databases(dirs: &[PathBuf]) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for input in gfxpack_harvest::list(dirs)? {
        let Input::File { path, .. } = input else { continue };
        let name = DatabaseName::from_path(&path).filter(|name| name.owner == DatabaseOwner::User);
        if let Some(name) = name {
            found.entry(name.of_system().file_name()).or_default().push(path);
        }
    }
    Ok(found)
}

fn collect_one(
    options: &CollectOptions,
    name: &str,
    users: Vec<PathBuf>,
    progress: &dyn Progress,
) -> Result<WrittenDatabase> {
    let system = options.system.as_ref().map(|dir| dir.join(name)).filter(|path| path.is_file());
    if let Some(dir) = options.system.as_ref().filter(|_| system.is_none()) {
        progress.warning(&format!(
            "`{}` has no `{name}`: only the users' records are written",
            dir.display()
        ));
    }
    let inputs: Vec<PathBuf> = system.iter().chain(&users).cloned().collect();
    let file = options.out.join(name);
    let merged = gfxpack_tuning::merge(&inputs, &file, |path, line, fault| {
        if options.keep_going {
            progress.warning(&format!("`{}`: line {line}: {fault}", path.display()));
        }
        options.keep_going
    })?;
    let total = merged.overlaid;
    // Without a system's database, all records are new.
    let added = if system.is_none() { merged.records } else { total.added };
    Ok(WrittenDatabase {
        file,
        system,
        users,
        records: merged.records,
        added,
        changed: total.changed,
    })
}
