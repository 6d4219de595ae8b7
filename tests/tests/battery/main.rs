//! What can decide an object does: after any change, a build with the same
//! cache makes what a build with a new one makes, by every route, and what the
//! compilers make that are started by hand in the directory of the sources.
//!
//! The cases are data, in the files beside this one: a source, the files that
//! it may read, what changes, and what comes of it before and after.

mod cases;
mod library;

use std::collections::BTreeMap;

use cases::{Kernel, Right};
use library::{Library, Outcome};

/// A route with as many compilers at once; its cache goes by its name.
const ROUTES: [(&str, &str); 3] = [("auto", "2"), ("direct", "1"), ("hipcc", "2")];

/// What came of the kernels in each of several ways.
type Rounds = BTreeMap<String, Outcome>;

#[test]
fn what_changed_decides_with_an_old_cache_as_with_a_new_one() {
    let default = |kernel: &Kernel| kernel.case.clang.is_none();
    let library = Library::of_hipcc(cases::kernels().into_iter().filter(default).collect());
    check(&library, &ROUTES);
}

#[test]
fn what_a_newer_clang_alone_reads_decides_too() {
    let newer = |kernel: &Kernel| kernel.case.clang == Some(19);
    let kernels: Vec<_> = cases::kernels().into_iter().filter(newer).collect();
    let compiler = ["--clang", "clang-19"].map(str::to_owned).to_vec();
    check(&Library::of_compiler(kernels, compiler), &ROUTES[..1]);
}

fn check(library: &Library, routes: &[(&str, &str)]) {
    let all = |when: &str| -> Rounds {
        let build = |(via, jobs): &(&str, &str)| {
            (format!("{when} by {via}"), library.build(via, jobs, via).0)
        };
        routes.iter().map(build).collect()
    };
    let mut before = all("before");
    before.insert("before, by hand".to_owned(), library.plain(false));
    library.change();
    let mut after = all("after");
    after.insert("after, by hand".to_owned(), library.plain(true));
    let (fresh, _) = library.build("auto", "1", "new");
    after.insert("after, with a new cache".to_owned(), fresh);
    let (again, compiled) = library.build("auto", "2", "auto");
    after.insert("after, once more".to_owned(), again);

    let wrong = library.kernels.iter().map(|kernel| wrong(kernel, &before, &after));
    let wrong: Vec<String> = wrong.flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compiled, 0, "what did not change is in the cache");
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
                (Right::Object, Ok(object)) => first.get_or_insert(object) == &object,
                (Right::Refused, Err(reason)) => reason == "refused",
                (Right::ReadsOutside, Err(reason)) => reason == "reads-outside",
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
