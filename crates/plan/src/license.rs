//! Decides by licences which sources may go into a package: those that a distribution accepts, or
//! those on a list.

use crate::kernel_package::SourceLicense;

/// Licences that are free by Debian's guidelines, in SPDX's spelling; of the
/// GNU licences every version.
///
/// Source: Debian wiki, `DFSGLicenses`; debian-legal's summaries. What is in
/// dispute is left out.
const DFSG_FREE: [&str; 36] = [
    "0BSD",
    "AFL-3.0",
    "Apache-2.0",
    "Artistic-1.0-Perl",
    "Artistic-2.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-2-Clause-Patent",
    "BSD-3-Clause",
    "BSD-3-Clause-LBNL",
    "BSD-3-Clause-Modification",
    "BSL-1.0",
    "bzip2-1.0.6",
    "CC-BY-3.0",
    "CC-BY-4.0",
    "CC-BY-SA-3.0",
    "CC-BY-SA-4.0",
    "CC0-1.0",
    "CDDL-1.0",
    "curl",
    "ECL-2.0",
    "EPL-1.0",
    "EPL-2.0",
    "EUPL-1.2",
    "HPND",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-1.1",
    "MPL-2.0",
    "NCSA",
    "PostgreSQL",
    "Unlicense",
    "WTFPL",
    "X11",
    "Zlib",
];

/// What a user allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// What Debian can ship: free by its guidelines, and in the form that people edit. With
    /// licences, these have to be so too.
    Dfsg,
    /// A licence: `MIT`, `Apache-2.0 WITH LLVM-exception`, `LicenseRef-own`.
    License(spdx::Licensee),
}

/// The syntax of a licence.
pub const HINT: &str =
    "write an SPDX licence expression, as MIT or BSD-3-Clause AND MIT; LicenseRef-NAME for others";

/// Whether the text is an SPDX licence expression.
pub fn check(expression: &str) -> Result<(), String> {
    spdx::Expression::parse(expression).map(|_| ()).map_err(|error| error.reason.to_string())
}

impl std::str::FromStr for Allowed {
    type Err = String;

    /// Parses `dfsg`, or a single licence, not an expression.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "dfsg" {
            return Ok(Self::Dfsg);
        }
        spdx::Licensee::parse(text).map(Self::License).map_err(|error| {
            format!(
                "{}\nhint: write one SPDX licence, as MIT or Apache-2.0, or dfsg; several go with \
                 commas",
                error.reason
            )
        })
    }
}

/// Why a source may not be compiled: all its licences apply, so all must pass. `None` if it may.
///
/// With [`Allowed::Dfsg`], the source must not be `generated`.
pub fn rejection<'a>(
    allow: &[Allowed],
    licenses: impl IntoIterator<Item = &'a SourceLicense>,
    generated: bool,
) -> Option<String> {
    if allow.is_empty() {
        return None;
    }
    let dfsg = allow.contains(&Allowed::Dfsg);
    let named = || {
        allow.iter().filter_map(|one| match one {
            Allowed::License(license) => Some(license),
            Allowed::Dfsg => None,
        })
    };
    if dfsg && generated {
        return Some("it was generated: people edit another file".to_owned());
    }
    let mut none = true;
    for SourceLicense { license, .. } in licenses {
        none = false;
        let Ok(expression) = spdx::Expression::parse(license) else {
            return Some(format!("`{license}` is no SPDX licence expression"));
        };
        if dfsg && !expression.evaluate(is_dfsg_free) {
            return Some(format!("{license} is not known to be free by Debian's guidelines"));
        }
        let allowed = |wanted: &spdx::LicenseReq| {
            named().next().is_none() || named().any(|one| one.satisfies(wanted))
        };
        if !expression.evaluate(allowed) {
            return Some(format!("{license} is not allowed"));
        }
    }
    none.then(|| "its licence is not known".to_owned())
}

/// Exceptions only remove conditions, so they are ignored here.
fn is_dfsg_free(wanted: &spdx::LicenseReq) -> bool {
    wanted.license.id().is_some_and(|id| {
        let gnu = ["GPL-", "LGPL-", "AGPL-"].iter().any(|family| id.name.starts_with(family));
        gnu || DFSG_FREE.contains(&id.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(licenses: &[&str]) -> Vec<SourceLicense> {
        let own = |license: &&str| SourceLicense {
            license: (*license).to_owned(),
            copyright: String::new(),
        };
        licenses.iter().map(own).collect()
    }

    #[test]
    fn licences_that_debian_accepts_are_free() {
        let check = |licenses: &[&str], free: bool| {
            let rejected = rejection(&[Allowed::Dfsg], &sources(licenses), false);
            assert_eq!(rejected.is_none(), free, "{licenses:?}");
        };
        check(&["MIT"], true);
        check(&["MIT OR Apache-2.0"], true);
        check(&["CC-BY-NC-4.0 OR MIT"], true);
        check(&["CC-BY-NC-4.0 AND MIT"], false);
        check(&["MIT", "CC-BY-NC-4.0"], false);
        check(&["GPL-2.0-or-later"], true);
        check(&["LGPL-2.1-only"], true);
        check(&["Apache-2.0 WITH LLVM-exception"], true);
        check(&["LicenseRef-AMD"], false);
        check(&["my own"], false);
        check(&[], false);
        let generated = rejection(&[Allowed::Dfsg], &sources(&["MIT"]), true);
        assert!(generated.is_some_and(|why| why.contains("generated")));
    }

    #[test]
    fn only_listed_licences_are_allowed() {
        let allow = |text: &str| -> Vec<Allowed> {
            text.split(',').map(|one| one.parse().unwrap()).collect()
        };
        let check = |list: &str, license: &str, allowed: bool| {
            let rejected = rejection(&allow(list), &sources(&[license]), true);
            assert_eq!(rejected.is_none(), allowed, "{list}: {license}");
        };
        check("MIT", "MIT", true);
        check("MIT,BSD-3-Clause", "MIT AND BSD-3-Clause", true);
        check("MIT", "MIT AND BSD-3-Clause", false);
        check("MIT", "MIT OR BSD-3-Clause", true);
        check("LicenseRef-own", "LicenseRef-own", true);
        check("MIT", "my own", false);
        check("dfsg,MIT", "MIT", false);
        assert_eq!(rejection(&[], &sources(&["my own"]), true), None);
        assert!("MIT OR ISC".parse::<Allowed>().is_err());
    }
}
