//! Loads the library behind the stand-ins, and warms it up. Holds its objects.

use core::ffi::{c_int, c_void};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use gfxpack_standin::KernelDatabases;

use crate::convolution::Convolution;
use crate::find_db::FindDb;
use crate::miopen::{DirectionApi, MiOpen, Object};
use crate::notes;
use crate::protocol::{Answer, failed};
use crate::settings::{Settings, Solvers};
use crate::steps::{self, Step};
use crate::withheld::Withheld;

/// After this many numbers in a row that belong to no solver, there are no more; each costs an
/// exception.
const UNUSED_SOLVER_IDS: u64 = 100;

/// Each step that needs a handle has one of its own, since a handle looks a kernel up only once.
const HANDLES: usize = 3;

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) api: MiOpen,
    /// The functions for each direction, in their order.
    pub(crate) directions: [DirectionApi; 3],
    pub(crate) handles: Vec<Object>,
    pub(crate) find_db: Option<FindDb>,
    pub(crate) limit: Duration,
    pub(crate) real_kernels: bool,
    pub(crate) withheld: &'static Withheld,
    /// Directories that the library created in the user's directory. It then assumes that they
    /// exist, even in another user directory.
    pub(crate) made: Vec<PathBuf>,
}

impl Loaded {
    /// Loads the library, and lets it read the files that it reads once.
    pub(crate) fn load(settings: Settings) -> Result<Self, Answer> {
        let find_db = settings.find_db.as_deref().map(FindDb::open).transpose();
        let find_db = find_db.map_err(|error| failed(format!("find database: {error}")))?;
        gfxpack_standin::simulate_gpu(settings.gpu.clone());
        gfxpack_standin::set_recorder(notes::record);
        let library = load_all(&settings).map_err(failed)?;
        let missing = |symbol: String| vec![b"missing".to_vec(), symbol.into_bytes()];
        let api = MiOpen::find(library, "").map_err(missing)?;
        let of = |direction| DirectionApi::find(library, direction).map_err(missing);
        let directions = [of("Forward")?, of("BackwardData")?, of("BackwardWeights")?];
        choose(&settings.solvers, &api);
        let mut loaded = Self {
            api,
            directions,
            handles: Vec::new(),
            find_db,
            limit: settings.limit,
            real_kernels: settings.real_kernels,
            withheld: Box::leak(Box::new(settings.withheld)),
            made: Vec::new(),
        };
        let problem =
            settings.warm_up.ok_or_else(|| failed("there is no problem to warm up with"))?;
        let warmed_up = loaded.warm_up(&problem, &settings.solvers);
        warmed_up.map_err(|error| failed(error.to_string()))?;
        // Kernels for warming up may come from the stand-in; those of requests may not.
        if loaded.real_kernels {
            gfxpack_standin::kernel_databases(KernelDatabases::Real);
        }
        Ok(loaded)
    }

    /// Runs the steps of requests with a problem, so that files that are read or created once exist
    /// before processes are forked, and what a solver decides once is decided.
    fn warm_up(&mut self, problem: &Convolution, solvers: &Solvers) -> io::Result<()> {
        let steps: &[Step] = if *solvers == Solvers::Natural {
            &[Step::Mode(5), Step::Unprepared]
        } else {
            &[Step::Search, Step::Immediate]
        };
        self.make_handles();
        fs::create_dir("warm-up")?;
        env::set_current_dir("warm-up")?;
        steps::run(self, problem, steps);
        self.made = directories()?;
        env::set_current_dir("..")?;
        fs::remove_dir_all("warm-up")?;
        for handle in self.handles.drain(..) {
            // SAFETY: the library created the handle, and it is not used any more.
            unsafe { (self.api.destroy)(handle) };
        }
        self.make_handles();
        Ok(())
    }

    /// Creates a directory that the library takes for the user's.
    pub(crate) fn make_directory(&self, name: &str) -> io::Result<()> {
        fs::create_dir(name)?;
        self.made.iter().try_for_each(|made| fs::create_dir(Path::new(name).join(made)))
    }

    fn make_handles(&mut self) {
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

fn directories() -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(".")? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.file_name().into());
        }
    }
    Ok(found)
}

/// Makes searches try the wanted solvers. The library reads this at its first search.
fn choose(solvers: &Solvers, api: &MiOpen) {
    let list = match solvers {
        Solvers::Natural => return,
        Solvers::Only(name) => name.to_string_lossy().into_owned(),
        Solvers::All => {
            let (mut ids, mut id, mut last) = (Vec::new(), 1, 0);
            while id - last <= UNUSED_SOLVER_IDS {
                let mut algorithm: c_int = 0;
                // SAFETY: the number is written to a valid place.
                if unsafe { (api.algorithm_of_solver)(id, &raw mut algorithm) } == 0 {
                    ids.push(id.to_string());
                    last = id;
                }
                id += 1;
            }
            ids.join(";")
        }
    };
    gfxpack_standin::make_each_solver_faster();
    // SAFETY: this process has one thread.
    unsafe { env::set_var("MIOPEN_DEBUG_FIND_ONLY_SOLVER", list) };
}

/// Loads the library, after the empty libraries and the real SQLite.
pub(crate) fn load_all(settings: &Settings) -> Result<*mut c_void, String> {
    for stub in &settings.stubs {
        load(stub)?;
    }
    if let Some(sqlite) = &settings.sqlite {
        gfxpack_standin::load_sqlite(sqlite)?;
    }
    load(&settings.library)
}

/// Loads a library so that later ones use its symbols.
fn load(path: &Path) -> Result<*mut c_void, String> {
    gfxpack_standin::load_library(path, libc::RTLD_NOW | libc::RTLD_GLOBAL)
}
