//! The loaded library, with its objects.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use crate::convolution::Convolution;
use crate::find_db::FindDb;
use crate::miopen::{DirectionApi, MiOpen, Object};
use crate::step::Step;
use crate::withheld::Withheld;

/// A loaded library.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) api: MiOpen,
    /// The functions for each direction, in their order.
    pub(crate) directions: [DirectionApi; 3],
    pub(crate) handles: Vec<Object>,
    pub(crate) find_db: Option<FindDb>,
    pub(crate) stems: Vec<(Vec<Step>, Convolution)>,
    pub(crate) limit: Duration,
    pub(crate) real_kernels: bool,
    pub(crate) withheld: &'static Withheld,
    /// Directories that the library created in the user's directory. It then assumes that they
    /// exist, even in another user directory.
    pub(crate) made: Vec<PathBuf>,
}

/// Each step that needs a handle has one of its own, since a handle looks a kernel up only once.
const HANDLES: usize = 3;

impl Loaded {
    /// Calls a function in a directory of its own, which the library takes for the user's.
    pub(crate) fn in_directory(&self, name: &str, act: impl FnOnce()) -> io::Result<()> {
        self.make_directory(name)?;
        env::set_current_dir(name)?;
        act();
        env::set_current_dir("..")?;
        fs::remove_dir_all(name)
    }

    /// Creates a directory that the library takes for the user's.
    pub(crate) fn make_directory(&self, name: &str) -> io::Result<()> {
        fs::create_dir(name)?;
        self.made.iter().try_for_each(|made| fs::create_dir(Path::new(name).join(made)))
    }

    pub(crate) fn make_handles(&mut self) {
        self.handles = (0..HANDLES).map(|_| self.new_handle()).collect();
    }

    /// A handle that has loaded no kernels.
    pub(crate) fn new_handle(&self) -> Object {
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is written to a valid place. If the library creates none, it is null,
        // which the library refuses in every other call.
        unsafe { (self.api.create)(&raw mut handle) };
        handle
    }

    /// The library's version: `3.4.0`.
    pub(crate) fn version(&self) -> String {
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: the numbers are written to valid places.
        unsafe { (self.api.version)(&raw mut major, &raw mut minor, &raw mut patch) };
        format!("{major}.{minor}.{patch}")
    }
}
