//! Moves caches: the lines that a shell reads for it.

use crate::cache::{Cache, LocationVariable};
use crate::shell::Shell;

/// This process's number on its machine, from the launchers: Slurm, Open MPI,
/// MPICH and its derivatives, torchrun. 0 if there is none.
///
/// Source: Slurm, srun(1); Open MPI, mpirun(1); MPICH, Hydra's wiki; PyTorch,
/// torch/distributed/run.py.
const RANK: &str = "${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-\
                    ${LOCAL_RANK:-0}}}}";

/// The new place of caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The directory: absolute.
    pub dir: String,
    /// Whether each machine and each of its processes gets its own directory
    /// below it, created when the shell reads the lines.
    pub per_rank: bool,
}

impl Destination {
    /// The directory as `sh` expands it outside of quotes.
    #[must_use]
    pub fn root(&self) -> String {
        if self.per_rank {
            format!("{}/$(uname -n)/rank-{RANK}", self.dir)
        } else {
            self.dir.clone()
        }
    }

    /// The lines that create the directories and set the variables of these
    /// caches, each variable once. Notes on their limits are comments.
    #[must_use]
    pub fn lines(&self, caches: &[&Cache], shell: Shell) -> Vec<String> {
        let mut location_variables: Vec<LocationVariable> = Vec::new();
        let mut lines = Vec::new();
        for cache in caches {
            if !cache.location_note.is_empty() {
                lines.push(format!("# {}: {}", cache.name, cache.location_note));
            }
            for one in cache.location_variables {
                // Two caches may share a variable.
                if !location_variables.contains(one) {
                    location_variables.push(*one);
                }
            }
        }
        if location_variables.is_empty() {
            return lines;
        }
        let dir = shell.quote(&self.dir);
        let root = if self.per_rank {
            lines.push(shell.local("gfxpack_dir", &dir, &format!("/$(uname -n)/rank-{RANK}")));
            shell.value_of("gfxpack_dir")
        } else {
            dir
        };
        let mut made = String::from("mkdir -p --");
        for one in &location_variables {
            made.push_str(&format!(" {root}/{}", one.directory()));
        }
        lines.push(made);
        lines.extend(location_variables.iter().map(|one| {
            let value = format!("{root}/{}", one.below);
            shell.export(one.name, &value)
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::CACHES;
    use crate::user_environment::UserEnvironment;

    #[test]
    fn the_variables_move_every_place_of_every_cache() {
        for cache in &CACHES {
            let set =
                cache.location_variables.iter().map(|one| (one.name, format!("/to/{}", one.below)));
            let variables = [("HOME", "/h".to_owned()), ("USER", "ada".to_owned())];
            let moved = UserEnvironment::new(variables.into_iter().chain(set), None);
            let directories = cache.directories(&moved);
            assert!(!directories.is_empty(), "{}", cache.name);
            for directory in &directories {
                // Locks stay in the place in which all processes of a machine
                // look for them.
                let locks = directory.dir.ends_with("miopen-lockfiles");
                assert!(locks || directory.dir.starts_with("/to"), "{}: {directory:?}", cache.name);
            }
        }
    }

    #[test]
    fn lines_are_for_the_shell() {
        let wanted = |cache: &&Cache| ["rocfft", "triton"].contains(&cache.name);
        let caches: Vec<&Cache> = CACHES.iter().filter(wanted).collect();
        let lines = |dir: &str, per_rank, shell| {
            Destination { dir: dir.to_owned(), per_rank }.lines(&caches, shell).join("\n")
        };
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
}
