//! `explain`: why a kernel is not found, told by the files that are asked and
//! the keys that come nearest.

mod nearest;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gfxpack_kdb::ReadError;
use gfxpack_runtime::{Environment, KernelCache, KernelKey, Layer, Target};
use serde_json::json;

use super::{kdb, lookup};
use crate::args::{Explain, MaxObject};
use crate::fail::Result;
use crate::output::{Output, shown};

/// Kernel names that are shown where none is the one asked for.
const NAMES: usize = 3;

/// Explains; the kernel may be there after all.
pub(crate) fn run(args: &Explain, output: &Output) -> Result {
    let environment = Environment::read();
    let config = lookup::config(&args.asked, &environment, output)?;
    let target = config.target.clone();
    let cache = KernelCache::open(config);
    let key = KernelKey { kernel_name: args.name.clone(), kernel_args: args.args.clone() };
    let answers = lookup::Answers::ask(&cache, &key);
    if !output.json {
        output.data(&format!("kernel  {key}"));
        output.data(&format!("device  {target}"));
    }
    let asked = cache.files();
    if asked.is_empty() {
        output.warn("no file is asked: `gfxpack env` and `gfxpack doctor` tell why");
    }
    for (layer, file) in &asked {
        print_file(*layer, file, &answers, output);
    }
    if !output.json {
        answers.print(output);
    }
    if answers.runtime.found.is_none() {
        advise(&key, &target, output);
        let (max, mut search) = (args.asked.max_object, Search::new(&key, args.nearest));
        for (_, file) in &asked {
            search.look_into(file, max);
        }
        search.print(output);
        elsewhere(&key, &target, &asked, max, output);
    }
    output.message(
        "explained",
        &json!({
            "kernel_name": key.kernel_name, "kernel_args": key.kernel_args, "target": target,
            "found": answers.miopen_finds(), "miopen": answers.miopen_body(),
            "runtime": answers.runtime_body(),
        }),
    );
    Ok(())
}

/// One file that is asked, and what it answers.
fn print_file(layer: Layer, file: &Path, answers: &lookup::Answers, output: &Output) {
    let answer = &answers.runtime;
    let opened = answers.opens(layer, file);
    let miss = answer.misses.iter().find(|miss| miss.file == file);
    let found = answer.found.as_ref().filter(|found| found.file.as_deref() == Some(file));
    let (state, detail) = match (found, miss) {
        (Some(found), _) => ("has-kernel", format!("has it: {}", lookup::in_words(found))),
        (None, Some(miss)) => (miss.reason.name(), lookup::reason(miss)),
        (None, None) => ("not-asked", "not asked: the kernel was found before".to_owned()),
    };
    let hint = miss.filter(|miss| miss.reason.is_fault()).map(|miss| miss.reason.hint());
    let body = json!({
        "layer": layer.name(), "file": shown(file), "state": state, "detail": detail, "hint": hint,
        "miopen_opens": opened,
    });
    output.message("file", &body);
    if !output.json {
        output.data(&format!("{:<6}  {}", layer.name(), file.display()));
        output.data(&format!("        {detail}"));
        if !opened && state != "no-file" {
            output.data("        MIOpen does not open it");
        }
        if let Some(hint) = hint {
            output.data(&format!("        hint: {hint}"));
        }
    }
}

/// What can be told from the key alone.
fn advise(key: &KernelKey, target: &Target, output: &Output) {
    let processor = target.id().processor();
    let advice = match key.split_device() {
        None if !key.kernel_name.contains(".mlir") => format!(
            "the arguments do not end in ` -mcpu=<device>`, as those of all of MIOpen's kernels \
             do: ` -mcpu={processor}` here"
        ),
        Some((_, device)) if device != processor => {
            format!("the arguments are for {device}, and the device is a {processor}")
        }
        _ if !key.kernel_name.ends_with(".o") => {
            "the name does not end in `.o`, as those of all of MIOpen's kernels do".to_owned()
        }
        _ => return,
    };
    output.message("advice", &json!({ "message": advice }));
    if !output.json {
        output.data(&format!("note    {advice}"));
    }
}

/// The arguments in these files that are nearest to a key's, of the same name.
pub(super) fn nearest_arguments(
    key: &KernelKey,
    files: &[PathBuf],
    max_object: MaxObject,
) -> Option<String> {
    let mut search = Search::new(key, 1);
    files.iter().for_each(|file| search.look_into(file, max_object));
    search.nearest.into_iter().next().map(|(_, args, _)| args)
}

/// The keys nearest to one.
struct Search<'a> {
    key: &'a KernelKey,
    wanted: usize,
    /// Distance, arguments, file; the nearest first, each arguments once.
    nearest: BTreeSet<(usize, String, PathBuf)>,
    /// Kernels of that name in all files.
    of_that_name: u64,
    /// Distance and name, of other kernels.
    names: BTreeSet<(usize, String)>,
}

impl<'a> Search<'a> {
    fn new(key: &'a KernelKey, wanted: usize) -> Self {
        let (nearest, names) = (BTreeSet::new(), BTreeSet::new());
        Self { key, wanted, nearest, of_that_name: 0, names }
    }

    /// Takes in a file; one that can't be read has been told of already.
    fn look_into(&mut self, file: &Path, max_object: MaxObject) {
        let mut last_name = String::new();
        let each = |entry: gfxpack_kdb::RowInfo| {
            let KernelKey { kernel_name, kernel_args } = entry.key;
            if kernel_name == self.key.kernel_name {
                self.of_that_name += 1;
                let distance = nearest::distance(&self.key.kernel_args, &kernel_args);
                if let Some(distance) = distance
                    && !self.nearest.iter().any(|(_, args, _)| *args == kernel_args)
                {
                    self.nearest.insert((distance, kernel_args, file.to_owned()));
                    trim(&mut self.nearest, self.wanted);
                }
            } else if kernel_name != last_name {
                if let Some(distance) = nearest::letters(&self.key.kernel_name, &kernel_name) {
                    self.names.insert((distance, kernel_name.clone()));
                    trim(&mut self.names, NAMES);
                }
                last_name = kernel_name;
            }
            Ok::<(), ReadError>(())
        };
        kdb::open(file, max_object).and_then(|reader| reader.for_each_row(each)).ok();
    }

    fn print(&self, output: &Output) {
        if self.of_that_name == 0 && !self.names.is_empty() {
            let names: Vec<&str> = self.names.iter().map(|(_, name)| name.as_str()).collect();
            output.message("names", &json!({ "nearest": names }));
            if !output.json {
                let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                output.data(&format!(
                    "no kernel is called `{}`; the nearest names are {}",
                    self.key.kernel_name,
                    quoted.join(", ")
                ));
            }
        }
        if !output.json && self.of_that_name > 0 {
            let plural = if self.of_that_name == 1 { "kernel has" } else { "kernels have" };
            output.data(&format!("{} {plural} that name; the nearest:", self.of_that_name));
        }
        for (distance, args, file) in &self.nearest {
            let (asked, stored) = nearest::marked(&self.key.kernel_args, args);
            let body = json!({
                "file": shown(file), "kernel_args": args, "differing_words": distance,
                "asked": asked, "stored": stored,
            });
            output.message("nearest", &body);
            if !output.json {
                let word = if *distance == 1 { "word differs" } else { "words differ" };
                output.data(&format!("{distance} {word} in {}", file.display()));
                output.data(&format!("  asked   {asked}"));
                output.data(&format!("  stored  {stored}"));
            }
        }
    }
}

/// Keeps the smallest.
fn trim<T: Ord>(set: &mut BTreeSet<T>, wanted: usize) {
    while set.len() > wanted {
        set.pop_last();
    }
}

/// kdbs beside those asked that hold the very key, for other compute units or
/// of another version: not asked, and worth knowing.
fn elsewhere(
    key: &KernelKey,
    target: &Target,
    asked: &[(Layer, PathBuf)],
    max_object: MaxObject,
    output: &Output,
) {
    for file in neighbours(asked) {
        let serves = target_of(&file).filter(|other| other.id().serves(target.id()));
        if serves.is_none() || asked.iter().any(|(_, known)| *known == file) {
            continue;
        }
        let has = kdb::open(&file, max_object).and_then(|reader| reader.get(key));
        if matches!(has, Ok(Some(_))) {
            output.message("elsewhere", &json!({ "file": shown(&file), "target": serves }));
            if !output.json {
                output.data(&format!(
                    "note    {} has this very key, and is not asked for {target}",
                    file.display()
                ));
            }
        }
    }
}

/// The kdbs in the directories of those asked, and, for the user's, in those
/// of other versions.
fn neighbours(asked: &[(Layer, PathBuf)]) -> BTreeSet<PathBuf> {
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    for (layer, file) in asked {
        let Some(directory) = file.parent() else { continue };
        directories.insert(directory.to_owned());
        if *layer == Layer::User
            && let Some(versions) = directory.parent()
        {
            directories.extend(list(versions).filter(|path| path.is_dir()));
        }
    }
    directories.iter().flat_map(|directory| list(directory)).filter(|p| p.is_file()).collect()
}

/// What is in a directory; nothing where it can't be read.
pub(super) fn list(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// The target that a kdb's or ukdb's name says.
pub(super) fn target_of(file: &Path) -> Option<Target> {
    let extension = file.extension()?;
    (extension == "kdb" || extension == "ukdb").then_some(())?;
    file.file_stem()?.to_str()?.parse().ok()
}
