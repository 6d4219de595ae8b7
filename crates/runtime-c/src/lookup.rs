//! What a lookup gave: the kernel and where it came from, or why not.
#![expect(unsafe_code, reason = "exports functions that take handles")]

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::null;

use gfxpack_runtime::{CodeObject, Kernel, Origin, in_full};

use crate::boundary::{answer, take_back};
use crate::layer::Layer;
use crate::miss::Miss;
use crate::text::{c_path, c_text, pointer};

/// What a lookup gave.
///
/// The caller owns it and ends it with gfxpack_lookup_free(). Whatever it
/// hands out belongs to it and is good until then; it goes on being so when
/// the cache is freed. Nothing about it changes: any number of threads may use
/// it, and one of them, the last one, frees it.
#[derive(Debug)]
pub struct Lookup {
    layer: Layer,
    file: Option<CString>,
    code_object: Option<CodeObject>,
    not_stored: Option<CString>,
    misses: Vec<Miss>,
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Lookup>();
};

impl Lookup {
    pub(crate) fn is_hit(&self) -> bool {
        self.code_object.is_some()
    }

    fn new(layer: Layer, file: Option<&Path>, misses: Vec<gfxpack_runtime::Miss>) -> Self {
        let misses = misses.into_iter().map(Miss::from).collect();
        let file = file.map(c_path);
        Self { layer, file, code_object: None, not_stored: None, misses }
    }
}

impl From<gfxpack_runtime::Lookup> for Lookup {
    fn from(lookup: gfxpack_runtime::Lookup) -> Self {
        match lookup.found {
            None => Self::new(Layer::None, None, lookup.misses),
            Some(found) => Self {
                code_object: Some(found.code_object),
                ..Self::new(found.layer.into(), found.file.as_deref(), lookup.misses)
            },
        }
    }
}

impl From<Kernel> for Lookup {
    fn from(kernel: Kernel) -> Self {
        let (layer, file) = match &kernel.origin {
            Origin::Memory => (Layer::Memory, None),
            Origin::System(file) => (Layer::System, Some(file.as_path())),
            Origin::User(file) => (Layer::User, Some(file.as_path())),
            Origin::Compiled => (Layer::Compiled, None),
            _ => (Layer::None, None),
        };
        Self {
            code_object: Some(kernel.code_object),
            not_stored: kernel.not_stored.map(|error| c_text(in_full(&error))),
            ..Self::new(layer, file, kernel.misses)
        }
    }
}

/// Ends a lookup and all that it handed out. Null is fine. Any thread may call
/// this, once no other uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_free(lookup: *mut Lookup) {
    // SAFETY: null, or the caller's own, which it uses no more, as the documentation asks.
    unsafe { take_back(lookup) }
}

/// The kernel's bytes, for hipModuleLoadData(); null where there is none.
///
/// Their number is put into `size` unless that is null. They are checked: MD5
/// and gfx target. Owned by the lookup; not to be written to. Any thread may
/// call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_data(lookup: *const Lookup, size: *mut usize) -> *const u8 {
    answer(null(), || {
        // SAFETY: null, or the caller's, which lives, as the documentation asks.
        let bytes = unsafe { lookup.as_ref() }.and_then(|it| it.code_object.as_deref());
        if !size.is_null() {
            // SAFETY: not null, so it may be written to, as the documentation asks; what it holds
            // before that need not be a number.
            unsafe { size.write(bytes.map_or(0, <[u8]>::len)) };
        }
        bytes.map_or(null(), <[u8]>::as_ptr)
    })
}

/// Where the kernel came from; GFXPACK_LAYER_NONE for a miss or null. Any
/// thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_layer(lookup: *const Lookup) -> Layer {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(Layer::None, || unsafe { lookup.as_ref() }.map_or(Layer::None, |it| it.layer))
}

/// The kdb that holds the kernel; null where it came from no file. Owned by the
/// lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_file(lookup: *const Lookup) -> *const c_char {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(null(), || pointer(unsafe { lookup.as_ref() }.and_then(|it| it.file.as_ref())))
}

/// Why a kernel that was compiled was not saved, in one line; null where it
/// was, or where there was nothing to save. The kernel itself is as good. Owned
/// by the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_not_stored(lookup: *const Lookup) -> *const c_char {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(null(), || pointer(unsafe { lookup.as_ref() }.and_then(|it| it.not_stored.as_ref())))
}

/// How many kdbs were asked in vain; 0 for null. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_miss_count(lookup: *const Lookup) -> usize {
    // SAFETY: null, or the caller's, which lives, as the documentation asks.
    answer(0, || unsafe { lookup.as_ref() }.map_or(0, |it| it.misses.len()))
}

/// One of them, in the order in which they were asked, counted from 0; null
/// past the last one. Owned by the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_miss(lookup: *const Lookup, index: usize) -> *const Miss {
    answer(null(), || {
        // SAFETY: null, or the caller's, which lives, as the documentation asks.
        let misses = unsafe { lookup.as_ref() }.map(|it| it.misses.as_slice());
        misses.and_then(|misses| misses.get(index)).map_or(null(), std::ptr::from_ref)
    })
}
