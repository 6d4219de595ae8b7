//! Variables of tuning that were left set: programs are slow with them.

use std::path::Path;

use gfxpack_runtime::{Environment, user_database_dir};
use gfxpack_tuning::{DatabaseName, Owner};

use super::finding::Findings;

/// Warns of variables that have MIOpen tune.
pub fn check_tuning(environment: &Environment, findings: &mut Findings<'_>) {
    let user_db = user_database_dir(environment).0;
    let (enforce, system_db) = (environment.find_enforce(), environment.system_db_path());
    for left in left_over(enforce, system_db.as_deref(), &user_db) {
        findings.warning("tuning", left.message, left.hint);
    }
}

/// A variable that was left over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LeftOver {
    /// What it does, with its name and value.
    message: String,
    /// What to do about it.
    hint: &'static str,
}

const OFF: &str = "when nothing is to be tuned, unset it: `eval \"$(gfxpack tune env off)\"`";

/// The variables of tuning that are set, of these values: MIOPEN_FIND_ENFORCE,
/// MIOPEN_SYSTEM_DB_PATH, and the directory of the user's databases. Looks at
/// which files are in the system's directory.
///
/// Source: ROCm/MIOpen 2d1fd997a, `FindEnforceAction` in find_controls.hpp.
fn left_over(
    find_enforce: Option<&str>,
    system_db: Option<&Path>,
    user_db: &Path,
) -> Vec<LeftOver> {
    let mut found = Vec::new();
    let enforced = find_enforce.map(|value| (value, effect(value)));
    if let Some((value, Some(effect))) = enforced {
        let message = format!("MIOPEN_FIND_ENFORCE=`{value}`: {effect}");
        found.push(LeftOver { message, hint: OFF });
    }
    if let Some(system_db) = system_db.filter(|dir| is_users(dir, user_db)) {
        let message = format!(
            "MIOPEN_SYSTEM_DB_PATH=`{}`: these are the user's databases, so the installed ones \
             and installed kernels are not found",
            system_db.display()
        );
        found.push(LeftOver { message, hint: OFF });
    }
    found
}

/// What a value makes MIOpen do; none for those that change nothing.
fn effect(value: &str) -> Option<&'static str> {
    match value.to_ascii_uppercase().as_str() {
        "2" | "DB_UPDATE" => Some("MIOpen measures every problem again in each program"),
        "3" | "SEARCH" => Some("MIOpen tunes for every problem that its databases lack"),
        "4" | "SEARCH_DB_UPDATE" => Some("MIOpen tunes for every problem in each program"),
        "5" | "DB_CLEAN" => Some("MIOpen removes the results of tuning that it comes across"),
        _ => None,
    }
}

/// Whether a directory holds a user's databases, and none of a system's.
fn is_users(dir: &Path, user_db: &Path) -> bool {
    if dir == user_db {
        return true;
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| DatabaseName::from_path(&entry.path()));
    let (users, systems): (Vec<_>, Vec<_>) = names.partition(|name| name.owner == Owner::User);
    !users.is_empty() && systems.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(enforce: Option<&str>, system: Option<&Path>, user: &Path) -> Vec<String> {
        left_over(enforce, system, user).into_iter().map(|left| left.message).collect()
    }

    #[test]
    fn what_makes_miopen_tune_is_told() {
        let user = Path::new("/srv/ada/.config/miopen");
        for value in ["2", "3", "4", "5", "search", "SEARCH_DB_UPDATE"] {
            let found = messages(Some(value), None, user);
            assert_eq!(found.len(), 1, "{value}");
            assert!(found[0].contains(&format!("MIOPEN_FIND_ENFORCE=`{value}`")), "{found:?}");
        }
        for value in [None, Some("1"), Some("NONE"), Some("")] {
            assert!(messages(value, None, user).is_empty(), "{value:?}");
        }
    }

    #[test]
    fn a_systems_directory_that_is_the_users_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let user = Path::new("/srv/ada/.config/miopen");
        assert_eq!(messages(None, Some(user), user).len(), 1);
        assert!(messages(None, Some(dir.path()), user).is_empty(), "nothing is in it");
        std::fs::write(dir.path().join("gfx906_60.HIP.3_4_0_.udb.txt"), "").expect("written");
        assert_eq!(messages(None, Some(dir.path()), user).len(), 1);
        std::fs::write(dir.path().join("gfx906_60.db.txt"), "").expect("written");
        assert!(messages(None, Some(dir.path()), user).is_empty(), "a system's are there too");
    }
}
