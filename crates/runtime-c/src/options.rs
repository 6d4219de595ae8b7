//! How to open a cache; each option has a setter, so that more can be added.
#![expect(unsafe_code, reason = "exports functions that take handles and texts")]

use std::ffi::{c_char, c_void};
use std::path::PathBuf;
use std::time::Duration;

use gfxpack_runtime::{
    Config, DirectoryOptions, Environment, KdbDirectories, LookupOrder, Target, UserDirectory,
    WarningSink,
};

use crate::boundary::{call, hand_out, take_back};
use crate::failure::Failure;
use crate::status::Status;
use crate::text::{path, required};
use crate::warning::{WarningFn, sink};

/// How to open a cache.
///
/// The caller owns it and frees it with gfxpack_options_free(), at any time:
/// caches keep copies of what they need. One thread at a time may use it.
#[derive(Debug)]
pub struct Options {
    /// Without what the environment says when a cache is opened.
    config: Config,
    directory_options: DirectoryOptions,
    /// Whether the directories are those of `config`, not those of the environment and
    /// `directory_options`.
    has_directories: bool,
    log_level: Option<u8>,
    warns: bool,
}

/// Which layer is searched first.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The installed kdb, then the user's, as in MIOpen's documentation. The
    /// default.
    SystemFirst = 0,
    /// The user's, then the installed one, as in MIOpen's code.
    UserFirst = 1,
}

/// Paths for gfxpack_options_set_path().
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The directory of installed kdbs, unless MIOPEN_SYSTEM_DB_PATH names
    /// another. Absolute.
    SystemDir = 0,
    /// The loaded library's path, absolute: installed kdbs are in
    /// ../share/miopen/db relative to its directory.
    Library = 1,
    /// The user cache's directory as the program was built with; a leading ~ is
    /// the home directory, empty means no user cache. Default:
    /// "~/.cache/miopen/".
    BuildTimeCacheDir = 2,
    /// The user cache's sub-directory: "3.4.0." for MIOpen 3.4.0. Default: the
    /// library's own version.
    Version = 3,
    /// The directory that contains the ROCm prefixes. Default: "/".
    Root = 4,
}

/// Flags for gfxpack_options_set_flag().
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// Keeps hits in memory, so that repeated lookups read no file. Default:
    /// off.
    KeepHits = 0,
    /// Creates, changes and moves nothing on disk. A user kdb that can't be
    /// read this way, because a write to it was interrupted, is a miss.
    /// Default: off.
    LookOnly = 1,
    /// Reports warnings. Default: on.
    Warn = 2,
}

/// Limits for gfxpack_options_set_limit().
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Size of one user kdb, in bytes. The least recently used kernels are
    /// deleted first.
    UserCacheBytes = 0,
    /// Size of the code objects kept in memory, in bytes.
    MemoryBytes = 1,
    /// How long one call waits in total for a user kdb that another process has
    /// locked, in milliseconds. After a wait without success, no call waits for
    /// this file for a minute, unless it turns out to be free.
    BusyWaitMs = 2,
    /// How long to wait for another thread or process that compiles the same
    /// key, before compiling it too, in milliseconds.
    CompileWaitMs = 3,
}

impl Options {
    fn new(target: Target) -> Self {
        Self {
            config: Config::new(target, directories(None, None)),
            directory_options: DirectoryOptions::default(),
            has_directories: false,
            log_level: None,
            warns: true,
        }
    }

    /// The configuration for the cache, with the present environment.
    pub(crate) fn config(&self) -> Config {
        let environment = Environment::read();
        let mut config = self.config.clone();
        if self.has_directories {
            config.directories.temp_dir = environment.temp_dir();
        } else {
            config.directories = KdbDirectories::resolve(&environment, &self.directory_options);
        }
        config.log_level = self.log_level.unwrap_or_else(|| environment.log_level());
        if !self.warns {
            config.warnings = WarningSink::Silent;
        }
        config
    }
}

/// Creates options for a device, with all defaults.
///
/// `target` has the form "gfx90a@104", "gfx90a:xnack+@104" or, for all numbers
/// of compute units, "gfx90a"; gfxpack_device_target() returns it. `out`
/// receives options that the caller owns, or null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_new(
    target: *const c_char,
    out: *mut *mut Options,
) -> Status {
    // SAFETY: null or valid for reads and writes, as the documentation requires.
    unsafe {
        hand_out(out, || {
            let target = required(target, "target")?.parse().map_err(Failure::Target)?;
            Ok((Options::new(target), Status::Ok))
        })
    }
}

/// Frees options. Null is allowed. Any thread may call this, once no other uses
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_free(options: *mut Options) {
    // SAFETY: null or a handle that is not used again, as the documentation requires.
    unsafe { take_back(options) }
}

/// Sets which layer is searched first: a gfxpack_order. One thread at a time
/// may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_order(options: *mut Options, order: i32) -> Status {
    set(options, |options| {
        options.config.order = match order {
            0 => LookupOrder::SystemFirst,
            1 => LookupOrder::UserFirst,
            _ => return Err(unknown("order", order)),
        };
        Ok(())
    })
}

/// Sets a path: a gfxpack_path. The text is copied. Null restores the default.
/// One thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_path(
    options: *mut Options,
    which: i32,
    value: *const c_char,
) -> Status {
    set(options, |options| {
        // SAFETY: null or a text, as the documentation requires.
        let (given, text) = unsafe { (path(value), || required(value, "value")) };
        let (directories, default) = (&mut options.directory_options, DirectoryOptions::default());
        let text_or = |default: String| match given {
            None => Ok(default),
            Some(_) => text().map(str::to_owned),
        };
        match which {
            0 => directories.system_dir = given,
            1 => directories.library_path = given,
            2 => directories.build_time_cache_dir = text_or(default.build_time_cache_dir)?,
            3 => directories.version = text_or(default.version)?,
            4 => directories.root = given.unwrap_or(default.root),
            _ => return Err(unknown("which", which)),
        }
        Ok(())
    })
}

/// Uses exactly these directories, and ignores the environment and
/// gfxpack_options_set_path(): installed kdbs in `system_dir`, none if it is
/// null; the user's kdb in `user_dir`, or only memory if it is null. Both are
/// absolute; they are copied. One thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_places(
    options: *mut Options,
    system_dir: *const c_char,
    user_dir: *const c_char,
) -> Status {
    set(options, |options| {
        // SAFETY: null or texts, as the documentation requires.
        let (system, user) = unsafe { (path(system_dir), path(user_dir)) };
        for (path, argument) in [(&system, "system_dir"), (&user, "user_dir")] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                return Err(Failure::Relative(argument));
            }
        }
        options.config.directories = directories(system, user);
        options.has_directories = true;
        Ok(())
    })
}

/// Turns a gfxpack_flag on or off. One thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_flag(
    options: *mut Options,
    flag: i32,
    on: bool,
) -> Status {
    set(options, |options| {
        match flag {
            0 => options.config.keep_hits = on,
            1 => options.config.look_only = on,
            2 => options.warns = on,
            _ => return Err(unknown("flag", flag)),
        }
        Ok(())
    })
}

/// Sets a gfxpack_limit. One thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_limit(
    options: *mut Options,
    limit: i32,
    value: u64,
) -> Status {
    set(options, |options| {
        let limits = &mut options.config.limits;
        match limit {
            0 => limits.user_cache_bytes = value,
            1 => limits.memory_bytes = value,
            2 => limits.busy_wait = Duration::from_millis(value),
            3 => limits.compile_wait = Duration::from_millis(value),
            _ => return Err(unknown("limit", limit)),
        }
        Ok(())
    })
}

/// Sets the log level, overriding MIOPEN_LOG_LEVEL: at 1, 2 and 3 no warnings
/// are reported. One thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_log_level(options: *mut Options, level: u8) -> Status {
    set(options, |options| {
        options.log_level = Some(level);
        Ok(())
    })
}

/// Sets a function that receives warnings, which otherwise go to standard
/// error; null restores that.
///
/// `user_data` is passed to it and may be null. Both must be valid for as long
/// as a cache opened with these options exists; the library frees neither. One
/// thread at a time may use the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_options_set_warning_callback(
    options: *mut Options,
    callback: WarningFn,
    user_data: *mut c_void,
) -> Status {
    set(options, |options| {
        options.config.warnings = sink(callback, user_data);
        Ok(())
    })
}

fn set(options: *mut Options, change: impl FnOnce(&mut Options) -> Result<(), Failure>) -> Status {
    call(|| {
        // SAFETY: null or a live handle that only one thread uses, as the documentation requires.
        change(unsafe { options.as_mut() }.ok_or(Failure::Null("options"))?)?;
        Ok(Status::Ok)
    })
}

fn directories(system: Option<PathBuf>, user: Option<PathBuf>) -> KdbDirectories {
    let why = "the program gives no directory for it".to_owned();
    let user = user.map_or(UserDirectory::Memory(why), UserDirectory::Dir);
    let system_disabled = system.is_none();
    let mut directories = KdbDirectories::new(system, user);
    directories.system_disabled = system_disabled;
    directories
}

fn unknown(argument: &'static str, value: i32) -> Failure {
    Failure::Value { argument, value: value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setters_accept_the_numbers_of_the_enums() {
        let mut options = Options::new("gfx90a@104".parse().unwrap());
        let pointer = &raw mut options;
        // SAFETY: the options live, and nobody else uses them; no text is given but null.
        unsafe {
            assert_eq!(gfxpack_options_set_order(pointer, Order::UserFirst as i32), Status::Ok);
            assert_eq!(gfxpack_options_set_order(pointer, 2), Status::InvalidArgument);
            for limit in
                [Limit::UserCacheBytes, Limit::MemoryBytes, Limit::BusyWaitMs, Limit::CompileWaitMs]
            {
                let value = 10 + limit as u64;
                assert_eq!(gfxpack_options_set_limit(pointer, limit as i32, value), Status::Ok);
            }
            assert_eq!(gfxpack_options_set_limit(pointer, 4, 1), Status::InvalidArgument);
            for flag in [Flag::KeepHits, Flag::LookOnly] {
                assert_eq!(gfxpack_options_set_flag(pointer, flag as i32, true), Status::Ok);
            }
            let warn = Flag::Warn as i32;
            assert_eq!(gfxpack_options_set_flag(pointer, warn, false), Status::Ok);
            assert_eq!(gfxpack_options_set_flag(pointer, 3, true), Status::InvalidArgument);
            assert_eq!(gfxpack_options_set_flag(pointer, -1, true), Status::InvalidArgument);
            assert_eq!(gfxpack_options_set_log_level(pointer, 3), Status::Ok);
            let (system, user) = (c"/system".as_ptr(), c"/user".as_ptr());
            assert_eq!(gfxpack_options_set_places(pointer, system, user), Status::Ok);
        }
        let config = options.config();
        assert_eq!(config.order, LookupOrder::UserFirst);
        let limits = &config.limits;
        assert_eq!((limits.user_cache_bytes, limits.memory_bytes), (10, 11));
        assert_eq!((limits.busy_wait.as_millis(), limits.compile_wait.as_millis()), (12, 13));
        assert!(config.keep_hits && config.look_only);
        assert!(matches!(config.warnings, WarningSink::Silent));
        assert_eq!(config.log_level, 3);
        let system: Vec<_> = config.directories.system_dirs().collect();
        assert_eq!(system, [std::path::Path::new("/system")]);
        assert_eq!(config.directories.user, UserDirectory::Dir("/user".into()));
    }

    #[test]
    fn paths_are_set_and_reset_by_null() {
        let mut options = Options::new("gfx90a@104".parse().unwrap());
        let all = [Path::SystemDir, Path::Library, Path::BuildTimeCacheDir, Path::Version];
        for which in all.into_iter().chain([Path::Root]) {
            let text = c"/somewhere".as_ptr();
            // SAFETY: the options live, nobody else uses them, and the text is static.
            let status = unsafe { gfxpack_options_set_path(&raw mut options, which as i32, text) };
            assert_eq!(status, Status::Ok);
        }
        let directories = &options.directory_options;
        let path = Some(PathBuf::from("/somewhere"));
        assert_eq!((&directories.system_dir, &directories.library_path), (&path, &path));
        assert_eq!(directories.build_time_cache_dir, "/somewhere");
        assert_eq!(
            (directories.version.as_str(), Some(&directories.root)),
            ("/somewhere", path.as_ref())
        );
        for which in 0..5 {
            let null = std::ptr::null();
            // SAFETY: the options live, and nobody else uses them.
            let status = unsafe { gfxpack_options_set_path(&raw mut options, which, null) };
            assert_eq!(status, Status::Ok);
        }
        assert_eq!(options.directory_options, DirectoryOptions::default());
        // SAFETY: as above.
        let status = unsafe { gfxpack_options_set_path(&raw mut options, 5, std::ptr::null()) };
        assert_eq!(status, Status::InvalidArgument);
    }
}
