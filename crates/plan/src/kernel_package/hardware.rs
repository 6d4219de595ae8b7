//! How a package declares its devices, so that a package manager or a software centre can choose
//! it: by the device IDs of the PCI bus.

use std::collections::BTreeSet;

use gfxpack_model::package::{Content, PackageFile, PackageSpec, Relation, RelationKind};
use gfxpack_model::{InstallLayout, Target, processors};

use crate::consumer::Consumer;

/// The Debian field with the gfx targets of a package.
///
/// Source: Debian ROCm team, packaging policy for architecture-dependent data.
const GPU_FIELD: &str = "X-ROCm-GPU-Architecture";
/// The Debian field by which `ubuntu-drivers` finds packages for a device.
///
/// Source: ubuntu-drivers-common, `UbuntuDrivers/detect.py`,
/// `_pkg_get_module_aliases` and `apt_cache_modalias_map`.
const MODALIASES_FIELD: &str = "Modaliases";
/// The kernel module that drives all of these devices.
const DRIVER: &str = "amdgpu";

/// The aliases that the kernel gives to devices served by this target.
///
/// A PCI ID determines the processor but not the compute units, so a kdb for one count claims
/// devices only if no other count is sold. Nor does it determine whether XNACK is on, so a kdb for
/// XNACK claims none.
///
/// Source: Linux, `drivers/pci/pci-sysfs.c`, `modalias_show`.
pub fn modaliases(target: &Target) -> Vec<String> {
    let Some(processor) = processors::by_name(target.id().processor()) else { return Vec::new() };
    let sure = match target.compute_units() {
        None => true,
        Some(count) => processor.compute_units == [count],
    };
    if !sure || target.id().xnack() == Some(true) {
        return Vec::new();
    }
    let alias = |id: &u16| format!("pci:v00001002d0000{id:04X}sv*sd*bc*sc*i*");
    processor.pci_ids.iter().map(alias).collect()
}

/// The aliases that a package with a target's kernels claims in this layout.
pub(super) fn claimed(layout: &InstallLayout, consumer: Consumer, target: &Target) -> Vec<String> {
    // Package managers for Python know no devices.
    let knows_devices = *layout != InstallLayout::Python;
    if knows_devices && layout.version().is_none() { wanted(consumer, target) } else { Vec::new() }
}

/// The aliases of the devices whose owners want a target's kernels.
pub(super) fn wanted(consumer: Consumer, target: &Target) -> Vec<String> {
    if consumer.properties().by_hardware { modaliases(target) } else { Vec::new() }
}

/// Fields of a .deb: processors, each once, and devices.
pub(super) fn deb_fields<'a>(
    processors: impl IntoIterator<Item = &'a str>,
    aliases: &[String],
) -> Vec<(String, String)> {
    let processors: BTreeSet<&str> = processors.into_iter().collect();
    let processors: Vec<&str> = processors.into_iter().collect();
    let mut fields = vec![(GPU_FIELD.to_owned(), processors.join(", "))];
    if !aliases.is_empty() {
        let value = format!("{DRIVER}({})", aliases.join(", "));
        fields.push((MODALIASES_FIELD.to_owned(), value));
    }
    fields
}

/// Dependencies of an .rpm with which libsolv installs it together with MIOpen if such a device is
/// present. The old form with the other package's name works without configuration; dnf ignores
/// both.
///
/// Source: libsolv, `src/namespaces`, `NAMESPACE_MODALIAS`; openSUSE,
/// "Packaging guidelines: Supplements".
pub(super) fn supplements(consumer: Consumer, aliases: &[String]) -> Vec<Relation> {
    let packages =
        consumer.properties().packages.iter().filter(|package| !package.starts_with("lib"));
    let one = |package: &&str, alias: &String| Relation {
        kind: RelationKind::Supplements,
        name: format!("modalias({package}:{alias})"),
        version: None,
    };
    packages.flat_map(|package| aliases.iter().map(move |alias| one(package, alias))).collect()
}

/// The AppStream description of a package; `None` if it claims no device.
///
/// Source: AppStream 1.0, 2.1 "Generic component" and 2.13 "Driver".
pub(super) fn metainfo(spec: &PackageSpec, aliases: &[String]) -> Option<PackageFile> {
    if aliases.is_empty() {
        return None;
    }
    let id = format!("{}.{}", domain(spec), spec.name.replace(['-', '+'], "_"));
    let element = |indent: &str, name: &str, text: &str| {
        let end = name.split(' ').next().unwrap_or_default();
        format!("{indent}<{name}>{}</{end}>\n", escaped(text))
    };
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<component type=\"driver\">\n".to_owned();
    text += &element("  ", "id", &id);
    text += &element("  ", "metadata_license", "FSFAP");
    text += &element("  ", "project_license", &spec.license);
    text += &element("  ", "name", &spec.name);
    text += &element("  ", "summary", &capitalised(&spec.summary));
    let paragraph = spec.description.split("\n\n").next().unwrap_or_default();
    text += &format!("  <description>\n{}  </description>\n", element("    ", "p", paragraph));
    if spec.homepage.starts_with("http") {
        text += &element("  ", "url type=\"homepage\"", &spec.homepage);
    }
    text += &element("  ", "pkgname", &spec.name);
    let aliases = aliases.iter().map(|alias| element("    ", "modalias", alias));
    text += &format!("  <provides>\n{}  </provides>\n", aliases.collect::<String>());
    let (version, date) = (escaped(&spec.version), spec.source_date_epoch);
    text += &format!(
        "  <releases>\n    <release version=\"{version}\" timestamp=\"{date}\"/>\n  </releases>\n\
         </component>\n"
    );
    let path = format!("/usr/share/metainfo/{id}.metainfo.xml");
    Some(PackageFile::readable(path, Content::Bytes(text.into_bytes())))
}

/// The package's maker as a reversed domain name: that of the home page, or else of the
/// maintainer's mail address.
fn domain(spec: &PackageSpec) -> String {
    let host = spec.homepage.split_once("://").map(|(_, rest)| rest);
    let host = host.and_then(|rest| rest.split(['/', ':', '?', '#']).next());
    let mail = spec.maintainer.split_once('@').map(|(_, rest)| rest.trim_end_matches('>'));
    let plain = |host: &&str| {
        host.contains('.')
            && host.split('.').all(|part| !part.is_empty())
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
            && host.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
    };
    let host = host.filter(plain).or(mail.filter(plain)).unwrap_or("unknown.invalid");
    let host = host.strip_prefix("www.").unwrap_or(host).to_ascii_lowercase().replace('-', "_");
    host.split('.').rev().collect::<Vec<_>>().join(".")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Text escaped for XML and HTML, also within attributes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_claimed_only_if_the_pci_id_identifies_them() {
        let count = |target: &str| modaliases(&target.parse().unwrap()).len();
        assert_eq!(count("gfx90a"), 4);
        assert_eq!(count("gfx90a@104"), 0, "the ID does not tell 104 from 110");
        assert_eq!(count("gfx908@120"), 4, "no other count is sold");
        assert_eq!(count("gfx90a:xnack+"), 0);
        assert_eq!(count("gfx940"), 0, "never sold");
        let first = &modaliases(&"gfx942".parse().unwrap())[0];
        assert_eq!(first, "pci:v00001002d000074A0sv*sd*bc*sc*i*");
    }
}
