//! Makes packages smaller.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use gfxpack_fatbin::{CodeTarget, Error as CodeError, Slimmer, is_for_others};
use gfxpack_model::{KernelFileFormat, TargetId};
use gfxpack_package::rewrite::{Contents, Package, Rewriter, rename};
use gfxpack_package::sums::digest_file;
use serde_json::json;

use super::{manifest, refuse, report};
use crate::fail::{Result, io, usage};
use crate::output::Output;

/// Bytes that tell what a file is.
const HEAD: u64 = 64;

/// Writes smaller packages, with the code for these GPUs, into the directory `out`, each with a
/// manifest beside it that says what was taken out; without `out`, finds out how small they would
/// be.
///
/// # Errors
/// As [`super::slim`]; and if one needs exactly the version of another that is not given.
pub(super) fn slim(
    from: &[PathBuf],
    out: Option<&Path>,
    targets: &[TargetId],
    output: &Output,
) -> Result {
    let mut packages = Vec::new();
    for path in from {
        packages.push(Package::open(path)?.ok_or_else(|| {
            usage(
                format!(
                    "failed to make `{}` smaller: packages of its kind are not taken",
                    path.display()
                ),
                "unpack it, and give the directory",
            )
        })?);
    }
    let stays = |gpu: &str| {
        CodeTarget::parse(gpu).is_none_or(|code| targets.iter().any(|target| code.serves(target)))
    };
    let suffix = suffix(targets);
    if let Some(path) = from.iter().zip(&packages).find_map(|(path, package)| {
        let of_image = if package.version.is_empty() { &package.name } else { &package.version };
        is_slim(of_image, &suffix).then_some(path)
    }) {
        return Err(usage(
            format!("failed to make `{}` smaller: it was made so for these GPUs", path.display()),
            "leave it out, or give the package that it was made from",
        ));
    }
    rename(&mut packages, &suffix, &stays)?;
    let mut names = BTreeMap::new();
    for (path, package) in from.iter().zip(&packages) {
        let name = package.file_name();
        if let Some(other) = names.insert(name.clone(), path) {
            return Err(usage(
                format!(
                    "failed to write `{name}` of `{}`: that of `{}` has the same name",
                    path.display(),
                    other.display()
                ),
                "give each package once, and those whose names are equal in commands of their own",
            ));
        }
    }
    if let Some(out) = out {
        fs::create_dir_all(out).map_err(io("write", out))?;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for (path, package) in from.iter().zip(&packages) {
        let mut slimmer = Slimmer::new(targets);
        let mut has_kernels = false;
        let mut rewriter = Rewriter {
            takes_out: &|path: &Path| is_for_others(path, targets),
            file: &mut |path, size, bytes| {
                let is_kept = !is_for_others(path, targets);
                has_kernels |= is_kept && KernelFileFormat::of_file_name(path).is_some();
                contents(&mut slimmer, path, size, bytes)
            },
        };
        let written = package.write(out, threads, &mut rewriter);
        refuse(&slimmer, path)?;
        let taken_out = slimmer.changes.iter().filter(|change| change.after.is_none());
        let mut taken_out = taken_out.map(|change| KernelFileFormat::of_file_name(&change.path));
        if !has_kernels && taken_out.any(|format| format.is_some()) {
            if let Some(written) = written? {
                fs::remove_file(&written.path).map_err(io("remove", &written.path))?;
            }
            return Err(usage(
                format!("failed to make `{}` smaller: no kernels would be left", path.display()),
                "leave it out: it is for other GPUs",
            ));
        }
        let mut manifest = manifest(&slimmer, targets);
        let original = digest_file(path)?;
        manifest["from"] = json!({
            "file": original.file_name, "sha256": original.sha256,
            "package": package.name, "version": package.version,
        });
        if let Some(written) = written? {
            manifest["package"] = json!({
                "file": written.file_name, "sha256": written.sha256, "version": package.new_version(),
            });
            let beside = written.path.with_extension("slim.json");
            let text = format!("{manifest:#}\n");
            gfxpack_process::write_output(&beside, |out| out.write_all(text.as_bytes()))
                .map_err(io("write", &beside))?;
        }
        report(path, &slimmer, manifest, output);
    }
    Ok(())
}

/// The end of a version with the code for these GPUs: `+gfx1030.gfx1100`.
fn suffix(targets: &[TargetId]) -> String {
    let word = |target: &TargetId| {
        let text = target.to_string();
        let feature = |part: &str| match part.strip_suffix('-') {
            Some(name) => format!("{name}off"),
            None => part.replace('+', "on"),
        };
        let words = text.split(':').map(feature).map(|part| part.replace('-', "."));
        words.collect::<Vec<_>>().join(".")
    };
    let mut words: Vec<String> = targets.iter().map(word).collect();
    words.sort();
    words.dedup();
    format!("+{}", words.join("."))
}

/// Whether a version ends with what these GPUs' packages have.
fn is_slim(version: &str, suffix: &str) -> bool {
    let local = version.rsplit_once('+').map_or("", |(_, local)| local);
    local.find("gfx").is_some_and(|at| local[at..] == suffix[1..])
}

fn contents<'a>(
    slimmer: &mut Slimmer<'_>,
    path: &Path,
    size: u64,
    bytes: &'a mut dyn Read,
) -> io::Result<Option<Contents<'a>>> {
    if slimmer.takes_out(path, size) {
        return Ok(None);
    }
    let mut head = Vec::new();
    bytes.take(HEAD).read_to_end(&mut head)?;
    if !Slimmer::is_wanted(&head) {
        slimmer.keeps(size);
        return Ok(Some(Contents::same(size, io::Cursor::new(head).chain(bytes))));
    }
    let (mut copy, smaller) = (tempfile::tempfile()?, tempfile::tempfile()?);
    io::copy(&mut head.as_slice().chain(bytes), &mut copy)?;
    match slimmer.file(path, &copy, &smaller) {
        Ok(true) => Contents::smaller(smaller).map(Some),
        // Nothing is written if one is refused.
        Ok(false) if !slimmer.refused.is_empty() => Err(io::ErrorKind::Other.into()),
        Ok(false) => {
            copy.rewind()?;
            Ok(Some(Contents::same(size, copy)))
        }
        Err(CodeError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_the_gpus() {
        let check = |targets: &[&str], expected: &str| {
            let targets: Vec<TargetId> = targets.iter().map(|it| it.parse().unwrap()).collect();
            assert_eq!(suffix(&targets), expected);
        };
        check(&["gfx1100"], "+gfx1100");
        check(&["gfx1100", "gfx1030", "gfx1100"], "+gfx1030.gfx1100");
        check(&["gfx90a:sramecc+:xnack-"], "+gfx90a.srameccon.xnackoff");
        let slim = |version| is_slim(version, "+gfx1030.gfx1100");
        assert!(slim("1.0-1+gfx1030.gfx1100") && slim("1.0+rocm6.4.gfx1030.gfx1100"));
        assert!(!slim("1.0-1") && !slim("1.0+rocm6.4") && !slim("1.0-1+gfx1100"));
        assert!(!is_slim("1.0-1+gfx1030.gfx1100", "+gfx1100"));
    }
}
