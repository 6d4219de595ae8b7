//! Parsers for values that several commands take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use gfxpack_miopen::{LibrarySource, MIOPEN};
use gfxpack_model::Error;
use gfxpack_model::{Target, TargetError, TargetId, processors};
use gfxpack_runtime::Environment;
use gfxpack_runtime::device::{self, Inputs};

use crate::environment;

/// A possible value: its name, its help, and what it stands for.
pub type Choice<T> = (&'static str, &'static str, T);

/// Parses one of these values.
pub fn one_of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let word = |(name, help, _): &Choice<T>| {
        PossibleValue::new(*name).help((!help.is_empty()).then_some(*help))
    };
    PossibleValuesParser::new(choices.iter().map(word)).map(|given| {
        let is_meant = |(name, ..): &&Choice<T>| *name == given;
        choices.iter().find(is_meant).expect("clap lets no other through").2.clone()
    })
}

/// A value whose error has a hint.
pub fn parsed<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: Error| format!("{error}\nhint: {}", error.hint().unwrap_or_default()))
}

/// The text if it is good, otherwise the error `wrong`.
pub fn checked(text: &str, is_good: bool, wrong: &str) -> Result<String, String> {
    if is_good { Ok(text.to_owned()) } else { Err(wrong.to_owned()) }
}

/// A template of packages' names.
pub fn parse_template(text: &str) -> Result<String, String> {
    let wrong = "all targets' packages would have one name\nhint: {gfx} stands for the target: kernels-{gfx}";
    checked(text, text.contains("{gfx}"), wrong)
}

/// The path of a file that is put in place when complete, so not `-`.
pub fn whole_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            return Err("standard output can't take it\nhint: give the name of a file; ./- is a \
                        file called -");
        }
        Ok(path)
    })
}

/// A libMIOpen; `torch` is the one that PyTorch brings.
pub fn parse_miopen(text: &str) -> Result<LibrarySource, String> {
    if text != "torch" {
        return text.parse().map_err(|error: Error| error.to_string());
    }
    let pythons = environment::pythons();
    let found = pythons.iter().find_map(|dir| gfxpack_miopen::pythons(&MIOPEN, dir));
    found.map(|(_, torch)| LibrarySource::Path(torch)).ok_or_else(|| {
        let searched: Vec<String> = pythons.iter().map(|dir| dir.display().to_string()).collect();
        format!(
            "no PyTorch with a libMIOpen is in {}\nhint: activate the Python environment that has \
             it, or give the environment's directory; ./torch is a directory called torch",
            searched.join(" or ")
        )
    })
}

/// A target in any case, or the name of a product with this processor.
pub fn parse_target(text: &str) -> Result<Target, String> {
    let text = text.trim();
    let parsed = text.to_ascii_lowercase().parse::<Target>();
    match (parsed, processors::by_product(text)) {
        // Compilers may know newer ones, but no name is the beginning of another.
        (Ok(target), _) if !is_cut(target.id().processor()) => Ok(target),
        (_, Some(processor)) => Ok(Target::new(TargetId::new(processor.name), None)),
        (Err(error), None) if !matches!(error, TargetError::Processor(_)) => {
            Err(format!("{error}\nhint: {}", error.hint()))
        }
        _ => Err(unknown_gpu(text)),
    }
}

fn is_cut(name: &str) -> bool {
    processors::PROCESSORS.iter().any(|known| known.name != name && known.name.starts_with(name))
}

fn unknown_gpu(text: &str) -> String {
    let plain = text.to_ascii_lowercase();
    let name = plain.split([':', '@', '_']).next().unwrap_or_default();
    let names = || processors::PROCESSORS.iter().map(|processor| processor.name);
    let typed = names().filter(|known| strsim::osa_distance(known, name) == 1);
    let begun = names().filter(|known| name.len() > 4 && known.starts_with(name));
    let mut near: BTreeSet<&str> = begun.collect();
    if near.is_empty() {
        near.extend(typed);
    }
    let list = "`gfxpack targets` lists the processors, and the products that have them";
    let hint = match near.into_iter().collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => {
            format!("write gfx906_60, gfx90a@104, gfx90a:xnack+@104 or gfx1030; {list}")
        }
        near => format!("did you mean {near}? {list}"),
    };
    format!("failed to parse target `{text}`: no GPU of that name is known\nhint: {hint}")
}

/// One word of the command line with any number of targets. Not written as a `Vec`, which clap would
/// take for an argument that may be repeated.
pub type TargetList = std::vec::Vec<Target>;

/// Targets with commas, semicolons or blanks between them. Names of products may have blanks.
/// `native` stands for those of this machine's GPUs.
pub fn parse_targets(text: &str) -> Result<TargetList, String> {
    let parts = text.split([',', ';']).filter(|part| !part.trim().is_empty());
    let is_gfx = |word: &str| word.to_ascii_lowercase().starts_with("gfx");
    let each = parts.flat_map(|part| {
        if part.trim().eq_ignore_ascii_case("native") {
            native()
        } else if part.split_whitespace().all(is_gfx) {
            part.split_whitespace().map(parse_target).collect()
        } else {
            vec![parse_target(part)]
        }
    });
    let targets = each.collect::<Result<Vec<_>, String>>()?;
    if targets.is_empty() { Err(unknown_gpu(text)) } else { Ok(targets) }
}

/// The targets of this machine's GPUs, each once, with the features that a kdb's name has.
fn native() -> Vec<Result<Target, String>> {
    let detection = device::detect(&Inputs::from_environment(&Environment::read()));
    let mut targets = TargetList::new();
    for device in &detection.devices {
        let xnack = device.target_id.xnack().filter(|is_on| *is_on);
        let id = TargetId::new(device.target_id.processor()).with_features(None, xnack);
        let target = Target::new(id, device.compute_units);
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        return vec![Err(
            "no AMD GPU was found in this machine\nhint: `gfxpack doctor` tells why; \
                         say which GPU it is for, as gfx90a@104 or gfx1030"
                .to_owned(),
        )];
    }
    targets.into_iter().map(Ok).collect()
}

/// A size: `20G`, `500 MB`, `1.5GiB`, `100B`; powers of ten, or of two with `i`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let unit = |unit: &str| {
        let unit = unit.strip_suffix(['b', 'B']).unwrap_or(unit);
        let (letter, base) = match unit.strip_suffix('i') {
            Some(letter) => (letter, 1024_f64),
            None => (unit, 1000.0),
        };
        let power = ["", "k", "m", "g", "t"].iter().position(|known| {
            known.eq_ignore_ascii_case(letter) && (base < 1024.0 || !known.is_empty())
        })?;
        Some(base.powi(power as i32))
    };
    let bytes = quantity(text, unit).filter(|bytes| *bytes < 2_f64.powi(63));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| {
        "it is no size with its unit\nhint: write a number with B, kB, MB, GB or TB after it: 20GB"
            .to_owned()
    })
}

/// An age: `30d`, `12h`, `90 min`, `10s`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let unit = |unit: &str| {
        Some(match unit {
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        })
    };
    quantity(text, unit).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(
        || {
            "it is no length of time with its unit\nhint: write a number with s, min, h, d or w after \
             it: 30d"
                .to_owned()
        },
    )
}

/// A number needs a unit unless it is 0: if bytes or seconds were the default,
/// who means gigabytes or days would lose the cache.
fn quantity(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    match text[end..].trim() {
        "" => (number == 0.0).then_some(0.0),
        word => Some(number * unit(word)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_as_people_write_them() {
        for (text, expected) in [
            ("GFX1030", "gfx1030"),
            ("gfx906, gfx90a@104", "gfx906 gfx90a@104"),
            ("gfx906 gfx103", ""),
            ("gfx906;gfx908 gfx1100", "gfx906 gfx908 gfx1100"),
            ("gfx1030,", "gfx1030"),
            ("7900 XTX", "gfx1100"),
            ("Radeon RX 7900 XTX, MI210", "gfx1100 gfx90a"),
            (" , ", ""),
        ] {
            let found = parse_targets(text).unwrap_or_default();
            let found = found.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_gpu_is_an_error_with_the_nearest_names() {
        for (text, near) in [
            ("gfx103", "did you mean gfx1030, gfx1031"),
            ("gfx103O", "did you mean gfx1030"),
            ("gfx1x", "`gfxpack targets` lists"),
            ("RX 9999", "`gfxpack targets` lists"),
        ] {
            let error = parse_targets(text).unwrap_err();
            assert!(
                error.contains(&format!("`{text}`: no GPU")) && error.contains(near),
                "{error}"
            );
        }
    }

    #[test]
    fn sizes_are_read() {
        let sizes = ["0", "17B", "20G", "20GB", "1.5 kB", "1KiB", "2MiB", "3 tb"].map(parse_size);
        let bytes = [0, 17, 20_000_000_000, 20_000_000_000, 1500, 1024, 2 << 20, 3_000_000_000_000];
        assert_eq!(sizes, bytes.map(Ok));
        for wrong in ["", "G", "-1", "1X", "1ib", "17", "1e9", "99999999TB", "1.2.3"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ages_are_read() {
        let ages = ["0", "90s", "2 min", "1.5h", "30d", "1w"].map(parse_age);
        let seconds = [0, 90, 120, 5400, 30 * 86_400, 7 * 86_400];
        assert_eq!(ages, seconds.map(|seconds| Ok(Duration::from_secs(seconds))));
        for wrong in ["", "d", "30", "1y", "-1d", "1m"] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
