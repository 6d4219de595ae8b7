//! The environment variables that influence kernels.

use std::path::Path;

use gfxpack_runtime::{Environment, user_database_dir};
use gfxpack_tuning::{DatabaseName, DatabaseOwner};

use super::finding::Findings;

const ABOUT: &str = "environment";

/// Checks the variables that matter at run time, and those that make MIOpen tune.
pub fn check_variables(environment: &Environment, findings: &mut Findings<'_>) {
    for variable in environment.variables() {
        let Some(value) = variable.value else { continue };
        let what = format!("{}=`{value}`: {}", variable.name, variable.effect);
        if variable.effect.starts_with("not ") {
            findings.problem(ABOUT, what, "correct it, or unset it");
        } else if variable.name == "MIOPEN_DISABLE_CACHE" && environment.disable_cache() {
            let hint = "unset it: every kernel is compiled anew in every process";
            findings.warning(ABOUT, what, hint);
        } else if !["HOME", "TMPDIR"].contains(&variable.name) {
            // Those two are set for every user.
            findings.note(ABOUT, what);
        }
    }
    let user_db = user_database_dir(environment).0;
    let (enforce, system_db) = (environment.find_enforce(), environment.system_db_path());
    for message in left_over(enforce, system_db.as_deref(), &user_db) {
        let hint = "when nothing is to be tuned, unset it: `eval \"$(gfxpack tune env off)\"`";
        findings.warning("tuning", message, hint);
    }
}

/// The effects of tuning variables that were left set, each with the variable's
/// name and value: programs are slow with them. The parameters are the values of
/// MIOPEN_FIND_ENFORCE and MIOPEN_SYSTEM_DB_PATH, and the directory of the user's
/// databases. Looks into the system's directory.
///
/// Source: ROCm/MIOpen 2d1fd997a, `FindEnforceAction` in find_controls.hpp.
fn left_over(find_enforce: Option<&str>, system_db: Option<&Path>, user_db: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(value) = find_enforce
        && let Some(effect) = effect(value)
    {
        found.push(format!("MIOPEN_FIND_ENFORCE=`{value}`: {effect}"));
    }
    if let Some(system_db) = system_db.filter(|dir| is_users(dir, user_db)) {
        found.push(format!(
            "MIOPEN_SYSTEM_DB_PATH=`{}`: these are the user's databases, so the installed ones \
             and installed kernels are not found",
            system_db.display()
        ));
    }
    found
}

/// The effect of a value on MIOpen; `None` if it has none.
fn effect(value: &str) -> Option<&'static str> {
    match value.to_ascii_uppercase().as_str() {
        "2" | "DB_UPDATE" => Some("MIOpen measures every problem again in each program"),
        "3" | "SEARCH" => Some("MIOpen tunes for every problem that its databases lack"),
        "4" | "SEARCH_DB_UPDATE" => Some("MIOpen tunes for every problem in each program"),
        "5" | "DB_CLEAN" => Some("MIOpen removes the results of tuning that it comes across"),
        _ => None,
    }
}

/// Whether a directory holds a user's databases, but no system's.
fn is_users(dir: &Path, user_db: &Path) -> bool {
    if dir == user_db {
        return true;
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| DatabaseName::from_path(&entry.path()));
    let (users, systems): (Vec<_>, Vec<_>) =
        names.partition(|name| name.owner == DatabaseOwner::User);
    !users.is_empty() && systems.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_make_miopen_tune_are_reported() {
        let user = Path::new("/srv/ada/.config/miopen");
        for value in ["2", "3", "4", "5", "search", "SEARCH_DB_UPDATE"] {
            let found = left_over(Some(value), None, user);
            assert_eq!(found.len(), 1, "{value}");
            assert!(found[0].contains(&format!("MIOPEN_FIND_ENFORCE=`{value}`")), "{found:?}");
        }
        for value in [None, Some("1"), Some("NONE"), Some("")] {
            assert!(left_over(value, None, user).is_empty(), "{value:?}");
        }
    }

    #[test]
    fn a_users_directory_given_as_the_systems_is_reported() {
        let dir = tempfile::tempdir().expect("a directory");
        let user = Path::new("/srv/ada/.config/miopen");
        assert_eq!(left_over(None, Some(user), user).len(), 1);
        assert!(left_over(None, Some(dir.path()), user).is_empty(), "nothing is in it");
        std::fs::write(dir.path().join("gfx906_60.HIP.3_4_0_.udb.txt"), "").expect("written");
        assert_eq!(left_over(None, Some(dir.path()), user).len(), 1);
        std::fs::write(dir.path().join("gfx906_60.db.txt"), "").expect("written");
        assert!(left_over(None, Some(dir.path()), user).is_empty(), "a system's are there too");
    }
}
