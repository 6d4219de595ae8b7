//! MIOpen's heuristic models: they predict the fastest solver
//! (`gfx908.tn.model`) and its parameters
//! (`gfx908_ConvAsm1x1U_encoder.ktn.model`) for problems that are in no
//! database.
//!
//! Source: ROCm/MIOpen 2d1fd997a, ai_heuristics.cpp.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use gfxpack_model::Target;
use serde::de::IgnoredAny;

/// Models for the fastest solver.
const SOLVERS: &str = ".tn.model";
/// Models for the parameters of a solver.
const PARAMETERS: &str = ".ktn.model";

/// The parsed name of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// Its processor; MIOpen uses the model for any number of compute units.
    pub target: Target,
    /// The files that MIOpen loads together with it.
    pub with: Vec<String>,
}

impl ModelName {
    /// Parses the file's name; `None` if it is not a name of MIOpen's models.
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let ending = [PARAMETERS, SOLVERS].into_iter().find(|ending| name.ends_with(ending))?;
        let stem = name.strip_suffix(ending)?;
        let processor = stem.split('_').next()?;
        let target: Target = processor.parse().ok()?;
        (target.id().processor() == processor && target.compute_units().is_none()).then_some(())?;
        // The name of the model itself, `gfx908.tn.model`, ends in no part.
        let set = if ending == SOLVERS { processor } else { stem.rsplit_once('_')?.0 };
        let parts: &[&str] = if ending == SOLVERS {
            &["", "_metadata"]
        } else {
            &["_decoder", "_encoder", "_metadata"]
        };
        let all = parts.iter().map(|part| format!("{set}{part}{ending}"));
        let with: Vec<String> = all.filter(|other| other != name).collect();
        (with.len() + 1 == parts.len()).then_some(Self { target, with })
    }
}

/// Checks that MIOpen can load a model: that it is JSON. Memory does not grow
/// with its size.
pub fn check_model(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    serde_json::from_reader::<_, IgnoredAny>(BufReader::new(file))
        .map(drop)
        .map_err(|error| format!("it is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_the_processor_and_the_files_of_a_model() {
        let check = |name: &str, expected: Option<(&str, &[&str])>| {
            let found = ModelName::from_path(Path::new(name));
            let found = found.map(|name| (name.target.to_string(), name.with));
            let expected = expected.map(|(target, with)| {
                (target.to_owned(), with.iter().map(|name| (*name).to_owned()).collect())
            });
            assert_eq!(found, expected, "{name}");
        };
        check("gfx908.tn.model", Some(("gfx908", &["gfx908_metadata.tn.model"])));
        check("db/gfx90a_metadata.tn.model", Some(("gfx90a", &["gfx90a.tn.model"])));
        let parts =
            ["gfx90a_ConvAsm1x1U_decoder.ktn.model", "gfx90a_ConvAsm1x1U_metadata.ktn.model"];
        check("gfx90a_ConvAsm1x1U_encoder.ktn.model", Some(("gfx90a", &parts)));
        for other in [
            "gfx908.model",
            "other.tn.model",
            "gfx908_60.kdb",
            "gfx90a68.tn.model",
            "gfx908.ktn.model",
        ] {
            check(other, None);
        }
    }
}
