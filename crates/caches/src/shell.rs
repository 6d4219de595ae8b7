//! Lines for shells that set and unset variables, and those that move caches.

use crate::cache::Cache;

/// A shell that reads these lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// sh and similar shells: bash, zsh, dash.
    Sh,
    /// fish.
    Fish,
    /// csh and tcsh.
    Csh,
}

impl Shell {
    /// Quotes the text as one literal word.
    pub fn quote(self, text: &str) -> String {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&b);
        if !text.is_empty() && text.bytes().all(plain) {
            return text.to_owned();
        }
        let inner = match self {
            Self::Sh => text.replace('\'', r"'\''"),
            Self::Fish => text.replace('\\', r"\\").replace('\'', r"\'"),
            // csh expands history in single quotes too.
            Self::Csh => text.replace('\'', r"'\''").replace('!', r"\!"),
        };
        format!("'{inner}'")
    }

    /// A line that exports a variable, whose value is a word of this shell.
    pub fn export(self, name: &str, word: &str) -> String {
        match self {
            Self::Sh => format!("export {name}={word}"),
            Self::Fish => format!("set -gx {name} {word}"),
            Self::Csh => format!("setenv {name} {word}"),
        }
    }

    /// A line that removes a variable from the environment.
    pub fn unset(self, name: &str) -> String {
        match self {
            Self::Sh => format!("unset {name}"),
            Self::Fish => format!("set -e {name}"),
            Self::Csh => format!("unsetenv {name}"),
        }
    }
}

/// This process's number on its machine, from the launchers: Slurm, Open MPI,
/// MPICH and its derivatives, torchrun. 0 if there is none.
///
/// Source: Slurm, srun(1); Open MPI, mpirun(1); MPICH, Hydra's wiki; PyTorch,
/// torch/distributed/run.py.
const RANK: &str = "${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-\
                    ${LOCAL_RANK:-0}}}}";

/// The new place of caches as `sh` expands it outside of quotes: `dir`, or below it a directory
/// for each machine and each of its processes.
pub fn destination(dir: &str, per_rank: bool) -> String {
    if per_rank { format!("{dir}/$(uname -n)/rank-{RANK}") } else { dir.to_owned() }
}

impl Shell {
    /// The lines that create the directories of these caches below `dir`, as [`destination`] has it,
    /// and set their variables, each once. Notes on their limits are comments.
    pub fn relocation(self, caches: &[&Cache], dir: &str, per_rank: bool) -> Vec<String> {
        let mut variables: Vec<(&str, &str)> = Vec::new();
        let mut lines = Vec::new();
        for cache in caches {
            if !cache.location_note.is_empty() {
                lines.push(format!("# {}: {}", cache.name, cache.location_note));
            }
            for one in cache.location_variables {
                // Two caches may share a variable.
                if !variables.contains(one) {
                    variables.push(*one);
                }
            }
        }
        if variables.is_empty() {
            return lines;
        }
        let word = self.quote(dir);
        let root = if per_rank {
            let rank = destination("", true);
            lines.push(match self {
                Self::Sh => format!("gfxpack_dir={word}\"{rank}\""),
                Self::Fish => format!("set gfxpack_dir {word}(sh -c 'echo \"{rank}\"')"),
                Self::Csh => format!("set gfxpack_dir = {word}`sh -c 'echo \"{rank}\"'`"),
            });
            "\"$gfxpack_dir\"".to_owned()
        } else {
            word
        };
        let mut made = String::from("mkdir -p --");
        for (_, below) in &variables {
            let directory = match below.rsplit_once('/') {
                Some((directory, file)) if file.contains('.') => directory,
                _ => below,
            };
            made.push_str(&format!(" {root}/{directory}"));
        }
        lines.push(made);
        let export = |(name, below): (&str, &str)| self.export(name, &format!("{root}/{below}"));
        lines.extend(variables.into_iter().map(export));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CACHES;

    #[test]
    fn lines_are_for_the_shell() {
        let wanted = |cache: &&Cache| ["rocfft", "triton"].contains(&cache.name);
        let caches: Vec<&Cache> = CACHES.iter().filter(wanted).collect();
        let lines =
            |dir: &str, per_rank, shell: Shell| shell.relocation(&caches, dir, per_rank).join("\n");
        assert_eq!(
            lines("/my dir", false, Shell::Sh),
            "# rocfft: without the variable it keeps nothing\n\
             mkdir -p -- '/my dir'/rocfft '/my dir'/triton\n\
             export ROCFFT_RTC_CACHE_PATH='/my dir'/rocfft/kernels.db\n\
             export TRITON_CACHE_DIR='/my dir'/triton"
        );
        assert_eq!(
            lines("/d", true, Shell::Sh),
            format!(
                "# rocfft: without the variable it keeps nothing\n\
                 gfxpack_dir=/d\"/$(uname -n)/rank-{RANK}\"\n\
                 mkdir -p -- \"$gfxpack_dir\"/rocfft \"$gfxpack_dir\"/triton\n\
                 export ROCFFT_RTC_CACHE_PATH=\"$gfxpack_dir\"/rocfft/kernels.db\n\
                 export TRITON_CACHE_DIR=\"$gfxpack_dir\"/triton"
            )
        );
        let fish = lines("/d", true, Shell::Fish);
        assert!(fish.contains("\nset -gx TRITON_CACHE_DIR \"$gfxpack_dir\"/triton"), "{fish}");
        let csh = lines("/d", true, Shell::Csh);
        assert!(csh.contains("\nsetenv TRITON_CACHE_DIR \"$gfxpack_dir\"/triton"), "{csh}");
    }

    #[test]
    fn quoted_words_are_literal() {
        assert_eq!(Shell::Sh.quote("/a/b-1.2"), "/a/b-1.2");
        assert_eq!(Shell::Sh.quote(""), "''");
        assert_eq!(Shell::Sh.quote("it's $x"), r"'it'\''s $x'");
        assert_eq!(Shell::Fish.quote(r"it's \x"), r"'it\'s \\x'");
        assert_eq!(Shell::Csh.quote("a!"), r"'a\!'");
        assert_eq!(Shell::Csh.unset("X"), "unsetenv X");
    }
}
