//! `repo`: makes a repository from a directory of packages.

use std::path::Path;

use gfxpack_package::repository::{self, Suite};
use gfxpack_package::signing::Signer;
use gfxpack_pipeline::environment::ENVIRONMENT;

use crate::args::Repo;
use crate::context::Context;
use crate::fail::{self, Result};
use crate::output::{display, message};

/// Indexes and signs the directory, and prints how to use the repository.
pub(crate) fn run(args: &Repo, context: &Context) -> Result {
    let Context { output, .. } = context;
    let dir = std::fs::canonicalize(&args.dir).map_err(fail::io("find", &args.dir))?;
    let epoch = ENVIRONMENT.epoch()?;
    let signer = args.sign_key.as_deref().map(|key| Signer::new(key, epoch)).transpose()?;
    let suite = Suite {
        origin: args.origin.clone(),
        suite: args.suite.clone(),
        component: args.component.clone(),
    };
    output.building();
    let indexed = repository::index(&dir, &suite, args.url.as_deref(), signer.as_ref(), epoch)?;
    let key = dir.join(repository::KEY_FILE);
    message!(output, "repository", {
        "directory": display(&dir), "debs": indexed.debs, "rpms": indexed.rpms,
        "left_out": indexed.left_out.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "signed": signer.is_some(), "key": signer.is_some().then(|| display(&key)),
        "sources": indexed.sources, "repo": indexed.repo,
    });
    for path in &indexed.left_out {
        output.warn(&left_out(path));
    }
    if indexed.is_older {
        output.warn(
            "the index has an earlier date than the one before, and apt keeps the later one: set \
             SOURCE_DATE_EPOCH to a later time",
        );
    }
    if let Some(why) = signer.as_ref().and_then(Signer::weakness) {
        output.warn(&why);
    }
    if signer.is_none() {
        output.warn("the repository is not signed: apt and dnf refuse it unless told not to");
    }
    output.info(&format!("indexed {} .deb and {} .rpm packages", indexed.debs, indexed.rpms));
    let file = |name: &String| dir.join(name).display().to_string();
    if let Some(sources) = &indexed.sources {
        output.info(&format!("apt: sudo cp {} /etc/apt/sources.list.d/", file(sources)));
    }
    if let Some(repo) = &indexed.repo {
        output.info(&format!(
            "dnf: sudo cp {0} /etc/yum.repos.d/ (zypper: /etc/zypp/repos.d/)",
            file(repo)
        ));
    }
    Ok(())
}

/// The warning about a file with a package's name that is not a package.
pub(super) fn left_out(path: &Path) -> String {
    format!("`{}` is left out: it can't be read as a package", path.display())
}
