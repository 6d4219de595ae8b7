//! The environment in which a program makes MIOpen tune for its own
//! computations.

use crate::script::Tuning;

/// A variable that a program's environment must have, or must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// `MIOPEN_FIND_ENFORCE`.
    pub name: &'static str,
    /// Its value; `None` if it must be unset.
    pub value: Option<String>,
}

/// Variables that control MIOpen's search.
const SEARCH: [&str; 3] = ["MIOPEN_FIND_ENFORCE", "MIOPEN_FIND_MODE", "MIOPEN_FIND_MODE_FUSION"];

/// Variables that would prevent MIOpen from searching, from recording the
/// result, or from keeping compiled kernels.
const IN_THE_WAY: [&str; 4] = [
    "MIOPEN_DEBUG_DISABLE_FIND_DB",
    "MIOPEN_DEBUG_FIND_ONLY_SOLVER",
    "MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK",
    "MIOPEN_DISABLE_CACHE",
];

/// The environment that a program needs so that MIOpen tunes and writes the
/// results to the databases in that directory.
///
/// Both ways tune each problem once that the user's databases lack. Exhaustive
/// tuning also ignores the installed databases: neither their records nor the
/// models beside them prevent a search. Installed kdbs are not found either, so
/// kernels are compiled.
///
/// Source: ROCm/MIOpen, docs/conceptual/tuningdb.rst, "Incremental tuning" and
/// "Exhaustive tuning"; find_db.hpp and find_controls.hpp at 2d1fd997a.
#[must_use]
pub fn settings(tuning: Tuning, databases: &str) -> Vec<Setting> {
    let set = |name, value: &str| Setting { name, value: Some(value.to_owned()) };
    let [enforce, mode, fusion_mode] = SEARCH;
    let mut settings = vec![set(enforce, "3"), unset(mode), unset(fusion_mode)];
    if tuning == Tuning::Exhaustive {
        settings.push(set("MIOPEN_SYSTEM_DB_PATH", databases));
    }
    settings.push(set("MIOPEN_USER_DB_PATH", databases));
    settings.extend(IN_THE_WAY.map(unset));
    settings
}

/// Undoes [`settings`]. The directory of the user's databases stays set, since
/// the results are in it.
#[must_use]
pub fn unsettings() -> Vec<Setting> {
    SEARCH.into_iter().chain(["MIOPEN_SYSTEM_DB_PATH"]).map(unset).collect()
}

fn unset(name: &'static str) -> Setting {
    Setting { name, value: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    #[test]
    fn a_program_tunes_as_the_incremental_script_does() {
        let script = script::tuning(&[], Tuning::Incremental);
        for Setting { name, value } in settings(Tuning::Incremental, "/u") {
            match value.as_deref() {
                Some("/u") => {}
                Some(value) => {
                    let words: Vec<&str> = script.split_whitespace().collect();
                    assert!(words.contains(&&*format!("{name}={value}")), "{name}");
                }
                None => {
                    let unset = |line: &str| line.starts_with("unset ") && line.contains(name);
                    assert!(script.lines().any(unset), "{name}");
                }
            }
        }
    }

    #[test]
    fn unsettings_undo_what_makes_a_program_slow() {
        let off = unsettings();
        for tuning in [Tuning::Incremental, Tuning::Exhaustive] {
            let set = settings(tuning, "/u").into_iter().filter(|setting| setting.value.is_some());
            for Setting { name, .. } in set.filter(|one| one.name != "MIOPEN_USER_DB_PATH") {
                assert!(off.contains(&unset(name)), "{name}");
            }
        }
    }
}
