//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of compilers. Programs inherit the limit, and some close that many files
/// one by one.
const MANY: u64 = 1 << 16;

/// Raises this process's limit of open files to the hard limit, but to 65,536 at most.
pub fn open_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
    if current.is_some_and(|current| current < wanted) {
        // If this is refused, opening too many files fails later.
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised() {
        let Rlimit { current: before, maximum } = getrlimit(Resource::Nofile);
        open_many();
        let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
        let now = getrlimit(Resource::Nofile).current;
        assert_eq!(now, before.map(|before| before.max(wanted)));
    }
}
