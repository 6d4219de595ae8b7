//! `repo`: makes a directory of packages a repository.

use std::path::Path;

use gfxpack_package::repository::{self, Suite};
use gfxpack_package::signing::Signer;
use serde_json::json;

use crate::args::Repo;
use crate::environment::Environment;
use crate::fail;
use crate::output::Output;

/// Indexes and signs, and says how the repository is used.
pub(crate) fn run(args: &Repo, environment: &Environment, output: &Output) -> anyhow::Result<()> {
    let dir = std::fs::canonicalize(&args.dir).map_err(fail::io("find", &args.dir))?;
    let epoch = environment.epoch()?;
    let signer = args.sign_key.as_deref().map(|key| Signer::new(key, epoch)).transpose()?;
    let suite = Suite {
        origin: args.origin.clone(),
        suite: args.suite.clone(),
        component: args.component.clone(),
    };
    output.building();
    let indexed = repository::index(&dir, &suite, signer.as_ref(), epoch)?;
    let shown = dir.display();
    let key = dir.join(repository::KEY_FILE);
    let body = json!({
        "directory": crate::output::shown(&dir), "debs": indexed.debs, "rpms": indexed.rpms,
        "left_out": indexed.left_out.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "signed": signer.is_some(), "key": signer.is_some().then(|| crate::output::shown(&key)),
    });
    output.message("repository", &body);
    for path in &indexed.left_out {
        output.warn(&left_out(path));
    }
    if signer.is_none() {
        output.warn("the repository is not signed: apt and dnf refuse it unless told not to");
    }
    output.say(&format!("indexed {} .deb and {} .rpm packages", indexed.debs, indexed.rpms));
    if indexed.debs > 0 {
        let trust = match &signer {
            Some(_) => format!("signed-by={}", key.display()),
            None => "trusted=yes".to_owned(),
        };
        let Suite { suite, component, .. } = &suite;
        output.say(&format!("apt: deb [{trust}] file:{shown} {suite} {component}"));
    }
    if indexed.rpms > 0 {
        let trust = match &signer {
            Some(_) => format!("gpgkey=file://{}", key.display()),
            None => "gpgcheck=0".to_owned(),
        };
        output.say(&format!("dnf: baseurl=file://{shown}, {trust}"));
    }
    Ok(())
}

/// What is said of a file that is called a package and is none.
pub(super) fn left_out(path: &Path) -> String {
    format!("`{}` is left out: it can't be read as a package", path.display())
}
