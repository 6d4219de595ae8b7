//! The cache: opening it, looking up kernels, compiling them.
#![expect(unsafe_code, reason = "exports functions that take handles, texts and a callback")]

use std::ffi::{CString, c_char, c_void};

use gfxpack_runtime::{KernelCache, KernelKey};

use crate::boundary::{hand_out, run, take_back};
use crate::failure::Failure;
use crate::layer::Layer;
use crate::lookup::Lookup;
use crate::options::Options;
use crate::status::Status;
use crate::text::{c_path, pointer, required};

/// Finds kernels, and keeps compiled ones.
///
/// The caller owns it and frees it with gfxpack_cache_free(). Any number of
/// threads may use it at once; one of them frees it, after the others are done.
///
/// A child process made by fork() may go on using it: it reopens the files,
/// leaves its parent's alone, and may free the cache or not. fork() waits up to
/// a second for threads that are reading or writing a file. If one of them
/// still waits for another program by then, or if the process was made in a way
/// that skips the handlers of pthread_atfork(), every kdb may be unreadable in
/// the child.
#[derive(Debug)]
pub struct Cache {
    cache: KernelCache,
    files: Vec<(Layer, CString)>,
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Cache>();
};

impl From<KernelCache> for Cache {
    fn from(cache: KernelCache) -> Self {
        let files = cache.files();
        let files = files.iter().map(|(layer, path)| (Layer::from(*layer), c_path(path))).collect();
        Self { cache, files }
    }
}

/// Receives the compiler's result. It is valid until that call of the compiler
/// returns, and only for the thread of that call.
#[derive(Debug, Default)]
pub struct Compiled {
    code_object: Option<Vec<u8>>,
    error: Option<String>,
}

/// A function that compiles a kernel that is in no kdb.
///
/// It passes the code object to gfxpack_compiled_set() and returns 0; or it
/// returns another number, optionally after gfxpack_compiled_fail() with an
/// error message. It is called by the thread that asks for the kernel, before
/// that call returns; if several ask for the same key at once, one of them
/// compiles. `kernel_name` and `kernel_args` are the pointers that the caller
/// passed. The function must return: no longjmp() and no C++ exception out of
/// it (an exception ends the process). It may use the cache.
pub type CompileFn = Option<
    unsafe extern "C-unwind" fn(
        user_data: *mut c_void,
        kernel_name: *const c_char,
        kernel_args: *const c_char,
        compiled: *mut Compiled,
    ) -> i32,
>;

/// Opens a cache.
///
/// This reads the environment, which no other thread may change meanwhile, but
/// no kdb: a problem with a place or file is a warning, and a miss of the
/// lookups that need it. In a program that has more rights than its caller
/// (set-user-ID, set-group-ID, file capabilities) no variable chooses a
/// directory. `options` remain the caller's. `out` receives a cache that the
/// caller owns, or null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_open(
    options: *const Options,
    out: *mut *mut Cache,
) -> Status {
    // SAFETY: null, or live and valid for writes, as the documentation requires.
    unsafe {
        hand_out(out, || {
            let options = options.as_ref().ok_or(Failure::Null("options"))?;
            Ok((Cache::from(KernelCache::open(options.config())), Status::Ok))
        })
    }
}

/// Frees a cache. Its lookups remain valid. Null is allowed. Any thread may
/// call this, once no other uses the cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_free(cache: *mut Cache) {
    // SAFETY: null or a handle that is not used again, as the documentation requires.
    unsafe { take_back(cache) }
}

/// Number of kdb files that are searched, whether they exist or not; 0 for
/// null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file_count(cache: *const Cache) -> usize {
    // SAFETY: null or a live handle, as the documentation requires.
    unsafe { cache.as_ref() }.map_or(0, |it| it.files.len())
}

/// The path of one of these files, in the order of the search, counted from 0;
/// null past the last one. Owned by the cache. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file(cache: *const Cache, index: usize) -> *const c_char {
    // SAFETY: null or a live handle, as the documentation requires.
    let file = unsafe { cache.as_ref() }.and_then(|it| it.files.get(index));
    pointer(file.map(|(_, path)| path))
}

/// Whether such a file is an installed kdb or the user's; GFXPACK_LAYER_NONE
/// past the last one. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file_layer(cache: *const Cache, index: usize) -> Layer {
    // SAFETY: null or a live handle, as the documentation requires.
    let file = unsafe { cache.as_ref() }.and_then(|it| it.files.get(index));
    file.map_or(Layer::None, |(layer, _)| *layer)
}

/// Looks up a kernel.
///
/// The key is compared byte by byte: `kernel_name` is the source's name and
/// ".o" ("conv.cl.o"), `kernel_args` the options and " -mcpu=" and the device's
/// name (" -DX=1 -mcpu=gfx90a").
///
/// Returns GFXPACK_STATUS_OK if there is a kernel, GFXPACK_STATUS_MISS if there
/// is none; in both cases `out` receives a lookup that the caller owns,
/// otherwise null. Any number of threads may call this with one cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_get(
    cache: *const Cache,
    kernel_name: *const c_char,
    kernel_args: *const c_char,
    out: *mut *mut Lookup,
) -> Status {
    // SAFETY: null, or live and valid for reads and writes, as the documentation requires.
    unsafe {
        hand_out(out, || {
            let key = key(kernel_name, kernel_args)?;
            let cache = cache.as_ref().ok_or(Failure::Null("cache"))?;
            let lookup = Lookup::from(cache.cache.get(&key));
            let status = if lookup.code_object.is_some() { Status::Ok } else { Status::Miss };
            Ok((lookup, status))
        })
    }
}

/// Looks up a kernel; if no kdb has it, compiles it and saves it in the user's.
///
/// Returns GFXPACK_STATUS_OK if there is a kernel, saved or not: `out` then
/// receives a lookup that the caller owns. Returns
/// GFXPACK_STATUS_COMPILER_FAILED if `compile` fails or gives no bytes;
/// gfxpack_last_error() then has its error message. In all cases but the first
/// `out` receives null. `user_data` is passed to `compile` and may be null. Any
/// number of threads may call this with one cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_get_or_compile(
    cache: *const Cache,
    kernel_name: *const c_char,
    kernel_args: *const c_char,
    compile: CompileFn,
    user_data: *mut c_void,
    out: *mut *mut Lookup,
) -> Status {
    // SAFETY: null, or live and valid for reads and writes, as the documentation requires.
    unsafe {
        hand_out(out, || {
            let key = key(kernel_name, kernel_args)?;
            let compile = compile.ok_or(Failure::Null("compile"))?;
            let cache = cache.as_ref().ok_or(Failure::Null("cache"))?;
            let kernel = cache.cache.get_or_compile(&key, || {
                let mut compiled = Compiled::default();
                let code = compile(user_data, kernel_name, kernel_args, &raw mut compiled);
                compiled.result(code, &key)
            })?;
            Ok((Lookup::from(kernel), Status::Ok))
        })
    }
}

/// Passes the compiled code object to the cache. The bytes are copied. A second
/// call replaces the first. Null, or more bytes than any object can have,
/// change nothing; an empty code object counts as none. Only the thread on
/// which the compiler was called may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_compiled_set(
    compiled: *mut Compiled,
    data: *const u8,
    size: usize,
) {
    run(|| {
        // SAFETY: null or from the compiler's call, as the documentation requires.
        let compiled = unsafe { compiled.as_mut() };
        let possible = !data.is_null() && isize::try_from(size).is_ok();
        if let (Some(compiled), true) = (compiled, possible) {
            // SAFETY: neither null nor too large, so there are `size` bytes, as the documentation
            // requires.
            let bytes = unsafe { std::slice::from_raw_parts(data, size) };
            compiled.code_object = Some(bytes.to_vec());
        }
    });
}

/// Reports why there is no code object, as text. The text is copied. Only the
/// thread on which the compiler was called may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_compiled_fail(compiled: *mut Compiled, text: *const c_char) {
    run(|| {
        // SAFETY: null or from the compiler's call, and a text, as the documentation requires.
        let (compiled, text) = unsafe { (compiled.as_mut(), crate::text::path(text)) };
        if let (Some(compiled), Some(text)) = (compiled, text) {
            compiled.error = Some(text.to_string_lossy().into_owned());
        }
    });
}

impl Compiled {
    fn result(self, code: i32, key: &KernelKey) -> Result<Vec<u8>, Failure> {
        let failed = |why: String| Failure::Compiler { name: key.kernel_name.clone(), why };
        match (code, self.error, self.code_object) {
            (0, None, Some(code_object)) if !code_object.is_empty() => Ok(code_object),
            (_, Some(error), _) => Err(failed(error)),
            (0, None, _) => Err(failed("the compiler gave no code object".to_owned())),
            (code, None, _) => Err(failed(format!("the compiler returned {code}"))),
        }
    }
}

/// # Safety
/// Both are null, or NUL-terminated texts.
unsafe fn key(name: *const c_char, args: *const c_char) -> Result<KernelKey, Failure> {
    // SAFETY: as the caller promises.
    let (name, args) = unsafe { (required(name, "kernel_name"), required(args, "kernel_args")) };
    Ok(KernelKey { kernel_name: name?.to_owned(), kernel_args: args?.to_owned() })
}
