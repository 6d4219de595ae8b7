//! How many files may be open at a time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for thousands of compilers. Programs that are started inherit it, and
/// some close as many files one by one.
const MANY: u64 = 1 << 16;

/// Raises how many files this process may have open, to the hard limit,
/// 65,536 at most.
pub fn open_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
    if current.is_some_and(|current| current < wanted) {
        // Where that is refused, the file that is one too many tells.
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_may_be_open_as_everybody_may_have() {
        let Rlimit { current: before, maximum } = getrlimit(Resource::Nofile);
        open_many();
        let wanted = maximum.map_or(MANY, |maximum| maximum.min(MANY));
        let now = getrlimit(Resource::Nofile).current;
        assert_eq!(now, before.map(|before| before.max(wanted)));
    }
}
