//! Checks those parts of a stored plan that its digests do not protect: the writer could write any
//! header with correct digests.

use gfxpack_model::compiler::is_of_clock;
use gfxpack_model::{Error, relative_path};

use super::lines::{Beside, Group, Header, Rows, damaged};
use crate::arguments;
use crate::clock::Clock;
use crate::options;
use crate::plan::Source;

/// Checks that a header refers only to its own content, names no path outside of the directories of
/// staged sources, and gives compilers only arguments of a plan made by gfxpack.
pub(super) fn check<A>(header: &Header<A>) -> Result<(), Error> {
    let groups = header.groups.iter().all(|group| {
        group.source.0 < header.sources.len() && group.toolchain.0 < header.toolchains.len()
    });
    let rows = header.kdbs.iter().all(|kdb| {
        kdb.toolchain.0 < header.toolchains.len()
            && kdb.rows.iter().all(|rows| match rows {
                Rows::Run(first, count) => {
                    first.0.checked_add(*count).is_some_and(|end| end <= header.jobs)
                }
                Rows::Other(job, ..) => job.0 < header.jobs,
            })
    });
    if !(groups && rows) {
        return Err(damaged("it refers to what is not in it"));
    }
    if let Some(source) = header.sources.iter().find(|source| !is_sound(source)) {
        return Err(damaged(format!(
            "source `{}` has a path that leads out of it, or is not in plain form",
            source.name
        )));
    }
    let is_beside = |it: &Beside| {
        let files = it.files.iter();
        let same = files.clone().filter_map(|file| file.same_as.as_ref());
        let paths = files.map(|file| &file.path).chain(same).chain(&it.dirs);
        paths.chain(it.links.keys()).all(|path| is_below(path))
            && it.links.values().all(|to| is_plain(to))
    };
    if header.beside.len() != header.sources.len() || !header.beside.iter().all(is_beside) {
        return Err(damaged(
            "the files beside its sources have a path that leads out of them, or is not in plain \
             form",
        ));
    }
    match header.groups.iter().find(|group| !has_own_arguments(header, group)) {
        Some(Group { kernel_name, .. }) => Err(damaged(format!(
            "the arguments of `{kernel_name}` are not those that this gfxpack gives"
        ))),
        None => Ok(()),
    }
}

/// Whether a path is relative and consists of names only.
fn is_plain(path: &str) -> bool {
    relative_path::join("", path).as_deref() == Some(path)
}

fn is_below(path: &str) -> bool {
    is_plain(path) && !path.is_empty()
}

/// Whether a source stays below the directory in which it is staged, and compilers take its paths
/// for paths.
fn is_sound(source: &Source) -> bool {
    let Source { main, include_dirs, files, dirs, links, .. } = source;
    let is_earlier = |other: &String, digest| {
        files.iter().any(|file| file.path == *other && file.digest == digest)
    };
    files.is_sorted_by(|a, b| a.path < b.path)
        && files.iter().all(|file| {
            let same = file.same_as.as_ref();
            is_below(&file.path)
                && same.is_none_or(|other| *other < file.path && is_earlier(other, file.digest))
        })
        && files.iter().any(|file| file.path == *main)
        && include_dirs.iter().all(|dir| dir == "." || is_below(dir))
        && dirs.iter().all(|dir| is_below(dir))
        && links.iter().all(|(from, to)| is_below(from) && is_plain(to))
        && arguments::check_paths(main, include_dirs).is_ok()
}

/// Whether the arguments around a group's options are those of a plan made by gfxpack, except for
/// the time of its clock.
fn has_own_arguments<A>(header: &Header<A>, group: &Group) -> bool {
    let Source { main, include_dirs, .. } = &header.sources[group.source.0];
    let facts = &header.toolchains[group.toolchain.0].toolchain.facts;
    let (language, clock) = (group.language, Clock::at(0));
    // A key's own standard replaces the usual one.
    ["-std=c++17", ""].into_iter().any(|standard| {
        let options = [standard.to_owned()];
        let (program, [before, after]) = arguments::around_options(
            language,
            &options,
            &group.target_id,
            facts,
            main,
            include_dirs,
            &clock,
        );
        let is_same = |(word, own): (&String, &String)| {
            word == own
                || is_of_clock(word) && is_of_clock(own) && options::known(&[word]).is_some()
        };
        (program, before) == (group.program, group.before.clone())
            && after.len() == group.after.len()
            && group.after.iter().zip(&after).all(is_same)
    })
}
