//! Everything that can affect an object does: after any change, a build with the same cache gives
//! the same objects as a build with a new one, by every route, and the same as compilers started by
//! hand in the directory of the sources.
//!
//! The cases are data, in the files beside this one: a source, the files that it may read, the
//! changes, and the results before and after. How else a source may spell what it reads, the tests of
//! `crates/plan/src/include.rs` show.

mod cases;
mod library;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use cases::{Kernel, Right};
use library::{Library, Outcome};

/// The way without gfxpack.
const BY_HAND: &str = "after, by hand";

/// What came of the kernels in each of several ways.
type Rounds = BTreeMap<String, Outcome>;

#[test]
fn only_files_that_matter_are_read_and_every_change_counts() {
    let library = Library::of_hipcc(kernels(None));
    let before = [("before".to_owned(), library.build(("auto", "2"), "cache").0)];
    library.change();
    let (stored, trace) = library.trace_stored("new");
    let after = [
        ("after, with its cache".to_owned(), library.build(("hipcc", "2"), "cache").0),
        ("after, by a stored plan with a new cache".to_owned(), stored),
        (BY_HAND.to_owned(), library.plain(true)),
    ];
    check(&library, &before.into(), after.into());

    // A link is a source, whatever it leads to.
    let may_read = |kernel: &&Kernel| {
        kernel.right(true) == Right::ReadsOutside || kernel.has_link_to_outside()
    };
    let may_read: BTreeSet<String> =
        library.kernels.iter().filter(may_read).map(|kernel| kernel.name.clone()).collect();
    assert!(trace.read.is_subset(&may_read), "{:?}", trace.read.difference(&may_read));
    assert!(trace.written.is_empty(), "{:?}", trace.written);
}

#[test]
fn files_that_only_a_newer_clang_reads_count_too() {
    let library = Library::of_newer_clang(kernels(Some(19)));
    let before = [("before".to_owned(), library.build(("auto", "2"), "cache").0)];
    library.change();
    let after = [
        ("after, with its cache".to_owned(), library.build(("auto", "2"), "cache").0),
        (BY_HAND.to_owned(), library.plain(true)),
    ];
    check(&library, &before.into(), after.into());
}

/// The kernels that need this clang; `None` for the default one.
fn kernels(clang: Option<u32>) -> Vec<Kernel> {
    cases::kernels().into_iter().filter(|kernel| kernel.case.clang == clang).collect()
}

/// Holds what came of the kernels against what is right, and looks whether all
/// objects are in the cache by now.
#[track_caller]
fn check(library: &Library, before: &Rounds, mut after: Rounds) {
    let (again, compiled) = library.build(("auto", "1"), "cache");
    after.insert("after, once more".to_owned(), again);
    let wrong = library.kernels.iter().map(|kernel| wrong(kernel, before, &after));
    let wrong: Vec<String> = wrong.flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compiled.is_empty(), "not in the cache though nothing changed: {compiled:?}");
}

/// What is not as its case says.
fn wrong(kernel: &Kernel, before: &Rounds, after: &Rounds) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut objects = Vec::new();
    for (rounds, changed) in [(before, false), (after, true)] {
        let right = kernel.right(changed);
        let mut first = None;
        for (round, outcome) in rounds {
            // By hand, nothing is made of what has no object.
            let Some(outcome) = outcome.get(&kernel.name) else { continue };
            let is_right = match (right, outcome) {
                (Right::Object | Right::Hidden, Ok(object)) => {
                    first.get_or_insert(object) == &object
                }
                (Right::Refused, Err(reason)) => reason == "refused",
                // The compiler says that there is no such file.
                (Right::ReadsOutside, Err(reason)) => {
                    ["reads-outside", "refused"].contains(&reason.as_str())
                }
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{}: {outcome:?} {round}", kernel.name));
            }
        }
        objects.extend(first);
    }
    if let [before, after] = objects[..]
        && (before == after) != kernel.case.same
    {
        wrong.push(format!("{}: {before} before, {after} after", kernel.name));
    }
    wrong
}
