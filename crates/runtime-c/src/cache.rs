//! The cache: opened, asked, and asked to compile.
#![expect(unsafe_code, reason = "exports functions that take handles, texts and a callback")]

use std::ffi::{CString, c_char, c_void};
use std::ptr::null;

use gfxpack_runtime::{KernelCache, KernelKey};

use crate::boundary::{answer, borrow, hand_out, take_back};
use crate::failure::Failure;
use crate::layer::Layer;
use crate::lookup::Lookup;
use crate::options::Options;
use crate::status::Status;
use crate::text::{c_path, required};

/// Finds kernels, and keeps those that had to be compiled.
///
/// The caller owns it and ends it with gfxpack_cache_free(). Any number of
/// threads may use it at once; one of them frees it, after the others are done.
///
/// A process made by fork() goes on with it: it opens the files anew, leaves its
/// parent's alone, and frees the cache or does not. fork() waits up to a second
/// for threads that are reading or writing a file. If one is then still at it,
/// since it waits for another program, or if the process was made in a way that
/// does not call what pthread_atfork() was told, the child may find every kdb
/// unreadable.
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

/// What a compiler puts its result into. It ends with the call of the compiler
/// that it was given to, and belongs to the thread of that call.
#[derive(Debug, Default)]
pub struct Compiled {
    code_object: Option<Vec<u8>>,
    error: Option<String>,
}

/// A function that compiles a kernel that no kdb has.
///
/// It puts the code object into `compiled` with gfxpack_compiled_set() and
/// returns 0, or returns another number, after gfxpack_compiled_fail() where it
/// has words for it. It is called by the thread that asks for the kernel,
/// before that call returns; of several that ask for one key at a time, one is
/// told to compile. `kernel_name` and `kernel_args` are the caller's own. The
/// function must return: no longjmp() and no C++ exception out of it (an
/// exception ends the process). It may use the cache.
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
/// This reads the environment, which no other thread may change meanwhile, and
/// no kdb: what is wrong with a place or file is a warning, and a miss of the
/// lookups that need it. In a program that has more rights than its caller
/// (set-user-ID, set-group-ID, file capabilities) no variable chooses a
/// directory. `options` stay the caller's. `out` receives a cache that the
/// caller owns, or null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_open(
    options: *const Options,
    out: *mut *mut Cache,
) -> Status {
    // SAFETY: null, or the caller's and to be written to, as the documentation asks.
    unsafe {
        hand_out(out, || {
            let options = borrow(options, "options")?;
            Ok((Cache::from(KernelCache::open(options.config())), Status::Ok))
        })
    }
}

/// Ends a cache. Lookups that it gave stay good. Null is fine. Any thread may
/// call this, once no other uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_free(cache: *mut Cache) {
    // SAFETY: null, or the caller's own, which no thread uses any more, as the documentation asks.
    unsafe { take_back(cache) }
}

/// How many files are asked, whether they exist or not; 0 for null. Any thread
/// may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file_count(cache: *const Cache) -> usize {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(0, || unsafe { cache.as_ref() }.map_or(0, |it| it.files.len()))
}

/// The path of one of them, in the order in which they are asked, counted from
/// 0; null past the last one. Owned by the cache. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file(cache: *const Cache, index: usize) -> *const c_char {
    answer(null(), || {
        // SAFETY: null, or the caller's, which lives, as the documentation asks.
        let file = unsafe { cache.as_ref() }.and_then(|it| it.files.get(index));
        file.map_or(null(), |(_, path)| path.as_ptr())
    })
}

/// Whether that file is an installed kdb or the user's; GFXPACK_LAYER_NONE past
/// the last one. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_cache_file_layer(cache: *const Cache, index: usize) -> Layer {
    answer(Layer::None, || {
        // SAFETY: null, or the caller's, which lives, as the documentation asks.
        let file = unsafe { cache.as_ref() }.and_then(|it| it.files.get(index));
        file.map_or(Layer::None, |(layer, _)| *layer)
    })
}

/// Looks a kernel up.
///
/// The key is taken byte for byte: `kernel_name` is the source's name and ".o"
/// ("conv.cl.o"), `kernel_args` the options and " -mcpu=" and the device's name
/// (" -DX=1 -mcpu=gfx90a").
///
/// GFXPACK_STATUS_OK where there is a kernel, GFXPACK_STATUS_MISS where there
/// is none; `out` receives, in both cases, a lookup that the caller owns, and
/// null in all others. Any number of threads may call this with one cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_get(
    cache: *const Cache,
    kernel_name: *const c_char,
    kernel_args: *const c_char,
    out: *mut *mut Lookup,
) -> Status {
    // SAFETY: null, or the caller's and to be read and written, as the documentation asks.
    unsafe {
        hand_out(out, || {
            let key = key(kernel_name, kernel_args)?;
            let lookup = Lookup::from(borrow(cache, "cache")?.cache.get(&key));
            let status = if lookup.is_hit() { Status::Ok } else { Status::Miss };
            Ok((lookup, status))
        })
    }
}

/// Looks a kernel up, and where no kdb has it compiles it and saves it in the
/// user's.
///
/// GFXPACK_STATUS_OK where there is a kernel, saved or not: `out` then
/// receives a lookup that the caller owns. GFXPACK_STATUS_COMPILER_FAILED
/// where `compile` fails or gives no bytes; gfxpack_last_error() then has its
/// words. In that and all other cases `out` receives null. `user_data` is handed
/// to `compile` and may be null. Any number of threads may call this with one
/// cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_get_or_compile(
    cache: *const Cache,
    kernel_name: *const c_char,
    kernel_args: *const c_char,
    compile: CompileFn,
    user_data: *mut c_void,
    out: *mut *mut Lookup,
) -> Status {
    // SAFETY: null, or the caller's and to be read and written, as the documentation asks.
    unsafe {
        hand_out(out, || {
            let key = key(kernel_name, kernel_args)?;
            let compile = compile.ok_or(Failure::Null("compile"))?;
            let cache = borrow(cache, "cache")?;
            let kernel = cache.cache.get_or_compile(&key, || {
                let mut compiled = Compiled::default();
                let code = compile(user_data, kernel_name, kernel_args, &raw mut compiled);
                compiled.result(code, &key)
            })?;
            Ok((Lookup::from(kernel), Status::Ok))
        })
    }
}

/// Puts the code object that was compiled where the cache finds it. The bytes
/// are copied. A second call takes the place of the first. Null, or more bytes
/// than any object can have, change nothing; none at all are no code object.
/// Only the thread that the compiler was called by may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_compiled_set(
    compiled: *mut Compiled,
    data: *const u8,
    size: usize,
) {
    answer((), || {
        // SAFETY: null, or that of the compiler's call, as the documentation asks.
        let compiled = unsafe { compiled.as_mut() };
        let possible = !data.is_null() && isize::try_from(size).is_ok();
        if let (Some(compiled), true) = (compiled, possible) {
            // SAFETY: neither null nor too large, so there are `size` bytes, as the documentation
            // asks.
            let bytes = unsafe { std::slice::from_raw_parts(data, size) };
            compiled.code_object = Some(bytes.to_vec());
        }
    });
}

/// Says in words why there is no code object. The text is copied. Only the
/// thread that the compiler was called by may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_compiled_fail(compiled: *mut Compiled, text: *const c_char) {
    answer((), || {
        // SAFETY: null, or that of the compiler's call, and a text, as the documentation asks.
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
