//! Exports a stored plan as build.ninja: one edge per job, one that writes the
//! manifest, and one that makes the kdbs.

use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_compile::STORE_VERSION;
use gfxpack_plan::plan::Plan;
use gfxpack_plan::shard::{Shard, ShardManifest};
use gfxpack_plan::stored::Jobs;
use gfxpack_toolchain::Search;

use super::script_args::{compiler_options, text};
use super::stored::Stored;
use crate::destination::replace;
use crate::error::{self, Result};

/// The directory of the kdbs, beside the objects.
const KDBS: &str = "merged";

/// Writes `build.ninja` for a stored plan into `out`, and returns the number of
/// jobs. The jobs use the toolchains of `search`, and may also read `allow_read`.
///
/// # Errors
/// If the plan can't be read, or the file can't be written.
pub fn write(plan: &Path, out: &Path, search: &Search, allow_read: &[PathBuf]) -> Result<usize> {
    let stored = Stored::open(plan)?;
    let plan = stored.load(&Jobs::All)?;
    fs::create_dir_all(out).map_err(error::io("create", out))?;
    let program = std::env::current_exe().map_err(error::io("find", Path::new("gfxpack")))?;
    let dir = fs::canonicalize(stored.dir()).map_err(error::io("find", stored.dir()))?;
    let options = compiler_options(search, allow_read)?;
    let options = shlex::try_join(options.iter().map(String::as_str))?;
    let ninja = build_ninja(&text(&program)?, &text(&dir)?, &options, &plan);
    let path = out.join("build.ninja");
    replace(&path, ninja)?;
    Ok(plan.jobs.len())
}

/// An argument of a command, quoted for ninja and the shell that it starts.
fn word(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), |quoted| quoted.replace('$', "$$"))
}

fn build_ninja(program: &str, dir: &str, options: &str, plan: &Plan) -> String {
    let manifest = ShardManifest::file_name(Shard::new(1, 1).expect("one of one"));
    let options = options.replace('$', "$$");
    let (program, plan_word) = (word(program), word(dir));
    let mut out = format!(
        "# Written by `gfxpack export ninja`. Objects are named by all that decides them, so an\n\
         # edge is done once its file is there; `ninja -k 0` goes on after a kernel is refused.\n\
         # The last two always run: they see what no file's time tells, such as another plan.\n\
         ninja_required_version = 1.5\n\
         rule job\n  command = {program} exec-job --plan {plan_word} --out . $job {options}\n  \
         description = $kernel\n\
         rule shard\n  command = {program} build --plan {plan_word} --shard 1/1 --out . {options}\n  \
         description = summing up\n\
         rule merge\n  command = {program} merge --plan {plan_word} --out {KDBS} .\n  \
         description = assembling kdbs\n"
    );
    let mut objects = String::new();
    for job in &plan.jobs {
        let digest = job.digest.to_string();
        let object = format!("{STORE_VERSION}/objects/{}/{digest}", &digest[..2]);
        let (kernel, target) = (job.key.kernel_name.replace('$', "$$"), &job.target_id);
        out += &format!("build {object}: job\n  job = {digest}\n  kernel = {kernel} {target}\n");
        objects += &format!(" {object}");
    }
    out + &format!(
        "build gfxpack-runs-always: phony\nbuild {manifest}: shard | gfxpack-runs-always{objects}\n\
         build {KDBS}/manifest.json: merge {manifest}\ndefault {KDBS}/manifest.json\n"
    )
}
