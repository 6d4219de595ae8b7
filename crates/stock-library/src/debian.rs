//! Gets a library from Debian's archive: chooses its packages.
//!
//! A package's `Depends` names more than is needed. `DT_NEEDED` says what libraries need, and
//! libraries with a stand-in are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gfxpack_debian::{Archive, Lock, Package, Pin, Relation, Suite};
use gfxpack_model::digest::Hasher;
use gfxpack_model::{Digest, Error, Result};

use crate::elf::ElfFile;
use crate::library::{Library, describe, unreadable};
use crate::product::Product;
use crate::{needs, tree};

/// Must be changed if the same lists give other packages, since choices are stored by it.
const RULES: &str = "gfxpack packages of a library 1";

impl Library {
    /// The packages of Debian's archive for a library: its own, those of the same version that
    /// belong to it, and those of the libraries that it needs and that have no stand-in. The choice
    /// for the same lists is stored.
    pub fn choose(
        product: &'static Product,
        archive: &Archive<'_>,
        suite: &str,
        version: Option<&str>,
    ) -> Result<Lock> {
        let mut suites = vec![archive.suite(suite)?];
        if matches!(suite, "experimental" | "rc-buggy") {
            // This suite contains only packages that differ from sid.
            suites.push(archive.suite("sid")?);
        }
        let name = choice_name(product, &suites, archive.architecture()?, version);
        if let Some(lock) = archive.kept(&name) {
            return Ok(lock);
        }
        let package = suites[0].package(product.package, version)?;
        let mut choice =
            Choice { product, archive, suites, listed: BTreeMap::new(), taken: Vec::new() };
        choice.complete(package)?;
        let mut packages: Vec<Pin> =
            choice.taken.into_iter().map(|(package, _)| package.pin).collect();
        // The library stays first.
        if let Some(others) = packages.get_mut(1..) {
            others.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let architecture = archive.architecture()?.to_owned();
        let lock = Lock { suite: suite.to_owned(), architecture, packages };
        archive.keep(&name, &lock);
        Ok(lock)
    }

    /// The library in pinned packages. If the archive does not have one of them any more, the
    /// suite's newest packages are used, and `archive` reports a warning.
    pub fn pinned(product: &'static Product, lock: &Lock, archive: &Archive<'_>) -> Result<Self> {
        let architecture = archive.architecture()?;
        let suite = &lock.suite;
        let unpacked = |lock: &Lock| -> std::result::Result<Vec<PathBuf>, _> {
            lock.packages.iter().map(|pin| archive.unpacked(pin)).collect()
        };
        let why = if lock.architecture == architecture {
            match unpacked(lock) {
                Err(error) if error.is_gone() => error.to_string(),
                dirs => return assemble(product, lock, &dirs?),
            }
        } else {
            format!("packages are pinned for {}, not for {architecture}", lock.architecture)
        };
        let newest = Self::choose(product, archive, suite, None)?;
        let version = newest.packages.first().map_or("", |pin| &pin.version);
        archive.warn(format!("{why}: taking what {suite} has now, {} {version}", product.package));
        assemble(product, &newest, &unpacked(&newest)?)
    }
}

fn choice_name(
    product: &Product,
    suites: &[Suite],
    architecture: &str,
    version: Option<&str>,
) -> Digest {
    Hasher::new(RULES)
        .field(product.package.as_bytes())
        .field(architecture.as_bytes())
        .field(version.unwrap_or_default().as_bytes())
        .list(suites.iter().map(|suite| suite.sha256))
        .finish()
}

/// The library in its unpacked packages.
fn assemble(product: &'static Product, lock: &Lock, dirs: &[PathBuf]) -> Result<Library> {
    let (Some(dir), Some(pin)) = (dirs.first(), lock.packages.first()) else {
        return Err(product.is_not_in(Path::new("")));
    };
    let file = tree::library(dir, product).ok_or_else(|| product.is_not_in(dir))?;
    let places = dirs.iter().flat_map(|dir| tree::library_dirs(dir)).collect();
    let mut origin = format!("Debian {}, {} {}", lock.suite, pin.name, pin.version);
    if let Some(databases) =
        lock.packages.iter().find(|pin| product.databases_package == Some(&pin.name))
    {
        origin += &format!(", databases of {} {}", databases.name, databases.version);
    }
    describe(product, &file, places, dirs, Some(origin))
}

/// The state of choosing packages.
struct Choice<'a, 'p> {
    product: &'static Product,
    archive: &'a Archive<'p>,
    suites: Vec<Suite>,
    /// The packages listed by the suites, by name, with the index of the suite.
    listed: BTreeMap<String, Vec<(usize, Package)>>,
    /// The packages that were chosen, and where each is unpacked.
    taken: Vec<(Package, PathBuf)>,
}

impl Choice<'_, '_> {
    /// Adds the library's package, those that belong to it, and then packages for everything that
    /// their files need.
    fn complete(&mut self, package: Package) -> Result {
        let version = package.pin.version.clone();
        self.list(self.product.companions.iter().copied().chain(names(&package)))?;
        self.take(package)?;
        for name in self.product.companions {
            let same = |package: &Package| source(&package.pin.version) == source(&version);
            let listed = self.listed.get(*name).into_iter().flatten();
            let found = listed.into_iter().find(|(suite, package)| *suite == 0 && same(package));
            if let Some((_, package)) = found.cloned() {
                self.take(package)?;
            }
        }
        let product = self.product;
        let own = self.taken.iter().enumerate().flat_map(|(index, (_, dir))| {
            let driver = product.driver.and_then(|name| tree::driver(&[dir], name));
            let files = [tree::library(dir, product), driver];
            files.into_iter().flatten().map(move |file| (index, file))
        });
        let mut users: Vec<(usize, PathBuf)> = own.collect();
        let mut seen = BTreeSet::new();
        while let Some((user, file)) = users.pop() {
            let object = ElfFile::open(&file).and_then(|file| file.shared_object());
            for soname in object.map_err(unreadable)?.needed {
                if !needs::is_stood_in(&soname) && seen.insert(soname.clone()) {
                    users.push(self.supply(&soname, user, &file)?);
                }
            }
        }
        Ok(())
    }

    /// Finds the library with that soname, in a chosen package or in one that the package of `file`
    /// depends on.
    fn supply(&mut self, soname: &str, user: usize, file: &Path) -> Result<(usize, PathBuf)> {
        if let Some(found) = self.find(soname) {
            return Ok(found);
        }
        let package = self.taken[user].0.clone();
        self.list(names(&package))?;
        for relation in candidates(&package, soname) {
            let known = |(taken, _): &(Package, PathBuf)| taken.pin.name == relation.name;
            let Some(package) = self.best(relation) else { continue };
            if self.taken.iter().any(known) {
                continue;
            }
            let before = self.taken.len();
            self.take(package)?;
            match self.find(soname) {
                Some(found) => return Ok(found),
                None => self.taken.truncate(before),
            }
        }
        let (file, package) = (file.display(), package.pin.name);
        Err(Error::internal(
            format!(
                "found `{soname}`, which `{file}` needs, in no package that `{package}` depends on"
            ),
            "unpack the library and what it needs into a directory, and name that directory",
        ))
    }

    fn find(&self, soname: &str) -> Option<(usize, PathBuf)> {
        self.taken.iter().enumerate().find_map(|(index, (_, dir))| {
            let mut files = tree::library_dirs(dir).into_iter().map(|dir| dir.join(soname));
            files.find(|file| file.is_file()).map(|file| (index, file))
        })
    }

    fn take(&mut self, package: Package) -> Result {
        let dir = self.archive.unpacked(&package.pin)?;
        self.taken.push((package, dir));
        Ok(())
    }

    /// Reads the suites' entries for packages, all at once.
    fn list<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result {
        let new: BTreeSet<&str> = names.filter(|name| !self.listed.contains_key(*name)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for name in &new {
            self.listed.insert((*name).to_owned(), Vec::new());
        }
        for (index, suite) in self.suites.iter().enumerate() {
            for package in suite.packages(&|name| new.contains(name))? {
                self.listed.entry(package.pin.name.clone()).or_default().push((index, package));
            }
        }
        Ok(())
    }

    /// The package for a relation; if several suites have one that satisfies it, from sid rather
    /// than from experimental.
    fn best(&self, relation: &Relation) -> Option<Package> {
        let listed = self.listed.get(&relation.name)?.iter();
        let fitting = listed.filter(|(_, package)| relation.allows(&package.pin.version));
        fitting.max_by_key(|(suite, _)| *suite).map(|(_, package)| package.clone())
    }
}

/// The names of all dependencies of a package.
fn names(package: &Package) -> impl Iterator<Item = &str> {
    package.depends.iter().flatten().map(|relation| relation.name.as_str())
}

/// The version without the suffix of a rebuild.
///
/// Source: Debian Developer's Reference 5.10.2.1, binary-only uploads.
fn source(version: &str) -> &str {
    match version.rsplit_once("+b") {
        Some((source, rebuild)) if rebuild.bytes().all(|byte| byte.is_ascii_digit()) => source,
        _ => version,
    }
}

/// The dependencies of a package that may contain a library: the one named after the library first,
/// then the C library's, then other libraries.
fn candidates<'a>(package: &'a Package, soname: &str) -> Vec<&'a Relation> {
    let called = package_name(soname);
    let rank = |relation: &&Relation| {
        let name = relation.name.strip_suffix("t64").unwrap_or(&relation.name);
        match name {
            name if called.as_deref() == Some(name) => Some(0),
            "libc6" => Some(1),
            name if name.starts_with("lib") && !name.ends_with("-dev") && !stood_in(name) => {
                Some(2)
            }
            _ => None,
        }
    };
    let relations = package.depends.iter().flatten();
    let mut ranked: Vec<_> = relations.filter_map(|r| Some((rank(&r)?, r))).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, relation)| relation).collect()
}

/// The name of a package with a library of this soname.
///
/// Source: Debian Policy 8.1.
fn package_name(soname: &str) -> Option<String> {
    let (name, version) = soname.split_once(".so.")?;
    let name = name.to_ascii_lowercase().replace('_', "-");
    let dash = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    Some(format!("{name}{dash}{version}"))
}

/// Whether a package contains a library that has a stand-in.
fn stood_in(package: &str) -> bool {
    let end = package.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // The name may itself end in digits, followed by a dash.
    let soname = |name: &str| format!("{}.so", name.replace('-', "_"));
    let (name, dashed) = (soname(end), soname(end.trim_end_matches('-')));
    needs::STOOD_IN.iter().any(|known| {
        let known = known.to_ascii_lowercase().replace('-', "_");
        known == name || known == dashed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_after_their_libraries() {
        let check = |soname: &str, expected: &str| {
            assert_eq!(package_name(soname).as_deref(), Some(expected), "{soname}");
        };
        check("libzstd.so.1", "libzstd1");
        check("libbz2.so.1.0", "libbz2-1.0");
        check("libsqlite3.so.0", "libsqlite3-0");
        check("libstdc++.so.6", "libstdc++6");
        check("libgcc_s.so.1", "libgcc-s1");
        check("libboost_filesystem.so.1.90.0", "libboost-filesystem1.90.0");
        check("libMIOpen.so.1", "libmiopen1");
        assert_eq!(package_name("libx.so"), None);
    }

    #[test]
    fn packages_of_the_gpu_are_left_out() {
        for name in [
            "libamdhip64-6",
            "librocblas5",
            "libroctx64-4",
            "libhiprtc-builtins7",
            "libamd-comgr3",
            "librocrand1",
        ] {
            assert!(stood_in(name), "{name}");
        }
        for name in ["libsqlite3-0", "libc6", "libbz2-1.0", "libgcc-s1", "librocsparse1"] {
            assert!(!stood_in(name), "{name}");
        }
    }

    #[test]
    fn a_rebuild_is_of_the_same_source() {
        assert_eq!(source("6.4.3+dfsg-1+b1"), "6.4.3+dfsg-1");
        assert_eq!(source("7.2.4+dfsg-1"), "7.2.4+dfsg-1");
        assert_eq!(source("1.0+beta-1"), "1.0+beta-1");
    }
}
