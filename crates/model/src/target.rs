//! The only place that knows the spellings of a GPU: target IDs, compute-unit
//! counts, MIOpen's db ids and file names, `--offload-arch`, package names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::processors::{self, PROCESSORS};

/// A compiler target: processor and features, as `gfx90a:sramecc+:xnack-`.
///
/// A feature that is `None` means "any": such a code object runs on devices
/// with the feature on or off.
///
/// Source: LLVM, Clang "OffloadArch / Target ID" definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId {
    // A plan has one for each job.
    processor: Arc<str>,
    sramecc: Option<bool>,
    xnack: Option<bool>,
}

/// A target ID with the compute units of a kdb; `None` = device-wide.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    id: TargetId,
    compute_units: Option<u32>,
}

/// Why a target could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text does not begin with a processor name.
    #[error("failed to parse target `{0}`: it names no gfx processor")]
    Processor(String),
    /// A feature that is unknown, that the processor does not have, or that is
    /// named twice.
    #[error("failed to parse target `{target}`: `{feature}` is no feature of {processor}")]
    Feature {
        /// The whole text.
        target: String,
        /// The feature as written.
        feature: String,
        /// The processor.
        processor: String,
    },
    /// The compute-unit count is not a number from 1 to 4095.
    #[error("failed to parse target `{target}`: `{count}` is no compute-unit count")]
    ComputeUnits {
        /// The whole text.
        target: String,
        /// The part that should be a count.
        count: String,
    },
    /// `_` before a count that MIOpen writes in hexadecimal.
    #[error("failed to parse target `{target}`: `_` takes a compute-unit count up to 64")]
    Underscore {
        /// The whole text.
        target: String,
        /// The target without the count.
        id: TargetId,
        /// The count.
        count: u32,
    },
    /// A compute-unit count in a target ID: compilers do not use it.
    #[error("failed to parse target ID `{0}`: it has a compute-unit count")]
    Counted(String),
}

impl TargetError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Processor(_) => {
                "write gfx906_60, gfx90a@104, gfx90a:xnack+@104, gfx1030 for all compute-unit counts, \
                 or a product's name; `gfxpack targets` lists both"
                    .to_owned()
            }
            Self::Feature { processor, .. } => match processors::by_name(processor) {
                Some(known) if known.sramecc => {
                    format!("{processor} takes :sramecc+, :sramecc-, :xnack+ and :xnack-, each once")
                }
                Some(known) if known.xnack => {
                    format!("{processor} takes :xnack+ or :xnack-, once")
                }
                _ => format!("write {processor} without features"),
            },
            Self::Underscore { id, count, .. } => {
                let target = Target::new(id.clone(), Some(*count));
                format!(
                    "write {target}; MIOpen calls that {}, in hexadecimal above 64",
                    target.db_basename()
                )
            }
            Self::ComputeUnits { target, .. } => format!(
                "{}after @ comes a decimal count from 1 to 4095; in MIOpen's own spelling _ and a \
                 decimal up to 64, above that hexadecimal without separator (gfx90a68 has 104)",
                if target.contains(['@', '_']) {
""
                } else {
"if a processor is meant, none of that name is known; "
                }
            ),
            Self::Counted(_) => "leave the count out, as in gfx90a:xnack+".to_owned(),
        }
    }
}

/// Largest compute-unit count accepted; the biggest device sold has 304.
const MAX_COMPUTE_UNITS: u32 = 4095;
/// Above this MIOpen writes the count in hexadecimal without separator.
///
/// Source: ROCm/MIOpen 2d1fd997a, `Handle::GetDbBasename`.
const MAX_DECIMAL_COMPUTE_UNITS: u32 = 64;

impl TargetId {
    /// A target of that processor with all features at "any".
    pub fn new(processor: &str) -> Self {
        Self { processor: processor.into(), sramecc: None, xnack: None }
    }

    /// The same target with these features.
    #[must_use]
    pub fn with_features(mut self, sramecc: Option<bool>, xnack: Option<bool>) -> Self {
        self.sramecc = sramecc;
        self.xnack = xnack;
        self
    }

    /// The base gfx name, which MIOpen calls the device name: `gfx90a`.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Whether HIP, and so MIOpen, counts work-group processors of two compute units each.
    ///
    /// Source: ROCm/clr, rocsettings.cpp, `enableWgpMode_`, on from gfx10 by default.
    pub fn counts_pairs(&self) -> bool {
        let digits = self.processor.trim_start_matches("gfx");
        let major = digits.len().checked_sub(2).and_then(|length| digits.get(..length));
        major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 10)
    }

    /// SRAM ECC: on, off, or any.
    pub fn sramecc(&self) -> Option<bool> {
        self.sramecc
    }

    /// XNACK (page-fault replay): on, off, or any.
    pub fn xnack(&self) -> Option<bool> {
        self.xnack
    }

    /// MIOpen's DbId: the device name, and `_xnack` if XNACK is on.
    ///
    /// SRAM ECC is not part of it: MIOpen assumes it on for gfx906 and gfx908
    /// and leaves it unset for all others.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `TargetProperties::InitDbId`.
    pub fn db_id(&self) -> String {
        let xnack = if self.xnack == Some(true) { "_xnack" } else { "" };
        format!("{}{xnack}", self.processor)
    }

    /// Whether code built for `self` can run on a device or kdb of `other`: the
    /// same processor, and no contradicting feature.
    pub fn serves(&self, other: &Self) -> bool {
        let agrees = |a: Option<bool>, b: Option<bool>| a.is_none() || b.is_none() || a == b;
        self.processor == other.processor
            && agrees(self.sramecc, other.sramecc)
            && agrees(self.xnack, other.xnack)
    }
}

impl fmt::Display for TargetId {
    /// The compiler's spelling (`--offload-arch`): features in alphabetical order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (name, value) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(on) = value {
                write!(f, ":{name}{}", if on { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}

impl FromStr for TargetId {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let target: Target = text.parse()?;
        match target.compute_units {
            None => Ok(target.id),
            Some(_) => Err(TargetError::Counted(text.to_owned())),
        }
    }
}

impl Target {
    /// A kdb's target: with a count, only devices with that count; without,
    /// all.
    pub fn new(id: TargetId, compute_units: Option<u32>) -> Self {
        Self { id, compute_units }
    }

    /// The part of the target for the compiler.
    pub fn id(&self) -> &TargetId {
        &self.id
    }

    /// Compute units as HIP reports them; `None` for a device-wide kdb.
    pub fn compute_units(&self) -> Option<u32> {
        self.compute_units
    }

    /// The targets of the kdbs for a device of this target, in MIOpen's order: exactly its compute
    /// units, then device-wide.
    pub fn with_device_wide(&self) -> Vec<Self> {
        let wide = Self { compute_units: None, ..self.clone() };
        if *self == wide { vec![wide] } else { vec![self.clone(), wide] }
    }

    /// MIOpen's DbBasename: DbId, then `_` and the decimal count up to 64, or
    /// the count in lowercase hexadecimal without separator if it is larger;
    /// only the DbId for a device-wide target.
    ///
    /// Source: ROCm/MIOpen 2d1fd997a, `Handle::GetDbBasename`.
    pub fn db_basename(&self) -> String {
        let db_id = self.id.db_id();
        match self.compute_units {
            None => db_id,
            Some(count) if count <= MAX_DECIMAL_COMPUTE_UNITS => format!("{db_id}_{count}"),
            Some(count) => format!("{db_id}{count:x}"),
        }
    }

    /// The device in the name of a performance or find database. From 3.5 on, MIOpen names those of
    /// RDNA by hardware compute units in hexadecimal, of which HIP counts pairs: `gfx120140` is
    /// `gfx1201@32`. All other names are as for [`db_basename`](Self::db_basename). `None` if MIOpen
    /// looks for no such name.
    ///
    /// Source: ROCm/rocm-libraries pull requests 9529 and 10050; 7552ef203, `Handle::GetDbBasename`.
    pub fn from_database_name(device: &str) -> Option<Self> {
        let processor = split_processor(device).ok()?;
        let digits = &device[processor.len()..];
        let id = TargetId::new(processor);
        if id.counts_pairs() && digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
            let units = decimal_or_hex(digits, 16).filter(|units| units % 2 == 0)?;
            return Some(Self::new(id, Some(units / 2)));
        }
        device.parse().ok().filter(|target: &Self| target.db_basename() == device)
    }

    /// How MIOpen from 3.5 on names the performance and find databases of this RDNA device;
    /// the inverse of [`from_database_name`](Self::from_database_name).
    pub fn hex_database_name(&self) -> Option<String> {
        let units = 2 * self.compute_units?;
        self.id.counts_pairs().then(|| format!("{}{units:x}", self.id.db_id()))
    }

    /// The name of the installed kernel database: `gfx90a68.kdb`.
    pub fn kdb_file_name(&self) -> String {
        format!("{}.kdb", self.db_basename())
    }

    /// The name of the user's kernel database: `gfx90a68.ukdb`.
    pub fn ukdb_file_name(&self) -> String {
        format!("{}.ukdb", self.db_basename())
    }

    /// The spelling in package names, in which `_`, `:` and `@` are not allowed
    /// or not safe: `gfx90a-xnack-104`.
    pub fn package_suffix(&self) -> String {
        let db_id = self.id.db_id().replace('_', "-");
        match self.compute_units {
            None => db_id,
            Some(count) => format!("{db_id}-{count}"),
        }
    }
}

impl fmt::Display for Target {
    /// gfxpack's plain spelling, which parses back: `gfx90a:xnack+@104`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        self.compute_units.map_or(Ok(()), |count| write!(f, "@{count}"))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Parses every spelling in use: `gfx90a`, `gfx90a@104`,
    /// `gfx90a:xnack+@104`, and MIOpen's `gfx906_60`, `gfx90a68`,
    /// `gfx90a_xnack68`.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let processor = split_processor(text)?;
        let mut rest = &text[processor.len()..];
        let mut id = TargetId::new(processor);
        if let Some(after) = rest.strip_prefix("_xnack") {
            set_feature(&mut id, "xnack+", text)?;
            rest = after;
        } else {
            let (features, after) = rest.split_at(rest.find('@').unwrap_or(rest.len()));
            if let Some(features) = features.strip_prefix(':') {
                for feature in features.split(':') {
                    set_feature(&mut id, feature, text)?;
                }
                rest = after;
            }
        }
        let count = |digits: &str, radix: u32| {
            decimal_or_hex(digits, radix).ok_or_else(|| TargetError::ComputeUnits {
                target: text.to_owned(),
                count: digits.to_owned(),
            })
        };
        let compute_units = if rest.is_empty() {
            None
        } else if let Some(digits) = rest.strip_prefix('@') {
            Some(count(digits, 10)?)
        } else if let Some(digits) = rest.strip_prefix('_') {
            // MIOpen would write it in hexadecimal, and never looks for such a
            // file.
            let decimal = count(digits, 10)?;
            if decimal > MAX_DECIMAL_COMPUTE_UNITS {
                return Err(TargetError::Underscore {
                    target: text.to_owned(),
                    id,
                    count: decimal,
                });
            }
            Some(decimal)
        } else {
            let hex = count(rest, 16)?;
            if hex <= MAX_DECIMAL_COMPUTE_UNITS {
                // MIOpen would write `_` and a decimal: most likely a typo.
                return Err(TargetError::ComputeUnits {
                    target: text.to_owned(),
                    count: rest.to_owned(),
                });
            }
            Some(hex)
        };
        Ok(Self { id, compute_units })
    }
}

/// A compute-unit count, written as MIOpen does: without zeros before it, and in lowercase.
fn decimal_or_hex(digits: &str, radix: u32) -> Option<u32> {
    let plain = !digits.starts_with('0')
        && digits.chars().all(|c| c.is_digit(radix) && !c.is_ascii_uppercase());
    let count = u32::from_str_radix(digits, radix).ok()?;
    (plain && (1..=MAX_COMPUTE_UNITS).contains(&count)).then_some(count)
}

/// The processor at the start of `text`: the longest known name, or else text
/// with the shape of one up to the next separator.
fn split_processor(text: &str) -> Result<&str, TargetError> {
    let known = PROCESSORS
        .iter()
        .filter(|processor| text.starts_with(processor.name))
        .max_by_key(|processor| processor.name.len());
    if let Some(processor) = known {
        return Ok(&text[..processor.name.len()]);
    }
    let end = text.find([':', '@', '_']).unwrap_or(text.len());
    let shaped = text[..end].strip_prefix("gfx").is_some_and(|digits| {
        (3..=4).contains(&digits.len())
            && digits.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
            && digits.starts_with(|c: char| c.is_ascii_digit())
    });
    if shaped { Ok(&text[..end]) } else { Err(TargetError::Processor(text.to_owned())) }
}

fn set_feature(id: &mut TargetId, feature: &str, text: &str) -> Result<(), TargetError> {
    let error = TargetError::Feature {
        target: text.to_owned(),
        feature: feature.to_owned(),
        processor: id.processor().to_owned(),
    };
    let on = match feature.chars().last() {
        Some('+') => true,
        Some('-') => false,
        _ => return Err(error),
    };
    let known = processors::by_name(&id.processor);
    let (slot, supported) = match &feature[..feature.len() - 1] {
        "sramecc" => (&mut id.sramecc, known.is_none_or(|processor| processor.sramecc)),
        "xnack" => (&mut id.xnack, known.is_none_or(|processor| processor.xnack)),
        _ => return Err(error),
    };
    if slot.is_some() || !supported {
        return Err(error);
    }
    *slot = Some(on);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, plain: &str, basename: &str, suffix: &str) {
        let target: Target = text.parse().unwrap();
        assert_eq!(target.to_string(), plain);
        assert_eq!(target.db_basename(), basename);
        assert_eq!(target.package_suffix(), suffix);
        assert_eq!(plain.parse::<Target>().unwrap(), target, "the plain spelling parses back");
        if target.id.sramecc.is_none() && target.id.xnack != Some(false) {
            assert_eq!(
                basename.parse::<Target>().unwrap(),
                target,
                "MIOpen's spelling parses back"
            );
        }
    }

    #[test]
    fn every_spelling_gives_the_file_name_miopen_looks_for() {
        check("gfx906_60", "gfx906@60", "gfx906_60", "gfx906-60");
        check("gfx900@64", "gfx900@64", "gfx900_64", "gfx900-64");
        check("gfx900@65", "gfx900@65", "gfx90041", "gfx900-65");
        check("gfx90a@104", "gfx90a@104", "gfx90a68", "gfx90a-104");
        check("gfx90a68", "gfx90a@104", "gfx90a68", "gfx90a-104");
        check("gfx90878", "gfx908@120", "gfx90878", "gfx908-120");
        check("gfx942130", "gfx942@304", "gfx942130", "gfx942-304");
        check("gfx1030_40", "gfx1030@40", "gfx1030_40", "gfx1030-40");
        check("gfx1030", "gfx1030", "gfx1030", "gfx1030");
        check("gfx90a_xnack68", "gfx90a:xnack+@104", "gfx90a_xnack68", "gfx90a-xnack-104");
        check("gfx90a:xnack+@104", "gfx90a:xnack+@104", "gfx90a_xnack68", "gfx90a-xnack-104");
        check("gfx906_xnack_60", "gfx906:xnack+@60", "gfx906_xnack_60", "gfx906-xnack-60");
        check("gfx90a:xnack-:sramecc+", "gfx90a:sramecc+:xnack-", "gfx90a", "gfx90a");
    }

    #[test]
    fn databases_of_rdna_count_hardware_units_in_hexadecimal() {
        for (name, target) in [
            ("gfx120140", "gfx1201@32"),
            ("gfx120020", "gfx1200@16"),
            ("gfx115128", "gfx1151@20"),
            ("gfx110220", "gfx1102@16"),
            ("gfx110060", "gfx1100@48"),
            ("gfx110036", "gfx1100@27"),
            ("gfx1030_36", "gfx1030@36"),
            ("gfx90a68", "gfx90a@104"),
            ("gfx942130", "gfx942@304"),
        ] {
            let parsed = Target::from_database_name(name).expect(name);
            assert_eq!(parsed, target.parse().unwrap(), "{name}");
            let names = [Some(parsed.db_basename()), parsed.hex_database_name()];
            assert!(names.contains(&Some(name.to_owned())), "{name}");
        }
        for name in ["gfx120141", "gfx90a40", "gfx1201_064", "gfx906@60", "gfx110_"] {
            assert_eq!(Target::from_database_name(name), None, "{name}");
        }
    }

    #[test]
    fn an_unknown_processor_name_is_accepted() {
        let target: Target = "gfx1310@40".parse().unwrap();
        assert_eq!(target.db_basename(), "gfx1310_40");
    }

    #[test]
    fn wrong_spellings_are_rejected() {
        for text in [
            "",
            "gfx",
            "906",
            "gfx906@",
            "gfx906@0",
            "gfx906@060",
            "gfx906_0x3c",
            "gfx906@99999",
            "gfx90a6",
            "gfx90a40",
            "gfx90aFF",
            "gfx1030:xnack+",
            "gfx900:sramecc+",
            "gfx90a:xnack",
            "gfx90a:xnack+:xnack-",
            "gfx90a:",
            "gfx90a:speed+",
            "gfx906 ",
            "gfx9-generic",
            "gfx90a@+5",
        ] {
            let error = text.parse::<Target>().expect_err(text);
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn the_hint_for_a_name_with_a_known_prefix_is_that_it_is_unknown() {
        let hint = |text: &str| text.parse::<Target>().unwrap_err().hint();
        assert!(hint("gfx9060").starts_with("if a processor is meant, none"));
        assert!(hint("gfx906@0").starts_with("after @ comes"));
    }

    #[test]
    fn a_target_id_has_no_count() {
        let error = "gfx90a@104".parse::<TargetId>().expect_err("it has a count");
        assert_eq!(error, TargetError::Counted("gfx90a@104".to_owned()));
        assert!(!error.hint().is_empty());
    }

    #[test]
    fn code_for_any_setting_runs_on_each() {
        let id = |text: &str| text.parse::<TargetId>().unwrap();
        assert!(id("gfx90a").serves(&id("gfx90a:xnack+")));
        assert!(!id("gfx90a:xnack-").serves(&id("gfx90a:xnack+")));
        assert!(!id("gfx90a").serves(&id("gfx908")));
    }
}
